"""What is at rest, and two versions of the program at it."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from repeat_guard_cli import guard as core
from repeat_guard_cli import hook
from tests.faults.support import below, call, count, counts_again, finish, judge, start
from tests.support import COMMAND, SESSION, Guard, tool_payload

HEAD, TAIL = "the-head-of-the-arguments", "what-comes-after-500-characters"


def telling(**fields: Any) -> dict[str, Any]:
    """Return a payload with a word in each place that holds what people and tools said."""
    return {
        **tool_payload("Bash", {"command": f"{HEAD} {'x' * 600} {TAIL}", "description": "s3cret-label"}),
        "tool_response": {"stdout": "s3cret-output"},
        "error": "s3cret-error",
        "prompt": "s3cret-prompt",
        "last_assistant_message": "s3cret-message",
        "permission_suggestions": ["s3cret-unknown-field"],
        **fields,
    }


def everything(guard: Guard) -> bytes:
    """Return all that was written, names included."""
    paths = [path for path in guard.state.rglob("*") if not path.is_dir()]
    return b"\n".join(str(path).encode(errors="surrogateescape") + path.read_bytes() for path in paths)


def provoke(guard: Guard) -> None:
    """Bring about whatever writes: calls, failures of every kind, prompts, kept settings, an interrupted write."""
    config = guard.home / ".config/repeat-guard/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    (guard.home / ".repeat-guard.toml").write_text("wrong = 's3cret-setting'")
    here = {"cwd": str(guard.home)}
    for _ in range(4):
        judge(guard.hook("post-tool-use", telling(**here)), 0)
    judge(guard.hook("post-tool-use", telling(hook_event_name="PostToolUseFailure", tool_use_id="s3cret-id")), 0)
    batch = telling(hook_event_name="PostToolBatch", tool_calls=[telling(), {"tool_name": 7}])
    judge(guard.hook("post-tool-use", batch), 1)
    judge(guard.hook("user-prompt-submit", telling(hook_event_name="UserPromptSubmit", source="system")), 0)
    nested = json.dumps(telling()).replace('"s3cret-label"', "[" * 200_000 + '"s3cret-nested"' + "]" * 200_000)
    judge(guard.hook("post-tool-use", nested.encode()), 1)
    judge(guard.hook("post-tool-use", b'{"s3cret-broken'), 1)
    judge(guard.hook("post-tool-use", telling(session_id=["s3cret-session"])), 1)
    with Path("/dev/full").open("wb") as full:
        process = start(guard, stdout=full, env={**guard.environment, "REPEAT_GUARD_THRESHOLDS": "6,7"})
        assert finish(process, json.dumps(telling()).encode()).code == 1
    if shutil.which("strace"):
        line = ["strace", "-o", "/dev/null", "-e", "inject=rename:signal=SIGKILL:when=1", COMMAND, "post-tool-use"]
        subprocess.run(
            line, input=json.dumps(telling()).encode(), env=guard.environment, capture_output=True, check=False
        )
        assert [name for name in below(guard.state) if name.endswith(".tmp")]


def test_nothing_of_a_call_is_kept_but_the_head_of_its_arguments(guard: Guard) -> None:
    provoke(guard)
    kept = everything(guard)
    assert HEAD.encode() in kept
    assert TAIL.encode() not in kept
    assert b"s3cret" not in kept.replace(b"wrong = 's3cret-setting'", b"")


def test_no_preview_keeps_nothing_at_all(guard: Guard) -> None:
    config = guard.home / ".config/repeat-guard/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("state_preview = false\n")
    os.utime(config, (1_700_000_000, 1_700_000_000))
    provoke(guard)
    kept = everything(guard)
    assert HEAD.encode() not in kept
    assert b"s3cret" not in kept
    assert b"Bash" in kept, "the tool's name is"
    assert count(guard) == 5
    assert guard.shown()[0]["chains"][0]["arguments_preview"] is None


def test_a_preview_that_is_no_longer_wanted_goes_with_the_next_call(guard: Guard) -> None:
    """Also when that call goes on with the chain."""
    judge(guard.hook("post-tool-use", telling()), 0)
    assert HEAD.encode() in everything(guard)
    config = guard.home / "config.toml"
    config.write_text("state_preview = false")
    judge(guard.hook("post-tool-use", telling(), REPEAT_GUARD_CONFIG=str(config)), 0)
    assert count(guard) == 2
    assert HEAD.encode() not in everything(guard)


def test_a_shorter_preview_cuts_what_is_kept(guard: Guard) -> None:
    config = guard.home / "config.toml"
    config.write_text("arguments_preview_chars = 14")
    judge(guard.hook("post-tool-use", telling(), REPEAT_GUARD_CONFIG=str(config)), 0)
    assert b"the-" not in everything(guard)


def test_the_log_of_an_internal_error_tells_where_and_not_what(
    guard: Guard, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An exception's text may hold what it failed on."""

    def fail(*_: object) -> None:
        raise ValueError(f"can't compare {telling()}")

    guard.state.mkdir()
    monkeypatch.setattr(core, "record", fail)
    monkeypatch.setattr(hook, "read_stdin", lambda _: json.dumps(telling()).encode())
    assert hook.run("post-tool-use", guard.environment) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("repeat-guard: internal error (ValueError)")
    log = (guard.state / "repeat-guard.log").read_text()
    assert "in fail" in log
    assert "ValueError" in log
    assert HEAD not in log
    assert HEAD not in err


