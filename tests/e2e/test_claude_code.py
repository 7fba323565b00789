"""The real Claude Code against a scripted model: what reaches the model is in its next request."""

import fcntl
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from repeat_guard_cli.agents import claude_code
from repeat_guard_cli.people import registration
from tests.conftest import ROOT
from tests.e2e import claude
from tests.e2e.agents import Stage, play, program, reminders
from tests.e2e.claude import CURRENT, FIRST_BATCH, OLD, bash
from tests.support import COMMAND, Guard

SETS = [(CURRENT, "batch"), (FIRST_BATCH, "batch"), (CURRENT, "per-call"), (OLD, "per-call"), (OLD, "safe")]
SAME = [bash("echo same")]
OTHER = [bash("echo other")]
TODO = [{"tool": "TodoWrite", "input": {"todos": [{"content": "a", "status": "pending", "activeForm": "doing a"}]}}]


def wire(guard: Guard, events: str, *more: str) -> None:
    """Register with our own command."""
    result = guard.run("install", "claude-code", "--events", events, *more, cwd=project(guard))
    assert result.code == 0, result


def project(guard: Guard) -> Path:
    folder = guard.home / "project"
    folder.mkdir(exist_ok=True)
    return folder


def went_well(stage: Stage) -> None:
    assert [run["code"] for run in stage.runs] == [0] * len(stage.runs), stage.runs


@pytest.mark.parametrize(("version", "events"), SETS)
def test_eight_identical_calls(version: str, events: str, guard: Guard) -> None:
    claude.configure(guard)
    before = claude.settings_file(guard).read_bytes()
    wire(guard, events)
    stage = claude.run(guard, [SAME] * 9, version=version)
    went_well(stage)
    assert stage.told() == [3, 5, 8]
    assert re.findall(r"called (\d+) times in a row", stage.last) == ["3", "5", "8"], "each once, and they stay"
    assert stage.last.count("tool_use_id") == 9, "every call ran"
    assert "called 8 times in a row" in claude.transcript(guard)
    assert bool(guard.shown()) == (events == "safe"), "the end of the session removes its state"
    assert guard.run("uninstall", "claude-code").code == 0
    assert claude.settings_file(guard).read_bytes() == before


SHORT = (
    'repeat-guard noticed a repeated tool call: "TodoWrite" has now been called 3 times in a row with identical '
    "arguments. The last result already shows what this call gives; read it before going on. "
    "If the task is not complete, change the approach or the arguments."
)
DETAILED = (
    'repeat-guard noticed a repeated tool call: "TodoWrite" has now been called 5 times in a row with identical '
    'arguments: {"todos":[{"activeForm":"doing a","content":"a","status":"pending"}]}\n'
    "Repeating it makes no progress. Choose a different action or different arguments, "
    "or finish if the evidence gathered so far is enough."
)


@pytest.mark.parametrize("version", [CURRENT, FIRST_BATCH, OLD])
def test_the_same_list_written_again_and_again(version: str, guard: Guard) -> None:
    """Five identical TodoWrite calls: short at 3, detailed at 5. The current version has no such tool any more."""
    claude.configure(guard)
    wire(guard, "per-call" if version == OLD else "batch")
    stage = claude.run(guard, [TODO] * 5, version=version)
    went_well(stage)
    assert stage.told() == [3, 5]
    third, fifth = (json.dumps(stage.requests[number]) for number in (3, 5))
    short, detailed = (json.dumps(text)[1:-1] for text in (SHORT, DETAILED))
    assert (third.count(short), third.count(detailed)) == (1, 0)
    assert (fifth.count(short), fifth.count(detailed)) == (1, 1)


FAILING: list[tuple[str, Any, set[str]]] = [
    ("a failing command", bash("false"), {"batch", "per-call"}),
    ("denied", bash("rm -rf build"), {"batch"}),
    ("denied by default", bash("mkdir made"), {"batch"}),
    ("a missing file", {"tool": "Read", "input": {"file_path": "/nowhere/at/all"}}, {"batch", "per-call"}),
    ("invalid input", {"tool": "Read", "input": {"path": 7}}, {"batch"}),
    ("an unknown tool", {"tool": "NoSuchTool", "input": {"a": 1}}, {"batch"}),
]


