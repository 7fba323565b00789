"""`scan` on transcripts whose answers were worked out by hand."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repeat_guard_cli import guard as guard_rules
from repeat_guard_cli import model, payload, settings
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.people import scan
from repeat_guard_cli.transcripts import claude_code, codex, events, files
from tests.conftest import ROOT
from tests.support import COMMAND, Guard
from tests.transcripts import Claude, Codex, at, runs


def found(guard: Guard, *arguments: str | Path, **environment: str) -> dict[str, Any]:
    result = guard.run("scan", "--json", *map(str, arguments), **environment)
    assert (result.code, result.err) == (0, ""), result
    return json.loads(result.out)


def only_run(document: dict[str, Any]) -> dict[str, Any]:
    (run,) = [run for session in document["sessions"] for stream in session["streams"] for run in stream["runs"]]
    return run


# What a run is


def test_a_run_of_claude_code(guard: Guard) -> None:
    lines = Claude()
    lines.prompt()
    for word in ("Look", "Search", "Find", "Check", "List"):
        lines.call("Bash", {"command": "grep -rn x", "description": word}, "Exit code 1", failed=True)
    lines.call("Read", {"file_path": "/a"})
    path = lines.write(guard.home / "one.jsonl")

    document = found(guard, path)
    (session,) = document["sessions"]
    assert {name: session[name] for name in ("path", "agent", "session_id", "version", "calls")} == {
        "path": str(path),
        "agent": "claude-code",
        "session_id": "s1",
        "version": "2.1.200",
        "calls": 6,
    }
    run = only_run(document)
    assert run == {
        "tool_name": "Bash",
        "arguments_preview": '{"command":"grep -rn x","description":"Look"}',
        "count": 5,
        "first_at": at(1),
        "last_at": at(9),
        "seconds": 8.0,
        "all_failed": True,
        "failed": 5,
        "results": "same",
        "kind": "loop",
        "tokens_after_first_threshold": 200,  # the fourth and the fifth message
        "ended_by": "call",
        "reminders": [{"count": 3, "at": at(5)}, {"count": 5, "at": at(9)}],
        "hook_tool_name": "Bash",
        "unseen_by_hook": 0,
        "unseen_why": None,
        "redacted": False,
    }
    summary = document["summary"]
    assert (summary["calls"], summary["repeated_calls"], summary["runs"], summary["loops"]) == (6, 4, 1, 1)
    assert (summary["reminders"], summary["tokens_after_first_threshold"]) == (2, 200)


def test_a_message_costs_once(guard: Guard) -> None:
    """Three parallel calls, then two messages of two lines each, and a text that follows the run."""
    lines = Claude()
    calls = [lines.use("Read", {"file_path": "/a"}) for _ in range(7)]
    lines.answer(*calls[:3], tokens=1_000)
    lines.answer({"type": "text", "text": "Again."}, *calls[3:5], tokens=70)
    lines.answer({"type": "thinking", "thinking": "Hm."}, message="m", tokens=500)
    lines.answer(*calls[5:], message="m", tokens=500)
    lines.answer({"type": "text", "text": "Done."}, tokens=9_000)
    document = found(guard, lines.write(guard.home / "one.jsonl"))
    run = only_run(document)
    assert (run["count"], run["tokens_after_first_threshold"], run["ended_by"]) == (7, 570, "end")
    assert run["results"] == "unknown"
    assert not run["all_failed"]


def test_messages_that_a_gateway_gives_one_id_are_messages_of_their_own(guard: Guard) -> None:
    """Their lines are told apart by the tokens that went in, which are the same on every line of a message."""
    lines = Claude()
    for number in range(5):
        lines.answer({"type": "text", "text": "Again."}, lines.use("Read", {}), message="msg_1", tokens=100 + number)
    document = found(guard, lines.write(guard.home / "one.jsonl"))
    assert only_run(document)["tokens_after_first_threshold"] == 103 + 104


NOTIFICATION = "<task-notification>\n<status>done</status>\n</task-notification>"


@pytest.mark.parametrize(
    ("text", "fields", "resets"),
    [
        pytest.param("try something else", {}, True, id="a person's prompt"),
        pytest.param([{"type": "text", "text": "try"}], {}, True, id="a prompt of parts"),
        pytest.param("<command-name>/review</command-name>", {}, True, id="a command"),
        pytest.param("typed", {"promptSource": "typed", "origin": {"kind": "human"}}, True, id="typed"),
        pytest.param("asked", {"promptSource": "sdk"}, True, id="by a program"),
        pytest.param("Caveat", {"isMeta": True}, False, id="meta"),
        pytest.param("Summary", {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}, False, id="compaction"),
        pytest.param("This session is being continued from a previous conversation", {}, False, id="old compaction"),
        pytest.param("<local-command-stdout>ok</local-command-stdout>", {}, False, id="output of a local command"),
        pytest.param("[Request interrupted by user]", {}, False, id="interruption"),
        pytest.param(NOTIFICATION, {}, False, id="the end of a background task"),
        pytest.param("it is over", {"origin": {"kind": "task-notification"}}, False, id="the same, by its origin"),
        pytest.param("later", {"promptSource": "loop_wakeup"}, False, id="a wake-up"),
    ],
)
def test_what_resets(guard: Guard, text: Any, fields: dict[str, Any], resets: bool) -> None:
    lines = Claude()
    lines.call(), lines.call()
    lines.prompt(text, **fields)
    lines.add({"type": "summary", "summary": "Tests", "leafUuid": "u1"})
    lines.add({**lines.line("system", None), "subtype": "compact_boundary"})
    lines.call(), lines.call()
    document = found(guard, lines.write(guard.home / "one.jsonl"), "--min-run", "2")
    assert runs(document) == ([(None, "Bash", 2)] * 2 if resets else [(None, "Bash", 4)])
    ends = [run["ended_by"] for run in document["sessions"][0]["streams"][0]["runs"]]
    assert ends == (["prompt", "end"] if resets else ["end"])


def test_polling_is_told_from_loops(guard: Guard) -> None:
    lines = Claude()
    for number in range(4):
        lines.call("TaskOutput", {"task_id": "t"}, f"{number} of 4 done")
    for number in range(3):
        lines.call("Bash", {"command": "make"}, f"ok <system-reminder>{number} left</system-reminder>")
    document = found(guard, lines.write(guard.home / "one.jsonl"))
    kinds = {run["tool_name"]: run["kind"] for run in document["summary"]["worst_runs"]}
    assert kinds == {"TaskOutput": "polling", "Bash": "loop"}
    tools = {tool["tool_name"]: tool for tool in document["summary"]["tools"]}
    assert (tools["TaskOutput"]["polling"], tools["TaskOutput"]["exclude"]) == (1, 'exclude = ["TaskOutput"]')
    assert (tools["Bash"]["polling"], tools["Bash"]["exclude"]) == (0, None)
    assert 'exclude = ["TaskOutput"]' in guard.run("scan", str(guard.home)).out


def test_the_keys_are_the_hook_s(guard: Guard) -> None:
    """Integers beyond doubles, which orjson reads as floats, and lone surrogates, which it refuses."""
    lines = Claude()
    for number in (2**64, 2**64, 2**64 + 1):
        lines.call("mcp__x", {"id": number})
    for arguments in ({"a": 1, "b": 2.0}, {"b": 2, "a": 1.0}):
        lines.call("mcp__y", arguments)
    for _ in range(2):
        lines.call("mcp__z", {"text": "\ud83d"})
    document = found(guard, lines.write(guard.home / "one.jsonl"), "--min-run", "2")
    assert runs(document) == [(None, "mcp__x", 2), (None, "mcp__y", 2), (None, "mcp__z", 2)]
    rollout = Codex()
    for number in (2**64, 2**64, 2**64 + 1):
        rollout.call("mcp__x", {"id": number})
    rollout.call("broken", '{"a": '), rollout.call("broken", '{"a": ')
    document = found(guard, rollout.write(guard.home / "two.jsonl"), "--min-run", "2")
    assert runs(document) == [(None, "mcp__x", 2), (None, "broken", 2)]


@pytest.mark.parametrize("number", [b"1.5", b"36893488147419103232"], ids=["a fraction", "beyond 64 bits"])
def test_arguments_nested_too_deeply_to_compare_are_calls_of_their_own(number: bytes, guard: Guard) -> None:
    nested = b"[" * 990 + number + b"]" * 990
    claude, rollout = Claude(), Codex()
    for _ in range(3):
        claude.call("mcp__x", "NESTED", "NESTED")
        rollout.call("mcp__x", {"a": "NESTED"}, "NESTED")
    for _ in range(3):
        claude.call("Read", {"file_path": "/a"}, ["NESTED"])
    (guard.home / "one.jsonl").write_bytes(claude.data().replace(b'"NESTED"', nested))
    (guard.home / "two.jsonl").write_bytes(rollout.data().replace(b'\\"NESTED\\"', nested))
    document = found(guard, guard.home)
    assert (document["summary"]["calls"], runs(document)) == (9, [(None, "Read", 3)])
    assert only_run(document)["results"] in ("same", "unknown")  # some versions of Python compare what others cannot


# Subagents


def subagent(agent_id: str = "a1", **fields: Any) -> Claude:
    lines = Claude(agent_id=agent_id, **fields)
    lines.prompt("look for it")
    for _ in range(3):
        lines.call("Grep", {"pattern": agent_id})
    return lines


def test_sidechains_in_the_session_s_file(guard: Guard) -> None:
    """1.0: subagents share one stream and have no id; another one begins with a line without a parent."""
    lines = Claude(version="1.0.98")
    for number in range(6):
        lines.call("Read", {"file_path": "/main"})
        lines.fields["isSidechain"] = True
        if number in (0, 3):
            lines.add(lines.line("user", {"role": "user", "content": "look"}, parentUuid=None))
        lines.call("Grep", {"pattern": "x"})
        lines.fields["isSidechain"] = False
    document = found(guard, lines.write(guard.home / "one.jsonl"))
    assert runs(document) == [(None, "Read", 6), ("sidechain", "Grep", 3), ("sidechain", "Grep", 3)]


@pytest.mark.parametrize("folder", ["", "s1/subagents", "s1/subagents/workflows/wf_1"])
def test_files_of_subagents(folder: str, guard: Guard) -> None:
    """2.0.28: beside the session's; 2.1: below it. What the session's own file repeats of them counts once."""
    main = Claude(version="2.1.20")
    main.call("Task", {"prompt": "look"})
    for line in subagent("a1").lines:
        main.progress("a1", json.loads(line))
    own = main.write(guard.home / "p" / "s1.jsonl")
    subagent("a1").write(guard.home / "p" / folder / "agent-a1.jsonl")
    subagent("a2").write(guard.home / "p" / folder / "agent-a2.jsonl")
    (guard.home / "p" / folder / "journal.jsonl").write_text('{"type":"started","key":"k","agentId":"a1"}\n')
    document = found(guard, guard.home / "p")
    (session,) = document["sessions"]
    assert (session["path"], session["calls"], len(session["subagent_paths"])) == (str(own), 7, 2)
    assert runs(document) == [("a1", "Grep", 3), ("a2", "Grep", 3)]
    assert runs(found(guard, own)) == [("a1", "Grep", 3)], "their own files were not asked for"


def test_a_call_that_stands_twice_in_one_file_counts_once(guard: Guard) -> None:
    main = Claude(version="2.1.20")
    for line in subagent("a1").lines:
        main.add(line)
        main.progress("a1", json.loads(line))
    assert runs(found(guard, main.write(guard.home / "s1.jsonl"))) == [("a1", "Grep", 3)]


def test_an_id_with_other_arguments_is_another_call(guard: Guard) -> None:
    lines = Claude()
    for command in ("a", "a", "b", "a"):
        lines.answer(lines.use("Bash", {"command": command}, "toolu_0"))
    assert found(guard, lines.write(guard.home / "one.jsonl"))["summary"]["calls"] == 2


# Codex


def test_a_run_of_codex(guard: Guard) -> None:
    lines = Codex()
    lines.prompt()
    lines.tokens(50)
    for number in range(5):
        wall = f"Chunk ID: {number}\nWall time: 0.{number} seconds\nProcess exited with code 1\nOutput:\nno such file"
        lines.call("exec_command", {"cmd": "cat x", "workdir": "/w"}, wall, tokens=100 + number)
        lines.event(type="token_count", info=None, rate_limits={})
        lines.event(type="token_count", info={"total_token_usage": {"total_tokens": lines.total}}, rate_limits={})
    lines.add(lines.wrapped("compacted", {"message": "", "replacement_history": []}))
    lines.event(type="exec_command_end", call_id="call_c1_5", command=["cat", "x"])
    lines.prompt()
    lines.call("exec_command", {"cmd": "cat x", "workdir": "/w"})
    document = found(guard, lines.write(guard.home / "rollout-1.jsonl"))
    (session,) = document["sessions"]
    assert (session["agent"], session["session_id"], session["version"], session["calls"]) == (
        "codex",
        "c1",
        "0.142.4",
        6,
    )
    run = only_run(document)
    assert (run["count"], run["results"], run["all_failed"], run["ended_by"]) == (5, "same", True, "prompt")
    assert run["tokens_after_first_threshold"] == 103 + 104
    assert run["hook_tool_name"] == "Bash"


def test_the_other_calls_of_codex(guard: Guard) -> None:
    lines = Codex(version="0.63.0")
    for number in range(2):
        lines.item(type="custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id=f"p{number}")
        lines.item(
            type="custom_tool_call_output", call_id=f"p{number}", output='{"output":"ok","metadata":{"exit_code":0}}'
        )
    for number in range(2):
        lines.item(type="local_shell_call", action={"type": "exec", "command": ["ls"]}, call_id=f"l{number}")
    for _ in range(2):
        lines.item(type="web_search_call", status="completed", action={"type": "search", "query": "x"})
    document = found(guard, lines.write(guard.home / "rollout-1.jsonl"), "--min-run", "2")
    assert runs(document) == [(None, "apply_patch", 2), (None, "local_shell", 2), (None, "web_search", 2)]
    assert [run["results"] for run in document["summary"]["worst_runs"]] == ["same", "unknown", "unknown"]


def test_an_old_rollout(guard: Guard) -> None:
    lines = Codex(legacy=True)
    lines.prompt("<user_instructions>be brief</user_instructions>")
    lines.call("shell", {"command": ["ls"]}, '{"output":"a","metadata":{"exit_code":0,"duration_seconds":0.1}}')
    lines.add({"record_type": "state"})
    lines.call("shell", {"command": ["ls"]}, '{"output":"a","metadata":{"exit_code":0,"duration_seconds":0.2}}')
    lines.prompt("<environment_context>x</environment_context>")
    lines.call("shell", {"command": ["ls"]}, '{"output":"a","metadata":{"exit_code":0,"duration_seconds":0.3}}')
    lines.prompt("and now?")
    lines.call("shell", {"command": ["ls"]})
    run = only_run(found(guard, lines.write(guard.home / "rollout-1.jsonl")))
    assert (run["count"], run["results"], run["failed"], run["ended_by"]) == (3, "same", 0, "prompt")
    assert (run["first_at"], run["seconds"]) == (None, None)


def test_a_subagent_of_codex(guard: Guard) -> None:
    lines = Codex("child", session_id="root", source={"subagent": {"thread_spawn": {}}})
    for _ in range(3):
        lines.call()
    document = found(guard, lines.write(guard.home / "rollout-1.jsonl"))
    assert document["sessions"][0]["session_id"] == "root"
    assert runs(document) == [("child", "exec_command", 3)]


# Lines


def test_broken_and_unknown_lines(guard: Guard) -> None:
    lines = Claude()
    lines.add(b"\xef\xbb\xbf" + json.dumps({"type": "mode", "mode": "normal", "sessionId": "s1"}).encode())
    lines.call()
    for line in (
        b"nonsense",
        b'{"type":"assistant","message":',
        b"[1]",
        b"",
        b'{"type": "from-the-future", "message": 7}',
    ):
        lines.add(line)
    lines.add(json.dumps(lines.line("user", {"content": "x" * 5_000})).encode()[:3_000])
    lines.add({**lines.line("progress", None), "data": {"type": "bash_progress", "fullOutput": "x" * 5_000}})
    lines.add({"type": "progress", "data": 7, "sessionId": "s1"})
    lines.call()
    lines.add(lines.line("assistant", {"content": [7, {"type": "tool_use"}, {"type": "tool_use", "name": 7}]}))
    path = lines.write(guard.home / "one.jsonl")
    document = found(guard, path, "--min-run", "2")
    assert document["summary"]["broken_lines"] == 4
    assert runs(document)[0] == (None, "Bash", 2)
    assert "Left out: 4 broken lines." in guard.run("scan", str(path)).out


@pytest.mark.parametrize("small", [0, 10**9])
def test_what_is_left_out_early_changes_nothing(small: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every line parsed, and with none that needn't be: the same."""
    lines = Claude()
    for number in range(40):
        lines.prompt("x" * 2_000) if number % 11 == 10 else None
        lines.add({**lines.line("progress", None), "data": {"type": "hook_progress", "command": "x" * 2_000}})
        lines.call("Bash", {"command": f"{number // 6}", "description": "x" * 1_500}, f"{number % 9}" * 2_000)
        lines.answer({"type": "text", "text": "y" * 2_000})
    rollout = Codex()
    for number in range(40):
        rollout.prompt("x" * 2_000) if number % 11 == 10 else None
        rollout.call("shell", {"command": f"{number // 6}" * 1_000}, f"{number % 9}" * 2_000, tokens=10)
        rollout.item(type="reasoning", encrypted_content="x" * 2_000)
    readings = []
    for chosen in (small, events.SMALL_LINE):
        monkeypatch.setattr(claude_code, "SMALL_LINE", chosen)
        monkeypatch.setattr(codex, "SMALL_LINE", chosen)
        for name, one in (("c.jsonl", lines), ("r.jsonl", rollout)):
            readings.append(read(one.write(tmp_path / name)).transcript)
    assert readings[:2] == readings[2:]
    assert all(sum(stream.tokens for stream in one.streams) for one in readings if one)


