"""What every fault has in common: starting a hook with something wrong, and what it must do all the same."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from tests.support import COMMAND, SESSION, Guard, Result, tool_payload

LONG = os.environ.get("REPEAT_GUARD_FAULTS") == "long"
AT_ONCE = 200 if LONG else 60
KILLS = 1_000 if LONG else 45
EXAMPLES = 10_000 if LONG else 250
THROUGH_THE_PROCESS = 1_000 if LONG else 40
FUZZED = 500_000
EVERY_LENGTH = LONG

Figure = Callable[[str], None]
"""Notes what was seen; see `conftest.figure`."""
COMMANDS = ("post-tool-use", "user-prompt-submit", "session-end")


def payload_of(command: str, **fields: Any) -> dict[str, Any]:
    """Return a payload that the command acts on."""
    if command == "post-tool-use":
        return {**tool_payload("Bash", {"command": "ls"}), **fields}
    event = "UserPromptSubmit" if command == "user-prompt-submit" else "SessionEnd"
    return {"session_id": SESSION, "hook_event_name": event, "prompt": "go on", **fields}


def call(number: int, **fields: Any) -> bytes:
    """Return a report of the same call with an id of its own."""
    return json.dumps(tool_payload("Bash", {"command": "ls"}, f"toolu_fault_{number}", **fields)).encode()


def start(guard: Guard, command: str = "post-tool-use", **options: Any) -> "subprocess.Popen[bytes]":
    """Start a hook on pipes, unless the options say otherwise."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    defaults = {"args": [COMMAND, command], **streams, "env": guard.environment, "cwd": guard.home}
    return subprocess.Popen(**{**defaults, **options})


def feed(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    """Send what a host sends and close the pipe, without waiting for the end: `finish` does."""
    assert process.stdin
    process.stdin.write(data)
    process.stdin.close()
    process.stdin = None


def finish(process: "subprocess.Popen[bytes]", data: bytes = b"", seconds: float = 60) -> Result:
    """Send what a host sends and wait for the end."""
    out, err = process.communicate(data, seconds)
    return Result(process.returncode, (out or b"").decode(), (err or b"").decode())


def judge(result: Result, *codes: int) -> Result:
    """Check what holds whatever the fault: the exit code, one JSON document at most, one line on stderr at most."""
    assert result.code in (codes or (0, 1)), result
    if result.code == 0:
        assert result.err == "", result
        if result.out:
            assert result.out.count("\n") == result.out.endswith("\n"), result
            assert list(json.loads(result.out)) == ["hookSpecificOutput"], result
    else:
        assert result.out == "", result
        assert result.err.startswith("repeat-guard: "), result
        assert result.err.count("\n") == result.err.endswith("\n"), result
        assert "internal error" not in result.err, result
    return result


def count(guard: Guard, session: str = SESSION, agent: str = "") -> int:
    """Return the count of a chain as the state file has it; 0 where there is none."""
    try:
        data = (guard.state / "sessions" / f"{session}.json").read_bytes()
    except FileNotFoundError:
        return 0
    try:
        state = json.loads(data)
    except RecursionError:  # the stack of the test itself is too deep already
        state = orjson.loads(data)
    chain = state["agents"].get(agent, {}).get("chain")
    return chain["count"] if chain else 0


def counts_again(guard: Guard) -> None:
    """Check that the next healthy calls count, one by one."""
    guard.call()
    before = count(guard)
    guard.call()
    assert count(guard) == before + 1 > 1


def below(directory: Path) -> list[str]:
    """Return every file below a directory, links not followed."""
    return sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_symlink() or not path.is_dir()
    )
