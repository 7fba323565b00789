"""Standard input, output and error as no host should leave them."""

import contextlib
import json
import os
import pty
import resource
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.support import COMMANDS, LONG, call, count, counts_again, feed, finish, judge, payload_of, start
from tests.support import COMMAND, Guard, Result, tool_payload


def through_a_shell(guard: Guard, line: str, stdin: bytes = b"") -> Result:
    """Run a shell line in which `$0` is the program; redirections say what the streams are."""
    done = subprocess.run(
        ["/bin/sh", "-c", line, COMMAND],
        input=stdin,
        capture_output=True,
        env=guard.environment,
        cwd=guard.home,
        timeout=60,
        check=False,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


# Standard input


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("redirection", "said"),
    [
        pytest.param("<&-", "the input is empty", id="closed"),
        pytest.param("</dev/null", "the input is empty", id="empty"),
        pytest.param("0>write-only", "can't read standard input", id="open for writing alone"),
    ],
)
def test_no_input(command: str, redirection: str, said: str, guard: Guard) -> None:
    result = judge(through_a_shell(guard, f'"$0" {command} {redirection}'), 1)
    assert said in result.err
    assert not guard.state.exists()


def test_a_directory_as_input(guard: Guard) -> None:
    """The interpreter itself refuses it before the program's first line."""
    assert through_a_shell(guard, '"$0" post-tool-use < .').code == 1


def test_no_stream_at_all(guard: Guard) -> None:
    for command in COMMANDS:
        assert through_a_shell(guard, f'"$0" {command} <&- >&- 2>&-; test $? = 1').code == 0
    assert not guard.state.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal(command: str, guard: Guard) -> None:
    """A person tries it out: a hint at once, instead of a wait."""
    ours, theirs = pty.openpty()
    try:
        before = time.monotonic()
        process = start(guard, command, stdin=theirs)
        out, err = process.communicate(timeout=30)
        result = judge(Result(process.returncode, out.decode(), err.decode()), 1)
        assert "reads a hook event from standard input" in result.err
        assert time.monotonic() - before < 1
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("command", COMMANDS if LONG else ["post-tool-use", "session-end"])
def test_a_host_that_never_closes_the_pipe(command: str, guard: Guard) -> None:
    """A bounded wait, then what came is judged."""
    guard.call()
    before = time.monotonic()
    process = start(guard, command)
    assert process.stdin
    process.stdin.write(json.dumps(payload_of(command)).encode())
    process.stdin.flush()
    assert process.wait(30) == 0
    assert 0.9 < time.monotonic() - before < 7
    finish(process)
    assert count(guard) == (2 if command == "post-tool-use" else 0)


def test_a_host_that_stops_in_the_middle(guard: Guard) -> None:
    process = start(guard, "session-end")
    assert process.stdin
    process.stdin.write(b'{"session_id": "x", "hook_event_na')
    process.stdin.flush()
    process.wait(30)
    assert "not JSON" in judge(finish(process), 1).err


