"""The rules of the guard, in the pure core and through the installed command."""

import json
import re
from typing import Any

import pytest

from repeat_guard_cli import guard as core
from repeat_guard_cli import payload, prompts, reminder
from repeat_guard_cli.model import Session
from repeat_guard_cli.settings import Settings
from tests.scenarios import SCENARIOS, Scenario
from tests.support import Guard

COUNT = re.compile(r"called (\d+) times")
COMMANDS = {name: command for command, names in payload.EVENTS.items() for name in names}
rows = pytest.mark.parametrize("scenario", [pytest.param(scenario, id=scenario.rule) for scenario in SCENARIOS])


def told(text: str) -> tuple[int, ...]:
    return tuple(int(count) for count in COUNT.findall(text))


@rows
def test_the_core_reminds_where_the_rule_says(scenario: Scenario) -> None:
    settings = Settings(scenario.settings)
    sessions: dict[str, Session] = {}
    said = {}
    for number, fields in enumerate(scenario.events, 1):
        command = COMMANDS.get(fields["hook_event_name"], "post-tool-use")
        event = payload.read_event(command, fields)
        if event is None:
            continue
        session = sessions.setdefault(event.session_id, Session(event.session_id))
        if command == "session-end":
            del sessions[event.session_id]
        elif command == "user-prompt-submit":
            agent = session.use(event.agent_id)
            if prompts.resets(event, agent):
                agent.chain = None
        elif runs := core.record(session.use(event.agent_id), event, settings, 1000.0):
            said[number] = told(reminder.compose(runs, settings))
    assert said == scenario.said


@rows
def test_the_command_reminds_where_the_rule_says(scenario: Scenario, guard: Guard) -> None:
    config = guard.home / "config.toml"
    config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in scenario.settings.items()))
    said: dict[int, Any] = {}
    for number, fields in enumerate(scenario.events, 1):
        command = COMMANDS.get(fields["hook_event_name"], "post-tool-use")
        result = guard.hook(command, fields, REPEAT_GUARD_CONFIG=str(config))
        assert (result.code, result.err) == (0, ""), number
        if result.out:
            assert json.loads(result.out)["hookSpecificOutput"]["hookEventName"] == fields["hook_event_name"]
            said[number] = told(result.reminder)
    assert said == scenario.said


def test_a_prompt_that_holds_a_reminder_does_not_reset(guard: Guard) -> None:
    """The DeepSeek harness sends what hooks inject back as prompts, several run together."""
    texts = [guard.call().reminder for _ in range(3)]
    guard.prompt(f"CTX-SessionStart{texts[-1]}CTX")
    assert guard.counts() == {None: 3}
    guard.prompt("what does repeat-guard mean?")
    assert guard.counts() == {}


def test_the_same_report_after_two_seconds_is_a_new_call() -> None:
    settings, session = Settings({}), Session("s")

    def count(event: str, at: float) -> int:
        fields = {"session_id": "s", "hook_event_name": event, "tool_name": "Bash", "tool_input": {"command": "ls"}}
        fields |= {"tool_use_id": "call_0"}
        if event == "PostToolBatch":
            fields = {**fields, "tool_calls": [{k: fields[k] for k in ("tool_name", "tool_input", "tool_use_id")}]}
        report = payload.read_event("post-tool-use", fields)
        assert report
        agent = session.use("")
        core.record(agent, report, settings, at)
        assert agent.chain
        return agent.chain.count

    assert count("PostToolUse", 100.0) == 1
    assert count("PostToolUse", 101.9) == 1, "registered twice"
    assert count("PostToolBatch", 130.0) == 1, "a slow step: its batch tells of the same call, however late"
    assert count("PostToolBatch", 130.1) == 1, "registered twice as well"
    assert count("PostToolUse", 140.0) == 2, "a gateway that reuses ids"
    assert count("PostToolBatch", 140.1) == 2
    assert count("PostToolBatch", 150.0) == 3, "reported by the batch alone this time"
    assert count("PostToolBatch", 20.0) == 4, "the clock was set back"


@pytest.mark.parametrize("lost", [b"", b"\n", b'{"hook_event_name": "PostToolUse", "tool', b"\x81\x8a"])
def test_an_event_that_got_lost_neither_counts_nor_resets(lost: bytes, guard: Guard) -> None:
    """On Windows hosts were seen to send nothing, or a part."""
    guard.call(), guard.call()
    assert guard.hook("post-tool-use", lost).code == 1
    assert guard.hook("user-prompt-submit", lost).code == 1
    assert "3 times" in guard.call().reminder


@pytest.mark.parametrize("fields", [{}, {"session_id": ""}, {"session_id": None}])
def test_a_prompt_without_a_session_resets_nobody(fields: dict[str, Any], guard: Guard) -> None:
    guard.call(), guard.call()
    payload = {"hook_event_name": "UserPromptSubmit", "prompt": "go on", **fields}
    assert guard.hook("user-prompt-submit", payload) == (0, "", "")
    assert "3 times" in guard.call().reminder


def test_a_session_that_only_starts_leaves_nothing(guard: Guard) -> None:
    """Claude Code was seen to report a start with an id that it never uses again."""
    for command in ("post-tool-use", "user-prompt-submit", "session-end"):
        payload = {"session_id": "never-used", "hook_event_name": "SessionStart", "source": "resume"}
        assert guard.hook(command, payload) == (0, "", "")
    assert guard.files() == []
