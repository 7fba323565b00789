"""Claude Code: which events its versions know, and where its settings are.

Versions were found by running the program (marked "run") or reading it: SessionEnd 1.0.85 (run), PostToolUseFailure
2.0.56, PostToolBatch 2.1.118, an unknown event harmless from 2.1.101 (run; 2.1.100 drops the whole file).
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repeat_guard_cli import payload
from repeat_guard_cli.agents import Finding, Plan, Registration, Version, folder, version_text
from repeat_guard_cli.errors import GuardError

NAME, TITLE, PROGRAM = "claude-code", "Claude Code", "claude"
SCOPES: tuple[str, ...] = ("user", "project", "local")
USERS_SHELL = False

FORGIVES_UNKNOWN_EVENTS: Version = (2, 1, 101)
SESSION_END_SINCE: Version = (1, 0, 85)
FAILURES_SINCE: Version = (2, 0, 56)
BATCH_SINCE: Version = (2, 1, 118)
CONTEXT_SINCE: Version = (1, 0, 85)
"""Below this no text of a hook on tool calls reaches the model."""
SINCE: dict[str, Version] = {
    **dict.fromkeys(("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "Notification"), (1,)),
    "PreCompact": (1,),
    "SessionStart": SESSION_END_SINCE,
    "SessionEnd": SESSION_END_SINCE,
    "SubagentStart": (2, 0, 45),
    "PermissionRequest": (2, 0, 45),
    "PostToolUseFailure": FAILURES_SINCE,
    "PostToolBatch": BATCH_SINCE,
}
"""Since when an event is known; of those not named here nothing older than `FORGIVES_UNKNOWN_EVENTS` is sure."""

_PER_CALL = Registration("PostToolUse", payload.POST_TOOL_USE, 10, "*")
_FAILURE = Registration("PostToolUseFailure", payload.POST_TOOL_USE, 10, "*")
_BATCH = Registration("PostToolBatch", payload.POST_TOOL_USE, 10)
_PROMPT = Registration("UserPromptSubmit", payload.USER_PROMPT_SUBMIT, 10)
_END = Registration("SessionEnd", payload.SESSION_END, 3)
"""Codex, which may be given the same plugin, ends a session-end hook after at most 3 s."""
SETS = {
    "batch": [_BATCH, _PROMPT, _END],
    "per-call": [_PER_CALL, _FAILURE, _PROMPT, _END],
    "safe": [_PER_CALL, _PROMPT],
}
MISSING: dict[str, list[str]] = {
    "batch": [],
    "per-call": ["denied and invalid calls are not seen (Claude Code reports them only to PostToolBatch)"],
    "safe": [
        "failing, denied and invalid calls are not seen: these are the events that every version of Claude Code knows",
        "a session's state stays until it has been idle for 7 days (no SessionEnd)",
    ],
}


def settings_file(scope: str, environment: Mapping[str, str], directory: Path) -> Path:
    """Return the settings file of a scope."""
    if scope == "user":
        return user_folder(environment) / "settings.json"
    return directory / ".claude" / ("settings.json" if scope == "project" else "settings.local.json")


def user_folder(environment: Mapping[str, str]) -> Path:
    """Return Claude Code's folder for the user."""
    return folder(environment, "CLAUDE_CONFIG_DIR", ".claude")


def plan(scope: str, version: Version | None, events: str | None) -> Plan:
    """Choose the events; see `agents.Agent.plan`."""
    if events is not None and events not in SETS:
        raise GuardError(f"--events {events}: choose one of {', '.join(SETS)}")
    chosen = events or _best(scope, version)
    registrations = SETS[chosen]
    notes = list(MISSING[chosen])
    if events is None and chosen == "safe" and version and version >= SESSION_END_SINCE and scope != "project":
        registrations = [*registrations, _END]
        notes = notes[:1]
    needed = max(SINCE[registration.event] for registration in registrations)
    if version and version < needed and version < FORGIVES_UNKNOWN_EVENTS:
        raise GuardError(
            f"--events {chosen} needs Claude Code {version_text(needed)}, and this is {version_text(version)}, which "
            "would drop its whole settings file for an event that it doesn't know; update it, or leave --events out"
        )
    if version and version < needed:
        raise GuardError(
            f"--events {chosen} needs Claude Code {version_text(needed)}, and this is {version_text(version)}; "
            "update it, or leave --events out"
        )
    if not version and events and needed > (1,):
        notes.append(
            f"no `claude` was found on PATH to ask for its version: these events need {version_text(needed)}; below "
            f"{version_text(FORGIVES_UNKNOWN_EVENTS)} it drops its whole settings file for one that it doesn't know"
        )
    if scope == "project" and events is None:
        notes.append("others share this file: only what every version knows is in it; --events chooses more")
    elif not version and events is None:
        notes.append("no `claude` was found on PATH to ask for its version; --events chooses more")
    if version and version < CONTEXT_SINCE:
        notes.append(f"Claude Code {version_text(version)} passes no reminder on; update it")
    return Plan(registrations, notes)


