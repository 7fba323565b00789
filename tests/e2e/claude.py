"""Drives Claude Code. Recipes that worked with 2.1.100 (node) and 2.1.118 and 2.1.332 (native)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.agents import Stage, play, program
from tests.e2e.server import Block, Script
from tests.support import Guard

CURRENT, FIRST_BATCH, OLD = "claude-2.1.332", "claude-2.1.118", "claude-2.1.100"
PERMISSIONS = {"allow": ["Bash(echo:*)", "Bash(false)", "Bash(cat:*)", "Read", "TodoWrite"], "deny": ["Bash(rm:*)"]}


def bash(command: str) -> Block:
    """Return a call of the shell."""
    return {"tool": "Bash", "input": {"command": command, "description": "Run it"}}


def settings_file(guard: Guard) -> Path:
    """Return the user's settings file."""
    return guard.home / ".claude/settings.json"


def configure(guard: Guard, **fields: Any) -> None:
    """Write settings: permissions, and what else is given."""
    settings_file(guard).parent.mkdir(exist_ok=True)
    settings_file(guard).write_text(json.dumps({"permissions": PERMISSIONS, **fields}, indent=2))


def run(
    guard: Guard,
    script: Script,
    *,
    version: str = CURRENT,
    sub: Script | None = None,
    prompts: Sequence[str] = ("go",),
    resume: bool = False,
    continues: bool = False,
    **environment: str,
) -> Stage:
    """Run Claude Code without a terminal.

    Args:
        guard: whose home it lives in.
        script: what the model says.
        version: which program.
        sub: what the model says to a subagent.
        prompts: what the person says; more than one go into one process, or with `resume` into one each.
        resume: whether each prompt is a start of its own, in the same session.
        continues: whether that session is there from an earlier run.
        environment: variables.
    """
    command = [*program(version), "-p", "--output-format", "json"]
    runs: list[dict[str, Any]] = [{"arguments": [*command, prompts[0]]}]
    if resume or continues:
        session = "5e551011-0000-4000-8000-0000000000e2"
        runs = [{"arguments": [*command, "--session-id", session, prompts[0]]}]
        again = prompts if continues else prompts[1:]
        runs = [] if continues else runs
        runs += [{"arguments": [*command, "--resume", session, prompt]} for prompt in again]
    elif len(prompts) > 1:
        lines = [{"type": "user", "message": {"role": "user", "content": prompt}} for prompt in prompts]
        streamed = [*program(version), "-p", "--input-format", "stream-json", "--output-format", "stream-json"]
        runs = [{"arguments": [*streamed, "--verbose"], "lines": [f"{json.dumps(line)}\n" for line in lines]}]
    variables = {
        "ANTHROPIC_BASE_URL": "URL",
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    return play(guard, runs, {"main": script, "sub": sub or []}, {**variables, **environment})


def transcript(guard: Guard) -> str:
    """Return everything that Claude Code wrote down of its sessions."""
    return "".join(path.read_text() for path in (guard.home / ".claude/projects").rglob("*.jsonl"))