def read(path: Path) -> files.Reading:
    (one,), _ = files.find([str(path)])
    return files.read(files.Task(one, "", settings.Settings({}), 3, None, frozenset()))


MOST_KILOBYTES = 250_000


def test_memory_does_not_grow_with_the_file(guard: Guard) -> None:
    """A file of 120 MB, one line of it 20 MB, takes little more than that line does."""
    lines = Claude()
    lines.call("Read", {"file_path": "/b"}, "x" * 20_000_000)
    for number in range(100):
        lines.call("Read", {"file_path": f"/{number}"}, "x" * 500_000)
    path = lines.write(guard.home / "one.jsonl")
    del lines
    document = found(guard, path)
    assert document["summary"]["calls"] == 101
    code = f"import resource, subprocess; subprocess.run([{COMMAND!r}, 'scan', {str(path)!r}], check=True)"
    code += "; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=guard.environment, check=True)
    kilobytes = int(done.stdout.split()[-1]) / (1024 if sys.platform == "darwin" else 1)
    assert kilobytes < MOST_KILOBYTES


# Questions


def looping(session_id: str = "s1", times: int = 5, **fields: Any) -> Claude:
    lines = Claude(session_id, **fields)
    for _ in range(times):
        lines.call("Bash", {"command": "make secret-thing"})
    return lines