# Two versions


def test_another_layouts_files_are_left_alone(guard: Guard) -> None:
    """Each layout has a suffix of its own, so that two installed versions don't wipe each other's state."""
    counts_again(guard)
    sessions = guard.state / "sessions"
    theirs = {sessions / f"{SESSION}.json2": b'{"version": 2}', sessions / "old.state": b"x", sessions / "notes": b"x"}
    for path, content in theirs.items():
        path.write_bytes(content)
        os.utime(path, (1.0, 1.0))
    counts_again(guard)
    guard.prompt()
    assert len(guard.shown()) == 1
    assert guard.hook("session-end", {"session_id": SESSION, "hook_event_name": "SessionEnd"}) == (0, "", "")
    assert guard.run("reset", "--all").code == 0
    assert {path: path.read_bytes() for path in sessions.iterdir()} == theirs


def test_a_newer_version_of_the_same_layout_loses_nothing(guard: Guard) -> None:
    """What this version doesn't know is kept at every level, for as long as what it belongs to."""
    path = guard.state / "sessions" / f"{SESSION}.json"
    guard.call(agent_id="a")
    guard.call()
    state = json.loads(path.read_bytes())
    state["later"] = {"x": [1, None, "é\ud83d", 2**70, 0.1]}
    state["agents"]["a"]["later"] = state["agents"][""]["later"] = "y"
    state["agents"][""]["chain"]["later"] = False
    path.write_text(json.dumps(state))
    guard.call()
    guard.prompt(source="system")
    guard.call("Read", {"file_path": "x"})
    found = json.loads(path.read_bytes())
    assert found["later"] == state["later"]
    assert found["agents"]["a"] == state["agents"]["a"]
    assert found["agents"][""]["later"] == "y"
    assert found["agents"][""]["chain"]["later"] is False
    assert next(iter(found)) == "version"


def test_two_versions_at_once(guard: Guard) -> None:
    """One that knows more and one that knows less take turns: no call is lost."""
    path = guard.state / "sessions" / f"{SESSION}.json"
    for number in range(6):
        judge(finish(start(guard), call(number)), 0)
        state = json.loads(path.read_bytes())
        assert state.get("calls", number) == number
        state["calls"] = number + 1
        path.write_text(json.dumps(state, indent=1))
    assert count(guard) == 6
