"""What a hook may load, open and ask of the system: the guard against growing slower, in counts and not in time."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from repeat_guard_cli import payload
from tests.conftest import ROOT
from tests.support import COMMAND, SESSION, Guard, tool_payload

BOTH_DOORS = {
    "fast": [COMMAND],
    "typer": [sys.executable, "-c", "import sys; from repeat_guard_cli.cli import main; sys.exit(main(sys.argv[1:]))"],
}
WATCHED = """
import os, sys
before, opened, end = set(sys.modules), [], os._exit
def watch(event, data):
    if event in ("open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove"):
        opened.append([event, os.fsdecode(data[0]) if isinstance(data[0], (str, bytes)) else ""])
def report(status):
    loaded, files = sorted(set(sys.modules) - before), list(opened)
    import json
    os.write(2, json.dumps([loaded, files]).encode())
    end(status)
from repeat_guard_cli.__main__ import main
os._exit = report
sys.addaudithook(watch)
main()
"""

HOOK = {"errors", "fingerprint", "guard", "hook", "log", "model", "paths", "patterns", "payload", "settings", "store"}
BASE = {f"repeat_guard_cli.{name}" for name in (*HOOK, "__main__", "config", "wire")}
BASE |= {"repeat_guard_cli", "gc", "select", "fcntl", "_json", "_blake2"}
REMINDER = {"repeat_guard_cli.reminder"}
PROMPT = {"repeat_guard_cli.prompts", "repeat_guard_cli.reminder", "repeat_guard_cli.sweep"}
END = {"repeat_guard_cli.sweep"}
MOST_CALLS = 380
"""311 to 329 on CPython 3.10 to 3.13, most of them to find and read modules; a new module costs about 13."""
BUILT_IN = set(sys.builtin_module_names)
"""Free: some interpreters have `_json`, `fcntl` and the like built in, others load them."""


class Watched(NamedTuple):
    modules: set[str]
    opened: list[tuple[str, str]]
    out: str


def watched(guard: Guard, command: str, event: object) -> Watched:
    """Run a hook command in a fresh interpreter that tells what it loaded and opened."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", WATCHED, command],
        input=json.dumps(event).encode(),
        capture_output=True,
        env=guard.environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    modules, opened = json.loads(done.stderr)
    return Watched(set(modules), [(kind, path) for kind, path in opened], done.stdout.decode())


def prompt() -> dict[str, str]:
    return {"session_id": SESSION, "hook_event_name": "UserPromptSubmit", "prompt": "go on"}


def call(number: int) -> dict[str, object]:
    return tool_payload("Bash", {"command": "ls"}, f"toolu_{number}")


needs_posix = pytest.mark.skipif(os.name == "nt", reason="the modules that are pinned are those of POSIX")


@needs_posix
def test_modules_that_a_hook_may_load(guard: Guard) -> None:
    first = watched(guard, payload.POST_TOOL_USE, call(1))
    assert first.modules - BUILT_IN <= BASE
    assert watched(guard, payload.POST_TOOL_USE, call(2)).modules - BUILT_IN <= BASE
    third = watched(guard, payload.POST_TOOL_USE, call(3))
    assert third.out
    assert third.modules - BUILT_IN <= BASE | REMINDER
    assert watched(guard, payload.USER_PROMPT_SUBMIT, prompt()).modules - BUILT_IN <= BASE | PROMPT
    end = {"session_id": SESSION, "hook_event_name": "SessionEnd", "reason": "exit"}
    assert watched(guard, payload.SESSION_END, end).modules - BUILT_IN <= BASE | END


@needs_posix
def test_a_settings_file_is_parsed_once(guard: Guard) -> None:
    """Parsing TOML costs almost a start of the interpreter."""
    file = guard.home / ".config/repeat-guard/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("thresholds = [2]\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    parsers = {"tomllib", "tomli"}
    modules = [watched(guard, payload.POST_TOOL_USE, call(number)).modules for number in range(1, 4)]
    assert modules[0] & parsers
    # The state directory is made by the first call, so the second may still parse.
    assert not modules[2] & parsers
    assert modules[2] - BUILT_IN <= BASE
    file.write_text("thresholds = [3]\n")
    assert watched(guard, payload.POST_TOOL_USE, call(4)).modules & parsers, "it has changed"