@pytest.mark.parametrize(
    ("arguments", "reminders", "counted"),
    [
        pytest.param([], 2, 5, id="the defaults"),
        pytest.param(["--thresholds", "2,3,4"], 3, 5, id="thresholds"),
        pytest.param(["--include", "Read,mcp__*"], 0, 0, id="include"),
        pytest.param(["--exclude", "Ba*"], 0, 0, id="exclude"),
        pytest.param(["--include", ""], 2, 5, id="an empty list"),
    ],
)
def test_what_if(arguments: list[str], reminders: int, counted: int, guard: Guard) -> None:
    summary = found(guard, looping().write(guard.home / "one.jsonl"), *arguments)["summary"]
    assert (summary["reminders"], summary["tracked_calls"], summary["calls"]) == (reminders, counted, 5)


def test_the_settings_in_force(guard: Guard) -> None:
    path = looping().write(guard.home / "one.jsonl")
    (guard.home / ".repeat-guard.toml").write_text("thresholds = [4]\nignore_arguments = []\n")
    assert found(guard, path)["summary"]["reminders"] == 1
    assert found(guard, path, REPEAT_GUARD_THRESHOLDS="2,3")["summary"]["reminders"] == 2
    (guard.home / ".repeat-guard.toml").write_text("thresholds = [1]\n")
    result = guard.run("scan", str(path), "--json")
    assert (result.code, json.loads(result.out)["summary"]["reminders"]) == (0, 2)
    assert "ignored: " in result.err