def _best(scope: str, version: Version | None) -> str:
    if scope == "project" or version is None or version < FAILURES_SINCE:
        return "safe"
    return "per-call" if version < BATCH_SINCE else "batch"


def check(
    documents: Mapping[str, Any], files: Mapping[str, Path], version: Version | None, home: Path
) -> list[Finding]:
    """Look at the settings; see `agents.Agent.check`."""
    del home
    found = []
    for where, document in {**_managed(), **{str(files[scope]): documents[scope] for scope in documents}}.items():
        if not isinstance(document, dict):
            continue
        if document.get("disableAllHooks"):
            found.append(Finding("broken", "hooks-on", f"{where} says disableAllHooks; take that out"))
        if document.get("allowManagedHooksOnly"):
            found.append(
                Finding(
                    "broken", "hooks-on", f"{where} says allowManagedHooksOnly: no hooks of your own run; take it out"
                )
            )
        found += _events(where, document.get("hooks"), version)
    return found


def _events(where: str, hooks: Any, version: Version | None) -> list[Finding]:
    if not isinstance(hooks, dict) or version is None:
        return []
    if version >= FORGIVES_UNKNOWN_EVENTS:
        late = [event for event in hooks if event in SINCE and SINCE[event] > version]
        return [
            Finding(
                "broken",
                "events",
                f"{where} registers {', '.join(late)}, which Claude Code {version_text(version)} doesn't know; "
                f"run `repeat-guard install {NAME}`",
            )
        ] * bool(late)
    unknown = [event for event in hooks if SINCE.get(event, FORGIVES_UNKNOWN_EVENTS) > version]
    return [
        Finding(
            "broken",
            "events",
            f"{where} registers {', '.join(unknown)}: Claude Code {version_text(version)} doesn't know that and drops "
            f"the whole file, permission rules included; take it out, or update Claude Code",
        )
    ] * bool(unknown)


def blind(events: set[str], version: Version | None) -> str:
    """Say what a set of registered events misses that the version could report, "" if nothing."""
    if "PostToolBatch" in events or version is None or version < FAILURES_SINCE:
        return ""
    if version >= BATCH_SINCE:
        missed = "denied and invalid calls" if "PostToolUseFailure" in events else "failing, denied and invalid calls"
    elif "PostToolUseFailure" not in events:
        missed = "failing calls"
    else:
        return ""
    return f"{missed} are not seen; `repeat-guard install {NAME}` registers what this version can report"


def plugin(documents: Mapping[str, Any], files: Mapping[str, Path], home: Path) -> str:
    """Return the settings file that enables our plugin, "" if none does."""
    del home
    for scope, document in documents.items():
        plugins = document.get("enabledPlugins") if isinstance(document, dict) else None
        if isinstance(plugins, dict) and any(
            name.split("@")[0] == "repeat-guard" and on for name, on in plugins.items()
        ):
            return str(files[scope])
    return ""


def also(home: Path) -> dict[str, tuple[Path, Any]]:
    """Claude Code has hooks nowhere else."""
    del home
    return {}


def _managed() -> dict[str, Any]:
    """Return the settings of the machine's administrator, by path."""
    from repeat_guard_cli.people import json_text

    folders = {"darwin": "/Library/Application Support/ClaudeCode", "win32": r"C:\Program Files\ClaudeCode"}
    folder = Path(folders.get(sys.platform, "/etc/claude-code"))
    found = {}
    for path in (folder / "managed-settings.json", *sorted((folder / "managed-settings.d").glob("*.json"))):
        try:
            found[str(path)] = json_text.load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            pass  # not there, or not for us to read
    return found