def test_other_sessions_cost_nothing(guard: Guard) -> None:
    """A call neither lists the state directory nor opens any file but its own session's."""
    for number in range(30):
        guard.call(session_id=f"other-{number}")
    opened = watched(guard, payload.POST_TOOL_USE, call(1)).opened
    inside = {(kind, Path(path)) for kind, path in opened if path.startswith(str(guard.state))}
    own = guard.state / "sessions" / SESSION
    assert {path.with_suffix("") for _, path in inside} == {own}


@pytest.mark.skipif(not shutil.which("strace") and not os.environ.get("CI"), reason="strace is not installed")
def test_system_calls(guard: Guard, tmp_path: Path) -> None:
    """Those of a repeated call, beyond what the bare interpreter makes of itself."""
    guard.call(), guard.call()
    bare = system_calls([sys.executable, "-I", "-c", "pass"], b"", guard, tmp_path)
    hook = system_calls([COMMAND, payload.POST_TOOL_USE], json.dumps(call(9)).encode(), guard, tmp_path)
    assert 0 < hook - bare < MOST_CALLS, (hook, bare)


def system_calls(command: list[str], stdin: bytes, guard: Guard, folder: Path) -> int:
    trace = folder / "trace"
    traced = ["strace", "-f", "-o", str(trace), *command]
    done = subprocess.run(traced, input=stdin, capture_output=True, env=guard.environment, check=False)
    if b"PTRACE" in done.stderr and not os.environ.get("CI"):
        pytest.skip("this machine permits no tracing")
    assert done.returncode == 0, done.stderr
    return sum("(" in line for line in trace.read_text(errors="replace").splitlines())


def inputs() -> list[tuple[str, str, bytes]]:
    files = sorted((ROOT / "tests/payloads").glob("*/*.json")) + sorted((ROOT / "examples").glob("*.json"))
    events = [(f"{file.parent.name}/{file.stem}", file.read_bytes()) for file in files]
    events += [
        ("empty", b""),
        ("no JSON", b"nonsense"),
        ("a list", b"[]"),
        ("no string", b'{"session_id": 7, "hook_event_name": "PostToolUse"}'),
        ("not UTF-8", b"\xff"),
    ]
    return [(command, name, data) for command in payload.COMMANDS for name, data in events]


def test_both_doors_agree(tmp_path: Path) -> None:
    """Every event goes through either door, each in a world of its own, and once more past a threshold."""
    worlds = {}
    for door in BOTH_DOORS:
        home = tmp_path / door
        home.mkdir()
        worlds[door] = Guard(home)
        worlds[door].environment["REPEAT_GUARD_THRESHOLDS"] = "2"
    said = 0
    for command, name, data in inputs():
        if command != payload.POST_TOOL_USE and "/" in name and payload_command(data) != command:
            continue
        results = []
        for door, arguments in BOTH_DOORS.items():
            done = subprocess.run(
                [*arguments, command], input=data, capture_output=True, env=worlds[door].environment, check=False
            )
            results.append((done.returncode, done.stdout, done.stderr))
        assert results[0] == results[1], (command, name)
        said += bool(results[0][1])
    assert said
    assert worlds["fast"].files() == worlds["typer"].files()
    assert counts(worlds["fast"]) == counts(worlds["typer"])


def payload_command(data: bytes) -> str:
    """Return the hook command that acts on an event; "" for none."""
    value = json.loads(data)
    name = value.get("hook_event_name", value.get("hookEventName"))
    return next((command for command, events in payload.EVENTS.items() if name in events), "")


def counts(guard: Guard) -> list[tuple[str, list[int]]]:
    return sorted((s["session_id"], [chain["count"] for chain in s["chains"]]) for s in guard.shown())