def test_excluding_the_hook_s_name_or_the_transcript_s(guard: Guard) -> None:
    lines = Codex()
    for _ in range(3):
        lines.call()
    path = lines.write(guard.home / "rollout-1.jsonl")
    assert [found(guard, path, "--exclude", name)["summary"]["runs"] for name in ("Bash", "exec_command", "x")] == [
        0,
        0,
        1,
    ]
    assert [found(guard, path, "--include", name)["summary"]["runs"] for name in ("Bash", "exec_command", "x")] == [
        1,
        1,
        0,
    ]


def test_since(guard: Guard) -> None:
    now = datetime.now(timezone.utc)
    looping("new", start=now.replace(microsecond=0)).write(guard.home / "t/new.jsonl")
    looping("old").write(guard.home / "t/old.jsonl")
    untouched = looping("older", start=now).write(guard.home / "t/older.jsonl")
    os.utime(untouched, (time.time() - 90 * 86_400,) * 2)
    for period, sessions in (("12h", {"new"}), ("30d", {"new"}), ("9999w", {"new", "old", "older"})):
        document = found(guard, guard.home / "t", "--since", period)
        assert {session["session_id"] for session in document["sessions"]} == sessions
    assert "no session of that time" in guard.run("scan", "--since", "1h", str(untouched)).out


