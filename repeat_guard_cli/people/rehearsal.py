"""Plays a looping session through exactly the command lines that an agent has registered."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from repeat_guard_cli import config, guard, paths, payload
from repeat_guard_cli.agents import Agent, Finding
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.people import executable, registration
from repeat_guard_cli.settings import Settings

SESSION = "doctor"
SECONDS = 20.0
MOST_CALLS = 50
BARE_PATH = "/usr/local/bin:/usr/bin:/bin"
_KEPT = (
    "HOME",
    "USER",
    "SHELL",
    "TMPDIR",
    "SYSTEMROOT",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
    "CLAUDE_PROJECT_DIR",
)
"""What an agent that a desktop started has too. Settings of the guard come along: they are checked elsewhere."""


class Stage(NamedTuple):
    """What a rehearsal needs: how the agent runs commands, in which environment, and the settings in force."""

    agent: Agent
    environment: dict[str, str]
    settings: Settings


def rehearse(agent: Agent, handlers: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[Finding]:
    """Play a session through registered hooks: a loop that draws its reminder, a prompt, the loop again, the end.

    Args:
        agent: whose hooks they are.
        handlers: an event and what is registered for it, for each of them.
    """
    try:
        settings = config.load(os.environ, os.getcwd(), paths.state_dir(os.environ))
    except GuardError:
        return  # told already, and the hooks would say the same
    if config.is_off(os.environ):
        return
    tools = [event for event, _ in handlers if event in payload.EVENTS[payload.POST_TOOL_USE]]
    for event in dict.fromkeys(tools):
        yield _through(agent, settings, event, dict(handlers))


def _through(agent: Agent, settings: Settings, event: str, handlers: dict[str, dict[str, Any]]) -> Finding:
    line = registration.command_line(handlers[event])
    problem = ""
    for search in (BARE_PATH, os.environ.get("PATH", BARE_PATH)):
        with tempfile.TemporaryDirectory(prefix="repeat-guard-doctor-") as folder:
            stage = Stage(agent, _environment(folder, search), settings)
            bare_problem, problem = problem, _play(stage, event, handlers)
        if not problem and search is BARE_PATH:
            return Finding("ok", "works", f"{event}: a looping session drew its reminder through `{line}`")
        if not problem:
            message = f"{event}: `{line}` works where PATH has what it needs, as it does here; "
            return Finding(
                "note", "works", f"{message}an agent started from a desktop may not find it ({bare_problem})"
            )
    return Finding("broken", "works", f"{event}: {problem}; run `repeat-guard install {agent.NAME}`")


def _environment(state: str, search: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(("XDG_", "REPEAT_GUARD_"))
    }
    return {**kept, "PATH": search, "REPEAT_GUARD_STATE_DIR": str(Path(state, "state"))}


def _play(stage: Stage, event: str, handlers: dict[str, dict[str, Any]]) -> str:
    """Return what is wrong, "" if nothing is."""
    tool, threshold = _tool(stage.settings), stage.settings.thresholds[0]
    if not tool:
        return "the settings track no tool that could be tried (include, exclude)"
    if threshold > MOST_CALLS:
        return ""
    try:
        for beginning in (0, threshold):
            for number in range(beginning, beginning + threshold):
                reply = _run(stage, handlers[event], _call(event, tool, number))
                if bool(reply) != (number == beginning + threshold - 1):
                    said = "a reminder came too early" if reply else "no reminder came"
                    if not reply and executable.ON_PATH in registration.command_line(handlers[event]):
                        said = "repeat-guard is not on PATH, or " + said
                    return f"`{registration.command_line(handlers[event])}`: {said} at call {number + 1}"
            _check_reply(reply, event, handlers[event])
            if "UserPromptSubmit" not in handlers:
                break
            prompt = {"session_id": SESSION, "hook_event_name": "UserPromptSubmit", "prompt": "go on"}
            if _run(stage, handlers["UserPromptSubmit"], prompt):
                return f"`{registration.command_line(handlers['UserPromptSubmit'])}` says something; it never should"
        if "SessionEnd" in handlers:
            _run(stage, handlers["SessionEnd"], {"session_id": SESSION, "hook_event_name": "SessionEnd"})
    except GuardError as error:
        return str(error)
    return ""


def _tool(settings: Settings) -> str:
    names = ("Bash", "Read", *(pattern.replace("*", "x") for pattern in settings.include), "RepeatGuardDoctor")
    return next((name for name in names if guard.is_tracked(name, settings.include, settings.exclude)), "")


def _call(event: str, tool: str, number: int) -> dict[str, Any]:
    call = {"tool_name": tool, "tool_input": {"command": "true"}, "tool_use_id": f"doctor-{number}"}
    base = {"session_id": SESSION, "hook_event_name": event, "cwd": os.getcwd()}
    return {**base, "tool_calls": [call]} if event == payload.BATCH else {**base, **call}


def _run(stage: Stage, handler: dict[str, Any], event: dict[str, Any]) -> bytes:
    """Run a hook as the agent does.

    Raises:
        GuardError: it can't be run, fails, takes too long or writes to standard error.
    """
    line = registration.command_line(handler)
    try:
        done = subprocess.run(
            _arguments(stage.agent, handler),
            input=json.dumps(event).encode(),
            capture_output=True,
            env=stage.environment,
            timeout=min(SECONDS, float(handler.get("timeout", SECONDS))),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GuardError(f"`{line}` took too long") from None
    except (OSError, ValueError, TypeError) as error:
        raise GuardError(f"`{line}` can't be run ({error})") from None
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())[:200]
        missing = "; the command does not exist" if done.returncode in (126, 127) else ""
        raise GuardError(f"`{line}` exits {done.returncode}{missing}{f' ({said})' if said else ''}")
    return done.stdout


def _arguments(agent: Agent, handler: dict[str, Any]) -> list[str]:
    if handler.get("args") is not None:
        return [handler["command"], *handler["args"]]
    if os.name == "nt":
        return [os.environ.get("COMSPEC", "cmd.exe"), "/C", handler["command"]]
    if agent.USERS_SHELL:
        return [_users_shell(), "-c", handler["command"]]
    return ["/bin/sh", "-c", handler["command"]]


def _users_shell() -> str:
    """Return the shell that the list of users names, as Codex does (0.146.0 to 0.171.0), whatever SHELL says."""
    import pwd

    try:
        shell = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        shell = ""
    return shell if Path(shell).name in ("bash", "zsh", "sh") and os.access(shell, os.X_OK) else "/bin/sh"


def _check_reply(reply: bytes, event: str, handler: dict[str, Any]) -> None:
    try:
        said = json.loads(reply)["hookSpecificOutput"]
        if said["hookEventName"] == event and said["additionalContext"]:
            return
    except (ValueError, KeyError, TypeError):
        pass
    raise GuardError(f"`{registration.command_line(handler)}` answers with something else than a reminder")
