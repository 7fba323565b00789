"""What each agent sends, as golden files of the shapes seen in real runs (versions in the table)."""

import json
from pathlib import Path

import pytest

from tests.support import Guard

PAYLOADS = Path(__file__).parent / "payloads"

COUNTED = {
    "claude-code": {  # 2.1.332; old: 1.0.60
        "bash-succeeds": 1,
        "grep-finds-nothing": 1,
        "bash-fails": 1,
        "batch-denied": 1,
        "batch-unknown-tool": 1,
        "batch-parallel": 1,
        "subagent": 1,
        "old-without-ids": 1,
        "prompt": 0,
        "prompt-task-notification": 0,
        "session-end": 0,
        "before-tool": 0,
        "stop": 0,
    },
    "codex": {"shell": 1, "apply-patch": 1, "mcp": 1, "subagent": 1, "prompt": 0, "session-end": 0},  # 0.171.0
    "gemini-cli": {"shell": 1, "prompt": 0, "session-end": 0, "before-tool": 0},  # 0.61.0
    "qwen-code": {  # 0.24.4
        "shell": 1,
        "batch-of-the-same-call": 1,
        "shell-fails": 1,
        "prompt": 0,
        "prompt-continuation": 0,
    },
    "droid": {"execute": 1, "prompt": 0},  # 0.225.2
    "dsh": {  # 0.1.0-rc.8
        "claude-bridge-shell": 1,
        "claude-bridge-malformed-arguments": 1,
        "codex-bridge-shell": 1,
        "codex-bridge-hidden-arguments": 1,
    },
    "vscode": {"edit": 1},
}
CASES = [(agent, case, count) for agent, cases in COUNTED.items() for case, count in cases.items()]


def payload(agent: str, case: str) -> bytes:
    return (PAYLOADS / agent / f"{case}.json").read_bytes()


def test_every_payload_is_in_the_table() -> None:
    files = {(path.parent.name, path.stem) for path in PAYLOADS.glob("*/*.json")}
    assert files == {(agent, case) for agent, case, _ in CASES}


@pytest.mark.parametrize(("agent", "case", "count"), CASES)
def test_tool_calls_are_counted_and_nothing_else(agent: str, case: str, count: int, guard: Guard) -> None:
    data = payload(agent, case)
    for command in ("post-tool-use", "user-prompt-submit"):
        assert guard.hook(command, data) == (0, "", "")
    chains = [chain for session in guard.shown() for chain in session["chains"]]
    assert [chain["count"] for chain in chains] == [1] * count
    assert guard.hook("session-end", data) == (0, "", "")


@pytest.mark.parametrize("agent", COUNTED)
def test_each_agent_is_reminded_at_its_third_call(agent: str, guard: Guard) -> None:
    case = next(iter(COUNTED[agent]))
    fields = json.loads(payload(agent, case))
    told = []
    for number in range(1, 6):
        for key in ("tool_use_id", "tool_call_id"):
            if key in fields:
                fields[key] = f"call_{number}"
        told.append(bool(guard.hook("post-tool-use", fields).reminder))
    assert told == [False, False, True, False, True]


def test_qwen_code_reports_one_call_under_two_ids(guard: Guard) -> None:
    for case in ("shell", "batch-of-the-same-call", "prompt-continuation"):
        command = "user-prompt-submit" if case.startswith("prompt") else "post-tool-use"
        assert guard.hook(command, payload("qwen-code", case)) == (0, "", "")
    assert [chain["count"] for session in guard.shown() for chain in session["chains"]] == [1]