def test_arguments_are_cut_or_left_out(guard: Guard) -> None:
    path = looping().write(guard.home / "one.jsonl")
    (guard.home / ".repeat-guard.toml").write_text("arguments_preview_chars = 9\n")
    assert only_run(found(guard, path))["arguments_preview"] == '{"command'
    assert only_run(found(guard, path, "--no-arguments"))["arguments_preview"] is None
    (guard.home / ".repeat-guard.toml").unlink()
    page = guard.home / "page.html"
    for arguments, shown in (([], True), (["--no-arguments"], False)):
        outputs = guard.run("scan", str(path), "--html", str(page), *arguments, COLUMNS="200").out
        outputs += guard.run("scan", str(path), "--json", *arguments).out
        assert ("secret-thing" in outputs, "secret-thing" in page.read_text()) == (shown, shown)


def test_only_one_agent(guard: Guard) -> None:
    looping().write(guard.home / "t/one.jsonl")
    Codex().write(guard.home / "t/rollout.jsonl")
    for agent in ("claude-code", "codex"):
        assert [one["agent"] for one in found(guard, guard.home / "t", "--agent", agent)["sessions"]] == [agent]


def test_the_agents_folders(guard: Guard) -> None:
    looping("a").write(guard.home / ".claude/projects/p/a.jsonl")
    Codex("b").write(guard.home / ".codex/sessions/2026/03/01/rollout-b.jsonl")
    looping("c").write(guard.home / "elsewhere/projects/p/c.jsonl")
    Codex("d").write(guard.home / "other/sessions/rollout-d.jsonl")
    assert {one["session_id"] for one in found(guard)["sessions"]} == {"a", "b"}
    moved = {"CLAUDE_CONFIG_DIR": str(guard.home / "elsewhere"), "CODEX_HOME": str(guard.home / "other")}
    assert {one["session_id"] for one in found(guard, **moved)["sessions"]} == {"c", "d"}