def test_a_host_that_writes_for_ever(guard: Guard) -> None:
    """The wait is bounded though something can always be read, and so is what is kept of it."""
    before = time.monotonic()
    process = start(
        guard,
        "session-end",
        stdin=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
    )
    assert process.stdin

    def write() -> None:
        try:
            while True:
                os.write(stdin, b"x" * 65_536)
        except OSError:
            pass

    stdin = process.stdin.fileno()
    writer = threading.Thread(target=write)
    writer.start()
    process.wait(30)
    assert time.monotonic() - before < 6
    writer.join(30)
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.stdin = None
    judge(finish(process), 1)


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_input_in_pieces(size: int, guard: Guard) -> None:
    data = call(1, tool_response="x" * 40 * size)
    process = start(guard)
    assert process.stdin
    for at in range(0, len(data), max(size, len(data) // 20)):
        process.stdin.write(data[at : at + max(size, len(data) // 20)])
        process.stdin.flush()
        time.sleep(0.005)
    judge(finish(process), 0)
    assert count(guard) == 1


def test_input_from_a_socket(guard: Guard) -> None:
    """As Node.js does on some systems; not blocking either."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    process = start(guard, stdin=theirs)
    theirs.close()
    time.sleep(0.1)
    ours.sendall(call(1))
    ours.close()
    judge(finish(process), 0)
    assert count(guard) == 1


def test_input_from_a_file(guard: Guard, tmp_path: Path) -> None:
    file = tmp_path / "event.json"
    file.write_bytes(call(1))
    with file.open("rb") as stdin:
        judge(finish(start(guard, stdin=stdin)), 0)
    assert count(guard) == 1


def wrong_settings(guard: Guard) -> dict[str, str]:
    (guard.home / "wrong.toml").write_text("thresholds = []")
    return {"REPEAT_GUARD_CONFIG": str(guard.home / "wrong.toml")}


@pytest.mark.parametrize("command", [*COMMANDS, "post-tool-usee"])
@pytest.mark.parametrize(
    "why",
    ["off", "wrong settings", "no such settings", "unusable state", "excluded", "no session", "other event", "no JSON"],
)
def test_all_of_the_input_is_read(why: str, command: str, guard: Guard) -> None:
    """A host that writes 8 MB and reports a broken pipe as a failing hook."""
    environment: dict[str, str] = {}
    known = command if command in COMMANDS else "post-tool-use"
    payload: dict[str, Any] = {**payload_of(known), "tool_response": "x" * 8_000_000}
    if why == "off":
        environment["REPEAT_GUARD_OFF"] = "1"
    elif why == "wrong settings":
        environment = wrong_settings(guard)
    elif why == "no such settings":
        environment["REPEAT_GUARD_CONFIG"] = "/nowhere/at/all.toml"
    elif why == "unusable state":
        guard.state.write_bytes(b"")
    elif why == "excluded":
        environment["REPEAT_GUARD_EXCLUDE"] = "*"
    elif why == "no session":
        del payload["session_id"]
    elif why == "other event":
        payload["hook_event_name"] = "Notification"
    data = b"x" * 8_000_000 if why == "no JSON" else json.dumps(payload).encode()
    process = start(guard, command, env={**guard.environment, **environment})
    assert process.stdin
    sent = 0
    while sent < len(data):  # raises BrokenPipeError where the reader is gone
        sent += os.write(process.stdin.fileno(), data[sent : sent + 65_536])
    judge(finish(process))


# Standard output and error


def two_calls(guard: Guard) -> None:
    guard.call()
    guard.call()


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full", "1<input"])
def test_an_output_that_takes_nothing(redirection: str, guard: Guard) -> None:
    """The reminder isn't lost: the state is left as it was, and the next call draws it."""
    (guard.home / "input").touch()
    two_calls(guard)
    result = judge(through_a_shell(guard, f'"$0" post-tool-use {redirection}', call(1)), 1)
    assert "can't write the reply" in result.err
    assert count(guard) == 2
    assert "3 times" in guard.call().reminder
    assert not [name for name in guard.files() if name.endswith(".tmp")]


def test_a_reader_that_is_gone(guard: Guard) -> None:
    two_calls(guard)
    process = start(guard)
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    result = judge(finish(process, call(1)), 1)
    assert "Broken pipe" in result.err
    assert count(guard) == 2
    assert "3 times" in guard.call().reminder


def test_nothing_to_say_needs_no_output(guard: Guard) -> None:
    for redirection in (">&-", ">/dev/full", "2>&-", "2>/dev/full"):
        assert judge(through_a_shell(guard, f'"$0" post-tool-use {redirection}', call(1))).code == 0
    assert count(guard) == 1, "one call, reported four times"


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_no_error_stream(redirection: str, guard: Guard) -> None:
    """Nobody is there to be told; the exit code says it all the same."""
    for number in range(3):
        assert through_a_shell(guard, f'"$0" post-tool-use {redirection}', call(number)).code == 0
    assert count(guard) == 3
    for line in (
        f'"$0" post-tool-use {redirection}',
        f'"$0" post-tool-usee {redirection}',
        f'"$0" show x {redirection}',
    ):
        result = through_a_shell(guard, line, b"no JSON")
        assert (result.code, result.out, result.err) == (1, "", "")
    state = {path: path.read_bytes() for path in guard.state.rglob("*.json")}
    assert all(b"repeat-guard:" not in data for data in state.values())
    counts_again(guard)


@pytest.mark.parametrize("arguments", [["show"], ["show", "--json"], ["config"], ["--help"], ["--version"]])
def test_people_without_an_output(arguments: list[str], guard: Guard) -> None:
    guard.call()
    line = " ".join(arguments)
    for redirection in (">&-", ">/dev/full"):
        result = through_a_shell(guard, f'"$0" {line} {redirection}')
        assert result.code in (0, 1)
        assert "Traceback" not in result.err
        assert "internal error" not in result.err
        assert result.err.count("\n") <= 1


def test_a_slow_reader(guard: Guard) -> None:
    """A reply that isn't read for a while is not in anybody's way."""
    two_calls(guard)
    process = start(guard)
    feed(process, call(1))
    time.sleep(0.3)
    guard.call()
    assert "3 times" in judge(finish(process)).reminder
    assert count(guard) == 4


@pytest.mark.skipif(not LONG, reason="the long form only: takes seconds and a GB")
def test_an_output_of_100_mb(guard: Guard) -> None:
    data = json.dumps(tool_payload("Bash", {"command": "ls"}, "big", tool_response="x\u00e9" * 14_500_000)).encode()
    assert len(data) > 100_000_000
    judge(finish(start(guard), data), 0)
    assert count(guard) == 1
    judge(finish(start(guard), data[:-1]), 1)
    assert count(guard) == 1
