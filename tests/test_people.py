"""The commands for people."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import repeat_guard_cli
from tests.support import COMMAND, SESSION, Guard, tool_payload

COMMANDS = ("post-tool-use", "user-prompt-submit", "session-end", "show", "reset", "config", "demo")


def is_error(result: tuple[int, str, str], *parts: str) -> bool:
    code, out, err = result
    return (code, out, err.count("\n"), err[:14]) == (1, "", 1, "repeat-guard: ") and all(part in err for part in parts)


# The command line


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_names_every_command(arguments: list[str], guard: Guard) -> None:
    result = guard.run(*arguments)
    assert (result.code, result.err) == (0, "")
    assert all(command in result.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(command: str, guard: Guard) -> None:
    result = guard.run(command, "--help")
    assert (result.code, result.err) == (0, "")
    assert f"repeat-guard {command}" in result.out


def test_the_version(guard: Guard) -> None:
    assert guard.run("--version") == (0, f"repeat-guard {repeat_guard_cli.__version__}\n", "")


def test_shell_completion(guard: Guard) -> None:
    result = guard.run(
        _TYPER_COMPLETE_ARGS="repeat-guard sh",
        _REPEAT_GUARD_COMPLETE="complete_bash",
        COMP_WORDS="repeat-guard sh",
        COMP_CWORD="1",
    )
    assert "show" in result.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["post-tool-usee"], "post-tool-usee"),
        (["--bogus"], "--bogus"),
        (["post-tool-use", "--bogus"], "--bogus"),
        (["post-tool-use", "extra"], "extra"),
        (["show", "a", "b"], "b"),
        (["show", "--json", "--watch"], "--json and --watch"),
        (["reset"], "--all"),
        (["reset", "x", "--all"], "--all"),
        (["reset", "nobody"], "no session begins with 'nobody'"),
        (["show", "nobody"], "no session begins with 'nobody'"),
        (["config", "extra"], "extra"),
        ([""], "repeat-guard --help"),
    ],
)
def test_mistakes_are_one_line_and_exit_1(arguments: list[str], said: str, guard: Guard) -> None:
    assert is_error(guard.run(*arguments), said)
    assert is_error(guard.run(*arguments, stdin=b"{}" * 2_000_000), said)


def test_a_mistyped_registration_reads_its_input(guard: Guard) -> None:
    """Agents report a broken pipe as a failing hook."""
    process = subprocess.Popen(
        [COMMAND, "post-tool-usee"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=guard.environment,
        cwd=guard.home,
    )
    assert process.stdin
    process.stdin.write(b"x" * 8_000_000)
    process.stdin.close()
    assert process.wait(30) == 1
    for stream in (process.stdout, process.stderr):
        assert stream
        stream.close()


def test_a_reader_that_has_seen_enough_is_no_error(guard: Guard) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" --help | :; "$0" show --json | head -c 1', COMMAND],
        env=guard.environment,
        cwd=guard.home,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{", b"")


# show


def test_nothing_yet_says_what_to_do(guard: Guard) -> None:
    result = guard.run("show")
    assert (result.code, result.err) == (0, "")
    assert "No sessions yet" in result.out
    assert "repeat-guard demo" in " ".join(result.out.split())
    assert guard.shown() == []
    assert not guard.state.exists()


def test_show_prints_the_chains(guard: Guard) -> None:
    for _ in range(4):
        guard.call("Bash", {"command": "ls"})
    guard.call("Read", {"file_path": "/x"}, agent_id="a17")
    result = guard.run("show", COLUMNS="120")
    assert (result.code, result.err) == (0, "")
    header, main, agent = sorted(result.out.splitlines(), key=lambda line: ("main" in line, "a17" in line))
    assert header.split() == ["session", "agent", "tool", "count", "next", "when", "arguments"]
    assert main.split()[1:5] == ["a17", "Read", "1", "3"]
    assert agent.split()[1:5] == ["main", "Bash", "4", "5"]
    assert agent.rstrip().endswith('{"command":"ls"}')


@pytest.mark.parametrize("width", [80, 60])
def test_show_keeps_its_columns_on_a_narrow_terminal(width: int, guard: Guard) -> None:
    for _ in range(4):
        guard.call("Bash", {"command": "grep -rn handle_retry src " * 9})
    header, row = guard.run("show", COLUMNS=str(width)).out.splitlines()
    assert header.split() == ["session", "agent", "tool", "count", "next", "when", "arguments"]
    assert row.split()[1:5] == ["main", "Bash", "4", "5"]
    assert len(row) <= width


def test_show_json(guard: Guard) -> None:
    before = time.time()
    for _ in range(9):
        guard.call("Bash", {"command": "ls"})
    guard.call("Read", {"file_path": "/x"}, agent_id="a17")
    (session,) = guard.shown()
    assert list(session) == ["session_id", "updated_at", "chains"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", session["updated_at"])
    read, bash = session["chains"]
    assert read.pop("updated_at") >= bash.pop("updated_at") >= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(before))
    assert read == {
        "agent_id": "a17",
        "tool_name": "Read",
        "count": 1,
        "next_threshold": 3,
        "arguments_preview": '{"file_path":"/x"}',
    }
    assert bash == {
        "agent_id": None,
        "tool_name": "Bash",
        "count": 9,
        "next_threshold": None,
        "arguments_preview": '{"command":"ls"}',
    }


def test_show_json_tells_every_text_as_it_came(guard: Guard) -> None:
    names = ["a\nb", 'q"\\', "\x1b[31m", "é", "\ud83d", "[bold]x"]
    for name in names:
        guard.call(name, {"s": name}, session_id=name, agent_id=name)
    sessions = guard.shown()
    assert sorted(session["session_id"] for session in sessions) == sorted(names)
    assert sorted(session["chains"][0]["tool_name"] for session in sessions) == sorted(names)
    table = guard.run("show", COLUMNS="200", PYTHONIOENCODING="ascii")
    assert (table.code, table.err) == (0, "")
    assert "\x1b" not in table.out
    assert "[bold]x" in table.out
    assert "a\\nb" in table.out


def test_a_cleared_chain_is_left_out(guard: Guard) -> None:
    guard.call()
    guard.prompt()
    (session,) = guard.shown()
    assert session["chains"] == []
    assert "no chain" in guard.run("show").out


def test_one_session_in_detail(guard: Guard) -> None:
    for name in ("5e55aaaa", "5e55bbbb", "77", "775"):
        guard.call(session_id=name)
    result = guard.run("show", "5e55b")
    assert (result.code, result.err) == (0, "")
    assert "5e55bbbb" in result.out
    assert "count      1" in result.out
    assert "5e55aaaa" not in result.out
    assert [s["session_id"] for s in json.loads(guard.run("show", "5e55a", "--json").out)["sessions"]] == ["5e55aaaa"]
    assert guard.run("show", "77").code == 0, "a whole id is no start of another"
    assert is_error(guard.run("show", "5e55"), "2 session ids", "5e55aaaa")


def test_unreadable_files_are_skipped_and_named(guard: Guard) -> None:
    guard.call()
    bad = guard.state / "sessions" / "bad.json"
    bad.write_text("{")
    for arguments in (["show"], ["show", "--json"]):
        result = guard.run(*arguments)
        assert result.code == 0
        assert result.err.startswith(f"repeat-guard: skipped {bad}: ")
        assert result.err.count("\n") == 1
        assert SESSION[:8] in result.out


def test_watch_refreshes_until_ctrl_c(guard: Guard) -> None:
    guard.call("Read", {"file_path": "/x"})
    process = subprocess.Popen(
        [COMMAND, "show", "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**guard.environment, "TTY_COMPATIBLE": "1", "FORCE_COLOR": "1", "TERM": "xterm"},
        cwd=guard.home,
    )
    assert process.stdout
    os.set_blocking(process.stdout.fileno(), False)
    seen = b""

    def wait_for(text: bytes) -> None:
        nonlocal seen
        deadline = time.monotonic() + 30
        while text not in seen:
            assert time.monotonic() < deadline, seen
            seen += process.stdout.read() or b"" if process.stdout else b""
            time.sleep(0.02)

    wait_for(b"Read")
    guard.call("Glob", {"pattern": "*"})
    wait_for(b"Glob")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")


# reset


def test_reset_forgets_one_session_and_says_so(guard: Guard) -> None:
    guard.call(session_id="one")
    guard.call(session_id="two")
    assert guard.run("reset", "on") == (0, "forgot session 'one': 1 chain\n", "")
    assert [session["session_id"] for session in guard.shown()] == ["two"]


def test_reset_all_forgets_damaged_files_too(guard: Guard) -> None:
    guard.call(session_id="one")
    (guard.state / "sessions" / "bad.json").write_text("{")
    result = guard.run("reset", "--all")
    assert (result.code, result.err) == (0, "")
    assert "forgot session 'one': 1 chain" in result.out
    assert "removed 1 unreadable file" in result.out
    assert not list((guard.state / "sessions").iterdir())
    assert guard.run("reset", "--all").out == f"nothing to forget in {guard.state}\n"


# config


def test_config_reads_well(guard: Guard) -> None:
    result = guard.run("config", REPEAT_GUARD_EXCLUDE="mcp__*", COLUMNS="150")
    assert (result.code, result.err) == (0, "")
    rows = [line.split() for line in result.out.splitlines()]
    assert ["exclude", '["mcp__*"]', "REPEAT_GUARD_EXCLUDE"] in rows
    assert ["thresholds", "[3,5,8]", "default"] in rows
    assert ["state", str(guard.state)] in rows


# demo


def test_demo_touches_nothing_of_the_users(guard: Guard) -> None:
    temporary = guard.home / "tmp"
    temporary.mkdir()
    result = guard.run("demo", TMPDIR=str(temporary), REPEAT_GUARD_THRESHOLDS="wrong", REPEAT_GUARD_OFF="1")
    assert (result.code, result.err) == (0, "")
    assert guard.files() == []
    assert not list(temporary.iterdir())
    counts = [int(found) for found in re.findall(r"^ *\d+\. +(\d+) x", result.out, re.MULTILINE)]
    assert counts == [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 2, 3, 1]
    told = re.findall(r"called\s+(\d+)\s+times", result.out)
    assert told == ["3", "5", "8", "3"]
    assert "14 tool calls, 4 reminders" in result.out


# examples


def test_the_examples_can_be_piped_in(guard: Guard) -> None:
    examples = Path(__file__).parent.parent / "examples"
    call, step, prompt, end = (
        (examples / f"{name}.json").read_bytes() for name in ("tool-call", "step", "prompt", "session-end")
    )
    assert [bool(guard.hook("post-tool-use", call).reminder) for _ in range(3)] == [False, False, True]
    assert "3 times" in guard.hook("post-tool-use", step).reminder
    assert guard.hook("user-prompt-submit", prompt) == (0, "", "")
    assert guard.counts("example") == {}
    assert guard.hook("session-end", end) == (0, "", "")
    assert guard.shown() == []


def test_tests_do_not_reach_the_real_home(guard: Guard) -> None:
    real = os.path.realpath(os.path.expanduser("~"))
    assert "no-home" in real
    assert guard.environment["HOME"] == str(guard.home)
    assert guard.hook("post-tool-use", tool_payload("Bash", {}), REPEAT_GUARD_STATE_DIR="").code == 0
    assert [name for name in guard.files() if name.endswith(".json")] == [
        f".local/state/repeat-guard/sessions/{SESSION}.json"
    ]