# What a person is told


def test_the_summary(guard: Guard) -> None:
    looping().write(guard.home / "t/one.jsonl")
    out = guard.run("scan", str(guard.home / "t"), COLUMNS="120").out
    for part in (
        "1, 2026-03-01 to 2026-03-01",
        "4 (80.0 %)",
        "1 (the longest of 5)",
        "equal results",
        "2 would have come",
    ):
        assert part in out
    assert "make secret-thing" in out


def test_nothing_to_see(guard: Guard) -> None:
    out = guard.run("scan", str(looping(times=2).write(guard.home / "one.jsonl")), COLUMNS="200").out
    assert "Nothing to see" in out
    assert "would have said nothing" in out
    assert "worst" not in out
    out = guard.run("scan", "--thresholds", "2", str(guard.home)).out
    assert "would have said nothing" not in out


@pytest.mark.parametrize(
    ("version", "content", "failed", "unseen"),
    [
        ("2.1.200", "Exit code 1", True, 0),
        ("2.0.55", "Exit code 1", True, 4),
        ("2.0.56", "Exit code 1", True, 0),
        ("2.1.117", "The user doesn't want to proceed with this tool use.", True, 4),
        ("2.1.117", "<tool_use_error>InputValidationError", True, 4),
        ("2.1.118", "<tool_use_error>InputValidationError", True, 0),
        ("2.0.55", "fine", False, 0),
        ("1.0.84", "fine", False, 4),
    ],
)
def test_where_the_hook_is_blind(version: str, content: str, failed: bool, unseen: int, guard: Guard) -> None:
    lines = Claude(version=version)
    for _ in range(4):
        lines.call(content=content, failed=failed)
    path = lines.write(guard.home / "one.jsonl")
    assert only_run(found(guard, path))["unseen_by_hook"] == unseen
    assert ("blind to 4 of these calls" in guard.run("scan", str(path), COLUMNS="200").out) == bool(unseen)