@pytest.mark.parametrize("events", ["batch", "per-call", "safe"])
def test_calls_that_fail(events: str, guard: Guard) -> None:
    """Each three times; which set of events sees which is what the README says."""
    claude.configure(guard)
    wire(guard, events)
    stage = claude.run(guard, [[block] for _, block, _ in FAILING for _ in range(3)])
    went_well(stage)
    assert len(stage.requests) == 3 * len(FAILING) + 1
    seen = {FAILING[(step - 1) // 3][0] for step in stage.told()}
    assert seen == {name for name, _, sets in FAILING if events in sets}
    assert all(step % 3 == 0 for step in stage.told())


@pytest.mark.parametrize(("version", "events"), SETS)
def test_three_identical_calls_in_one_step(version: str, events: str, guard: Guard) -> None:
    claude.configure(guard)
    wire(guard, events)
    stage = claude.run(guard, [SAME * 3, SAME * 2], version=version)
    went_well(stage)
    assert stage.told() == [1, 2]


@pytest.mark.parametrize(("version", "events"), [set_ for set_ in SETS if set_[1] != "safe"])
def test_a_subagent_has_a_chain_of_its_own(version: str, events: str, guard: Guard) -> None:
    claude.configure(guard)
    wire(guard, events)
    task = {"description": "look", "prompt": "SUBTASK: look around", "subagent_type": "general-purpose"}
    script = [SAME, SAME, [{"tool": "Agent", "input": task}], SAME, OTHER]
    stage = claude.run(guard, script, sub=[SAME] * 4, version=version)
    went_well(stage)
    assert stage.told(stage.subagent) == [3]
    assert stage.told() == []
    assert reminders(stage.requests[-1]) == 0


def test_what_a_machine_injects_does_not_reset(guard: Guard) -> None:
    """The end of a background subagent comes as a prompt: two calls before it and one after it make three."""
    claude.configure(guard)
    wire(guard, "batch")
    task = {"description": "look", "prompt": "SUBTASK: look around", "subagent_type": "general-purpose"}
    guard.environment["REPEAT_GUARD_EXCLUDE"] = "Agent"
    script = [[{"tool": "Agent", "input": task}], SAME, SAME, [{"text": "waiting"}], SAME, OTHER]
    stage = claude.run(guard, script, sub=[[{"text": "nothing to see", "delay": 3}]])
    went_well(stage)
    notified = ["<task-notification>" in json.dumps(request["messages"]) for request in stage.requests]
    assert notified == [False] * 4 + [True] * 3, "it starts a turn of its own"
    assert stage.told() == [5]


def test_a_prompt_in_the_same_process_resets(guard: Guard) -> None:
    claude.configure(guard)
    wire(guard, "batch")
    stage = claude.run(guard, [SAME, SAME, [{"text": "so far"}], SAME, SAME, SAME], prompts=("go", "go on"))
    went_well(stage)
    assert "go on" in stage.last
    # Requests: 1 2 3 end, then the prompt with which the count starts anew: 4 5 6.
    assert [reminders(request) for request in stage.requests] == [0, 0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(("events", "kept"), [("batch", False), ("safe", True)])
def test_a_prompt_in_a_resumed_session_resets(events: str, kept: bool, guard: Guard) -> None:
    """Without SessionEnd the state is still there: it is the prompt that resets, not the removal."""
    claude.configure(guard)
    wire(guard, events)
    script = [SAME, SAME, [{"text": "so far"}], SAME, SAME, [{"text": "so far"}], SAME]
    stage = claude.run(guard, script, prompts=("go", "go on", "and on"), resume=True)
    went_well(stage)
    assert stage.told() == []
    assert bool(guard.shown()) == kept
    if kept:
        assert guard.counts(guard.shown()[0]["session_id"]) == {None: 1}


def test_a_resumed_session_counts_on_where_no_prompt_is_registered(guard: Guard) -> None:
    claude.configure(guard)
    line = {"type": "command", "command": f"{shlex.quote(COMMAND)} post-tool-use"}
    claude.configure(guard, hooks={"PostToolUse": [{"hooks": [line]}]})
    stage = claude.run(guard, [SAME, SAME, [{"text": "so far"}], SAME], prompts=("go", "go on"), resume=True)
    went_well(stage)
    assert stage.told() == [4]


def test_a_session_that_ended_starts_afresh_when_resumed(guard: Guard) -> None:
    """With SessionEnd and no prompt registered it is the removal that starts anew."""
    commands = {"PostToolUse": "post-tool-use", "SessionEnd": "session-end"}
    lines = {event: f"{shlex.quote(COMMAND)} {name}" for event, name in commands.items()}
    claude.configure(guard, hooks={e: [{"hooks": [{"type": "command", "command": c}]}] for e, c in lines.items()})
    script = [SAME, SAME, [{"text": "so far"}], SAME, SAME, SAME]
    stage = claude.run(guard, script, prompts=("go", "go on"), resume=True)
    went_well(stage)
    assert stage.told() == [6]
    assert guard.shown() == []


def test_all_events_at_once_count_once(guard: Guard) -> None:
    sets = {each.event: each for name in ("batch", "per-call") for each in claude_code.SETS[name]}
    block = registration.block(list(sets.values()), lambda command: f"{shlex.quote(COMMAND)} {command}")
    claude.configure(guard, **block)
    stage = claude.run(guard, [*[SAME] * 4, *[[bash("false")]] * 4, SAME * 3])
    went_well(stage)
    assert stage.told() == [3, 7, 9]


@pytest.mark.parametrize("events", ["batch", "per-call"])
def test_the_same_hooks_in_two_files_count_once(events: str, guard: Guard) -> None:
    claude.configure(guard)
    wire(guard, events)
    wire(guard, events, "--scope", "project")
    stage = claude.run(guard, [SAME] * 5)
    went_well(stage)
    assert stage.told() == [3, 5]


def test_the_plugin(guard: Guard) -> None:

    claude.configure(guard)
    plugin = [*program(CURRENT), "plugin"]
    runs = [
        {"arguments": [*plugin, "validate", str(ROOT)]},
        {"arguments": [*plugin, "marketplace", "add", str(ROOT)]},
        {"arguments": [*plugin, "install", "repeat-guard@repeat-guard"]},
    ]
    went_well(play(guard, runs, {}, {}))
    stage = claude.run(guard, [SAME] * 4)
    went_well(stage)
    assert stage.told() == [3]
    assert guard.run("doctor", "claude-code", PATH=f"{Path(COMMAND).parent}:/usr/bin:/bin").code == 0


def test_one_unknown_event_costs_an_old_version_its_whole_file(guard: Guard) -> None:
    """Why `install` asks for the version, and the README warns."""
    block = registration.block(claude_code.SETS["batch"], lambda command: f"{shlex.quote(COMMAND)} {command}")
    both = {**block["hooks"], "PostToolUse": block["hooks"]["PostToolBatch"]}
    claude.configure(guard, hooks=both)
    stage = claude.run(guard, [SAME] * 4, version=OLD)
    assert stage.told() == []
    assert guard.shown() == []


def _config(guard: Guard) -> None:
    guard.environment["REPEAT_GUARD_THRESHOLDS"] = "none"


def _state(guard: Guard) -> None:
    (guard.home / "state").write_text("a file where the directory should be")


BROKEN: dict[str, Any] = {
    "the command is missing": "/nowhere/repeat-guard",
    "it exits 1": "/bin/sh -c 'cat >/dev/null; echo wrong >&2; exit 1' x",
    "it is killed": "/bin/sh -c 'kill -9 $$' x",
    "it hangs": "/bin/sh -c 'exec sleep 60' x",
    "it reads nothing": "/bin/sh -c 'exit 0' x",
    "wrong settings": _config,
    "no state directory": _state,
    "switched off": lambda guard: guard.environment.update(REPEAT_GUARD_OFF="1"),
}


@pytest.mark.parametrize("version", [CURRENT, OLD])
@pytest.mark.parametrize("name", BROKEN)
def test_a_guard_that_is_broken_harms_nothing(name: str, version: str, guard: Guard) -> None:
    """The agent finishes its work undisturbed, and no prompt is lost."""
    how = BROKEN[name]
    program = how if isinstance(how, str) else shlex.quote(COMMAND)
    if not isinstance(how, str):
        how(guard)
    chosen = claude_code.SETS["batch" if version == CURRENT else "per-call"]
    quick = [each._replace(timeout=1) for each in chosen]
    claude.configure(guard, **registration.block(quick, lambda command: f"{program} {command}"))
    stage = claude.run(guard, [SAME] * 3, version=version, prompts=["the prompt that must arrive"])
    went_well(stage)
    assert stage.told() == []
    assert "the prompt that must arrive" in stage.last
    assert stage.last.count('"content": "same"') + stage.last.count('"text": "same"') == 3
    assert json.loads(stage.runs[0]["out"])["result"] == "done"


def _missing_config(guard: Guard) -> str:
    guard.environment["REPEAT_GUARD_CONFIG"] = str(guard.home / "nowhere.toml")
    return "post-tool-use"


def _wrong_config(guard: Guard) -> str:
    file = guard.home / "config.toml"
    file.write_text("thresholds = [1]")
    guard.environment["REPEAT_GUARD_CONFIG"] = str(file)
    return "post-tool-use"


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(lambda _: "post-tool-usee", id="a typing mistake in the command"),
        pytest.param(lambda _: "post-tool-use --bogus", id="an option that does not exist"),
        pytest.param(_missing_config, id="the settings file is missing"),
        pytest.param(_wrong_config, id="a setting is wrong"),
    ],
)
def test_a_registration_that_fails_loud_harms_nothing(prepare: Callable[[Guard], str], guard: Guard) -> None:
    """The guard's own failures, on every event that a prompt or a call meets: nothing is blocked, nothing lost."""
    line = f"{shlex.quote(COMMAND)} {prepare(guard)}"
    events = ("PostToolUse", "PostToolBatch", "UserPromptSubmit", "SessionEnd")
    claude.configure(guard, hooks={event: [{"hooks": [{"type": "command", "command": line}]}] for event in events})
    stage = claude.run(guard, [SAME] * 3, prompts=["the prompt that must arrive"])
    went_well(stage)
    assert len(stage.requests) == 4
    assert stage.told() == []
    assert "the prompt that must arrive" in stage.last
    assert json.loads(stage.runs[0]["out"])["result"] == "done"


def test_a_lock_that_another_process_holds_delays_and_harms_nothing(guard: Guard) -> None:
    """Each hook gives up after its 2 s: the calls go uncounted, and the prompt arrives."""
    claude.configure(guard)
    wire(guard, "safe")
    first = claude.run(guard, [SAME] * 2, resume=True)
    went_well(first)
    [session] = guard.shown()
    with (guard.state / "sessions" / f"{session['session_id']}.lock").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        script = [SAME, SAME, [{"text": "so far"}], *[SAME] * 2]
        stage = claude.run(guard, script, prompts=("the prompt that must arrive",), continues=True)
    went_well(stage)
    assert stage.told() == []
    assert "the prompt that must arrive" in stage.last
    assert len(stage.requests) == 3, "both calls and the end"
    assert guard.counts(session["session_id"]) == {None: 2}


def test_a_wrong_project_file_is_passed_over(guard: Guard) -> None:
    """A repository can't break the agent of whoever works in it, nor the guard."""
    claude.configure(guard)
    wire(guard, "batch")
    (project(guard) / ".repeat-guard.toml").write_text("thresholds = [")
    stage = claude.run(guard, [SAME] * 4)
    went_well(stage)
    assert stage.told() == [3]


def test_a_checkout_is_no_plugin(guard: Guard) -> None:
    """Claude Code and `hooks/` in the working directory: nothing runs unless it was added."""
    claude.configure(guard)
    shutil.copytree(ROOT / "hooks", project(guard) / "hooks")
    shutil.copytree(ROOT / ".claude-plugin", project(guard) / ".claude-plugin")
    assert claude.run(guard, [SAME] * 4).told() == []
    assert guard.shown() == []
