"""Codex: its hooks file, and whether it trusts what stands there (0.171.0)."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repeat_guard_cli import payload
from repeat_guard_cli.agents import Finding, Plan, Registration, Version, folder, is_ours
from repeat_guard_cli.errors import GuardError

NAME, TITLE, PROGRAM = "codex", "Codex", "codex"
SCOPES: tuple[str, ...] = ("user", "project")
USER_SHELL = True
"""It runs hooks with `bash -c` where the user's shell is bash (0.171.0, seen), and not as a login shell."""

REGISTRATIONS = [
    Registration("PostToolUse", payload.POST_TOOL_USE, 10, "*"),
    Registration("UserPromptSubmit", payload.USER_PROMPT_SUBMIT, 10),
    Registration("SessionEnd", payload.SESSION_END, 3),
]
"""Codex ends a session-end hook after at most 3 s."""
TRUST = "Codex runs hooks only once you trust them, and again after every change: start it and say /hooks"
FIELDS = {"description", "hooks"}


def settings_file(scope: str, environment: Mapping[str, str], directory: Path) -> Path:
    """Return the hooks file of a scope."""
    return (user_folder(environment) if scope == "user" else directory / ".codex") / "hooks.json"


def user_folder(environment: Mapping[str, str]) -> Path:
    """Return Codex' folder for the user."""
    return folder(environment, "CODEX_HOME", ".codex")


def plan(scope: str, version: Version | None, events: str | None) -> Plan:
    """Return the events that Codex has; see `agents.Agent.plan`."""
    del version
    if events is not None:
        raise GuardError("--events is for Claude Code; Codex has one set of events")
    notes = [TRUST, "not seen: calls that Codex reports to no hook (update_plan, denied, invalid and unknown ones)"]
    if scope == "project":
        notes.append("Codex reads a project's hooks only in projects that it trusts")
    return Plan(REGISTRATIONS, notes)


def check(
    documents: Mapping[str, Any], files: Mapping[str, Path], version: Version | None, home: Path
) -> list[Finding]:
    """Look at the hooks files and at config.toml; see `agents.Agent.check`."""
    from repeat_guard_cli.people import registration

    del version
    config, found = _config(home / "config.toml")
    features = config.get("features", {})
    for name in ("hooks", "codex_hooks"):
        if isinstance(features, dict) and features.get(name) is False:
            found.append(
                Finding("broken", "hooks-on", f"[features].{name} is false in {home / 'config.toml'}; take that out")
            )
    for scope, document in documents.items():
        if isinstance(document, dict) and set(document) - FIELDS:
            other = ", ".join(sorted(set(document) - FIELDS))
            found.append(
                Finding("broken", "file", f"{files[scope]} holds {other}: Codex then ignores the file; take it out")
            )
        untrusted = [
            entry.event for entry in registration.entries(document) if not _is_trusted(config, files[scope], entry)
        ]
        if untrusted:
            found.append(
                Finding("broken", "trust", f"{', '.join(untrusted)} in {files[scope]} not trusted: say /hooks in Codex")
            )
    return found


def plugin(documents: Mapping[str, Any], home: Path) -> bool:
    """Look for the plugin; see `agents.Agent.plugin`. Codex 0.171.0 takes the one made for Claude Code."""
    del documents
    plugins = is_ours(_config(home / "config.toml")[0].get("plugins"))
    return any(isinstance(fields, dict) and fields.get("enabled") is True for fields in plugins)


def blind(events: set[str], version: Version | None) -> str:
    """Codex has no more events to offer."""
    del events, version
    return ""


def _config(path: Path) -> tuple[dict[str, Any], list[Finding]]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")), []
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError) as error:
        return {}, [Finding("broken", "file", f"{path} can't be read ({error}); mend it")]


def _is_trusted(config: dict[str, Any], file: Path, entry: Any) -> bool:
    """Tell whether config.toml holds a hash for a hook; whether it is the right one, Codex alone knows."""
    event = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", entry.event).lower()
    hooks = config.get("hooks", {})
    state = hooks.get("state", {}) if isinstance(hooks, dict) else {}
    for path in {str(file), str(file.resolve())}:
        known = state.get(f"{path}:{event}:{entry.group}:{entry.handler}")
        if isinstance(known, dict) and known.get("trusted_hash") and known.get("enabled", True):
            return True
    return False