def test_codex_polling_reaches_no_hook(guard: Guard) -> None:
    lines = Codex()
    for number in range(3):
        lines.call("write_stdin", {"session_id": 1, "chars": ""}, f"Output:\n{number}")
    run = only_run(found(guard, lines.write(guard.home / "rollout-1.jsonl")))
    assert (run["kind"], run["unseen_by_hook"]) == ("polling", 3)


@pytest.mark.parametrize(
    ("command", "warned"), [("[REDACTED]", True), ("cat ***", True), ("<path>", True), ("cat a*b", False)]
)
def test_redacted_transcripts(command: str, warned: bool, guard: Guard) -> None:
    lines = Claude()
    for _ in range(4):
        lines.call("Bash", {"command": command})
    path = lines.write(guard.home / "one.jsonl")
    assert found(guard, path)["summary"]["looks_redacted"] == warned
    assert ("look redacted" in guard.run("scan", str(path), COLUMNS="200").out) == warned


def test_untrusted_text_is_made_printable(guard: Guard) -> None:
    lines = Claude()
    for _ in range(3):
        lines.call("Task\x1b[31m\n[red]", {"x": "\x1b]0;title\x07[bold]"})
    result = guard.run("scan", str(lines.write(guard.home / "one.jsonl")), COLUMNS="200")
    assert (result.code, result.err) == (0, "")
    assert "\x1b" not in result.out
    assert "[bold]" in result.out


# What can go wrong


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--since", "3x"], "12h, 30d or 8w"),
        (["--since", ""], "12h, 30d or 8w"),
        (["--agent", "gemini"], "unknown agent 'gemini'"),
        (["--thresholds", "1"], "at least 2"),
        (["--exclude", "a,,b"], "--exclude"),
        (["--min-run", "1"], "at least 2 calls"),
        (["missing.jsonl"], "can't read missing.jsonl"),
        (["notes.txt"], "notes.txt is no transcript of Claude Code or Codex"),
        (["--agent", "codex", "notes.txt"], "notes.txt is no transcript of Codex"),
        (["empty"], "no transcripts of Claude Code or Codex could be read in empty"),
        ([], "there is no "),
        (["--html", "no/such/page.html", "good.jsonl"], "can't write no/such/page.html: No such file"),
        (["--html", "empty", "good.jsonl"], "can't write empty: Is a directory"),
        (["--html", "good.jsonl", "good.jsonl"], "good.jsonl: that is a transcript"),
        (["--html", "./empty/../good.jsonl", "."], "good.jsonl: that is a transcript"),
    ],
)
def test_clear_errors(arguments: list[str], said: str, guard: Guard) -> None:
    (guard.home / "empty").mkdir()
    (guard.home / "notes.txt").write_text("{}\nhello\n")
    good = looping().write(guard.home / "good.jsonl").read_bytes()
    before = guard.files()
    result = guard.run("scan", *arguments)
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.startswith("repeat-guard: ")
    assert said in result.err
    assert guard.files() == before
    assert (guard.home / "good.jsonl").read_bytes() == good


def test_what_can_be_read_is_read(guard: Guard) -> None:
    good = looping().write(guard.home / "good.jsonl")
    unreadable = looping().write(guard.home / "unreadable.jsonl")
    unreadable.chmod(0)
    paths = [str(good), "missing.jsonl"] + ([str(unreadable)] if os.geteuid() else [])
    result = guard.run("scan", "--json", *paths)
    assert result.code == 0
    document = json.loads(result.out)
    assert document["summary"]["runs"] == 1
    assert len(document["summary"]["unreadable"]) == result.err.count("\n") == len(paths) - 1


def test_reading_only(guard: Guard) -> None:
    looping().write(guard.home / ".claude/projects/p/one.jsonl")
    (guard.home / ".config/repeat-guard").mkdir(parents=True)
    settings_file = guard.home / ".config/repeat-guard/config.toml"
    settings_file.write_text("thresholds = [2]\n")
    os.utime(settings_file, (1_700_000_000,) * 2)
    guard.state.mkdir()
    before = guard.files()
    assert guard.run("scan").code == 0
    assert guard.files() == before


# Several processes


