"""`repeat-guard demo`: a looping session, played through the real hook commands."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from repeat_guard_cli import hook, paths, payload, wire
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.people.sessions import read_all

SESSION = "looping-session.jsonl"


def demo() -> int:
    """Play the session in a temporary state directory and print what comes of each event."""
    console = Console(highlight=False)
    console.print(Text("A Claude Code session that is stuck, played through the hook commands as processes.\n", "dim"))
    number = reminders = 0
    with tempfile.TemporaryDirectory(prefix="repeat-guard-demo-") as home:
        environment = _environment(home)
        for line in _session_file().read_bytes().splitlines():
            event = orjson.loads(line)
            if event["hook_event_name"] in payload.EVENTS[payload.USER_PROMPT_SUBMIT]:
                _hook(payload.USER_PROMPT_SUBMIT, line, environment)
                console.print(_row("", "prompt", " ".join(event["prompt"].split()), "cyan"))
                continue
            number += 1
            reply = _hook(payload.POST_TOOL_USE, line, environment)
            console.print(_row(f"{number}.", f"{_count(environment)} x", _described(event)))
            if reply:
                reminders += 1
                console.print(_row("", "told", _told(reply), "bold yellow"))
    console.print(Text(f'\n{number} tool calls, {reminders} reminders. "told" is what the model was told.', "dim"))
    return hook.OK


def _row(number: str, label: str, text: str, style: str = "") -> Table:
    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_column(width=3, justify="right")
    row.add_column(width=6, justify="right")
    row.add_column(overflow="fold")
    row.add_row(number, Text(label, style), Text(text, style))
    return row


def _session_file() -> Path:
    package = Path(__file__).parent.parent
    for folder in (package, package.parent):  # an installed wheel, or a checkout
        file = folder / "examples" / SESSION
        if file.is_file():
            return file
    raise GuardError(f"{SESSION} is missing from this installation; install repeat-guard again")


def _environment(home: str) -> dict[str, str]:
    """Return variables under which a hook command touches nothing of the user's."""
    empty = Path(home, "config.toml")
    empty.touch()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("REPEAT_GUARD_")}
    return {
        **inherited,
        "REPEAT_GUARD_STATE_DIR": str(Path(home, "state")),
        "REPEAT_GUARD_CONFIG": str(empty),
        "CLAUDE_PROJECT_DIR": home,
    }


def _hook(command: str, line: bytes, environment: dict[str, str]) -> bytes:
    process = subprocess.run(
        [sys.executable, "-m", "repeat_guard_cli", command],
        input=line,
        capture_output=True,
        env=environment,
        check=False,
    )
    if process.returncode:
        raise GuardError(f"the hook command failed: {process.stderr.decode(errors='replace').strip()}")
    return process.stdout


def _count(environment: dict[str, str]) -> int:
    sessions, _ = read_all(paths.state_dir(environment))
    chains = [agent.chain for session in sessions for agent in session.agents.values() if agent.chain]
    return chains[-1].count if chains else 0


def _described(event: dict[str, Any]) -> str:
    call = event["tool_calls"][0] if "tool_calls" in event else event
    result = "failed" if "error" in event else ""
    if isinstance(call.get("tool_response"), str) and "denied" in call["tool_response"]:
        result = "denied"
    return f"{call['tool_name']} {wire.dumps_sorted(call['tool_input'])}{f'  ({result})' if result else ''}"


def _told(reply: bytes) -> str:
    text: str = orjson.loads(reply)["hookSpecificOutput"]["additionalContext"]
    return text