def tasks(folder: Path, count: int = 4) -> list[files.Task]:
    for number in range(count):
        looping(f"s{number}").write(folder / f"{number}.jsonl")
    found_files, _ = files.find([str(folder)])
    return [files.Task(one, "", settings.Settings({}), 3, None, frozenset()) for one in found_files]


@pytest.fixture
def in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(scan, "_cores", lambda: 2)


@pytest.mark.usefixtures("in_parallel")
def test_several_processes_find_the_same(tmp_path: Path) -> None:
    todo = tasks(tmp_path)
    assert sorted(scan._read_all(todo)) == [files.read(task) for task in todo]


class Deadly:
    """Ends the process that it is sent to, as the kernel does when memory runs out."""

    def __reduce__(self) -> Any:
        return os._exit, (9,)


@pytest.mark.usefixtures("in_parallel")
def test_a_process_that_is_killed(tmp_path: Path) -> None:
    todo = [task._replace(agent=Deadly()) for task in tasks(tmp_path)]  # type: ignore[arg-type]
    with pytest.raises(GuardError, match="ended from outside"):
        list(scan._read_all(todo))


def test_interrupted(guard: Guard) -> None:
    """Ctrl-C reaches the whole group, in the midst of several processes' work: 130, and nothing is left of them."""
    block = looping(times=2_000).data()
    for name in ("a", "b", "c", "d"):
        (guard.home / f"{name}.jsonl").write_bytes(block * 30)
    command = [COMMAND, "scan", str(guard.home)]
    with subprocess.Popen(
        command, env=guard.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")
    for _ in range(100):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("a process is left")


# What holds in general


def documented() -> dict[str, set[str]]:
    """Return the fields that docs/scan-json.md tells, by heading."""
    fields: dict[str, set[str]] = {}
    for line in (ROOT / "docs/scan-json.md").read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("| `"):
            fields.setdefault(heading, set()).add(line.split("`")[1])
    return fields


def test_every_field_is_documented(guard: Guard) -> None:
    path = looping().write(guard.home / "one.jsonl")
    document = found(guard, path)
    session, summary = document["sessions"][0], document["summary"]
    assert documented() == {
        "The document": set(document),
        "A session": set(session),
        "A stream": set(session["streams"][0]),
        "A run": set(session["streams"][0]["runs"][0]),
        "The summary": set(summary),
        "A tool": set(summary["tools"][0]),
    }
    assert set(summary["worst_runs"][0]) == documented()["A run"] | {"path", "session_id", "agent_id"}
    text = (ROOT / "docs/scan-json.md").read_text()
    assert all(f"`{name}`" in text for name in summary["settings"])


CALLS = st.lists(
    st.one_of(
        st.sampled_from(
            [("Bash", {"command": "ls", "description": "a"}), ("Bash", {"command": "ls", "description": "b"})]
        ),
        st.sampled_from([("Read", {"command": ""}), ("Bash", {"command": ""}), ("Skip", {}), None]),
        # What one comparison of values takes for equal and another doesn't.
        st.sampled_from(
            [("Read", {"a": [value]}) for value in (1, 1.0, True, False, 0, -0.0, "1", None, 2**53, 2.0**53)]
        ),
        st.sampled_from([("Read", {"a": 1, "b": {"c": 1}}), ("Read", {"b": {"c": 1.0}, "a": 1}), ("Read", [])]),
    ),
    max_size=40,
)


@given(CALLS)
def test_it_counts_as_the_hook_does(calls: list[tuple[str, Any] | None]) -> None:
    """The same calls and prompts (`None`), once as a transcript and once as the hook's events."""
    chosen = settings.Settings({"exclude": ["Skip"]})
    lines, agent = Claude(), model.Agent()
    reminders = []
    for number, call in enumerate(calls):
        if call is None:
            lines.prompt()
            agent.chain = None
            continue
        lines.answer(lines.use(*call))
        event = payload.Event("PostToolUse", "s1")
        event.calls = [payload.Call(*call, f"toolu_{number}")]
        reminders += [run.threshold for run in guard_rules.record(agent, event, chosen, 1_800_000_000 + number)]
    with tempfile.TemporaryDirectory() as folder:
        path = lines.write(Path(folder, "one.jsonl"))
        one = files.Found(str(path), True, 0, 0.0)
        transcript = files.read(files.Task(one, "claude-code", chosen, 2, None, frozenset())).transcript
    streams = transcript.streams if transcript else []
    assert [count for stream in streams for run in stream.runs for count, _ in run.reminders] == reminders
