"""Codex: its hooks file, and whether it trusts what stands there (0.171.0)."""

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repeat_guard_cli import payload
from repeat_guard_cli.agents import Finding, Plan, Registration, Version, folder
from repeat_guard_cli.errors import GuardError

NAME, TITLE, PROGRAM = "codex", "Codex", "codex"
SCOPES: tuple[str, ...] = ("user", "project")
USERS_SHELL = True

REGISTRATIONS = [
    Registration("PostToolUse", payload.POST_TOOL_USE, 10, "*"),
    Registration("UserPromptSubmit", payload.USER_PROMPT_SUBMIT, 10),
    Registration("SessionEnd", payload.SESSION_END, 3),
]
"""Codex ends a session-end hook after at most 3 s."""
TRUST = "Codex runs hooks only once you trust them, and again after every change: start it and say /hooks"
FIELDS = {"description", "hooks"}
PLUGIN = "repeat-guard@repeat-guard"
PASSED_OVER = "and Codex passes over them in silence: start it and say /hooks"
DEFAULT_TIMEOUT, SESSION_END_DEFAULT, SESSION_END_MOST = 600, 1, 3
NO_MATCHER = {"UserPromptSubmit", "Stop", "Interrupt"}


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
        found += _trust(config, files[scope], registration.entries(document), document)
    if plugin(documents, files, home):
        keys = [f"{PLUGIN}:hooks/hooks.json:{_snake(entry.event)}:0:0" for entry in REGISTRATIONS]
        if not all(_state(config).get(key) for key in keys):
            found.append(Finding("broken", "trust", f"the plugin's hooks are not trusted, {PASSED_OVER}"))
    return found


def blind(events: set[str], version: Version | None) -> str:
    """Codex has no more events to offer."""
    del events, version
    return ""


def plugin(documents: Mapping[str, Any], files: Mapping[str, Path], home: Path) -> str:
    """Return the file that enables our plugin, "" if none does; Codex takes the one for Claude Code as it is."""
    del documents, files
    path = home / "config.toml"
    plugins = _config(path)[0].get("plugins", {})
    known = plugins.get(PLUGIN) if isinstance(plugins, dict) else None
    return str(path) if isinstance(known, dict) and known.get("enabled", True) else ""


def also(home: Path) -> dict[str, tuple[Path, Any]]:
    """Return where hooks may stand besides the files of the scopes: in config.toml."""
    path = home / "config.toml"
    hooks = _config(path)[0].get("hooks", {})
    events = {name: groups for name, groups in hooks.items() if name != "state"} if isinstance(hooks, dict) else {}
    return {"config": (path, {"hooks": events})} if events else {}


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


def _trust(config: dict[str, Any], file: Path, entries: Sequence[Any], document: Any) -> list[Finding]:
    """Find the hooks that Codex would pass over, which it does in silence."""
    untrusted, changed = [], []
    for entry in entries:
        known = _known(config, file, entry)
        if not known:
            untrusted.append(entry.event)
        elif known.get("trusted_hash") != trusted_hash(entry, document):
            changed.append(entry.event)
    found = [Finding("broken", "trust", f"{', '.join(untrusted)} in {file} not trusted, {PASSED_OVER}")] * bool(
        untrusted
    )
    if changed:
        found.append(
            Finding("broken", "trust", f"{', '.join(changed)} in {file} changed since it was trusted, {PASSED_OVER}")
        )
    if entries and not found:
        found.append(Finding("ok", "trust", f"Codex trusts the hooks in {file}"))
    return found


def trusted_hash(entry: Any, document: Any) -> str:
    """Return what config.toml must hold for a hook to run (0.171.0, as its own `hooks/list` gives it).

    Args:
        entry: a `registration.Entry`.
        document: the hooks file that it stands in.
    """
    fields: dict[str, Any] = {"async": bool(entry.fields.get("async")), "type": "command"}
    for name in ("additionalContextLimit", "command", "statusMessage"):
        if entry.fields.get(name) is not None:
            fields[name] = entry.fields[name]
    timeout = entry.fields.get("timeout")
    if entry.event == "SessionEnd":
        fields["timeout"] = min(SESSION_END_DEFAULT if timeout is None else timeout, SESSION_END_MOST)
    else:
        fields["timeout"] = DEFAULT_TIMEOUT if timeout is None else max(timeout, 1)
    identity: dict[str, Any] = {"event_name": _snake(entry.event), "hooks": [fields]}
    matcher = document["hooks"][entry.event][entry.group].get("matcher")
    if matcher is not None and entry.event not in NO_MATCHER:
        identity["matcher"] = matcher
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"


def _known(config: dict[str, Any], file: Path, entry: Any) -> dict[str, Any] | None:
    """Return what config.toml holds for a hook that is trusted and not switched off."""
    for path in {str(file), str(file.resolve())}:
        known = _state(config).get(f"{path}:{_snake(entry.event)}:{entry.group}:{entry.handler}")
        if known:
            return known
    return None


def _state(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what config.toml holds for the hooks that are trusted and not switched off, by Codex' name for each."""
    hooks = config.get("hooks", {})
    state = hooks.get("state", {}) if isinstance(hooks, dict) else {}
    return {
        key: known
        for key, known in (state.items() if isinstance(state, dict) else ())
        if isinstance(known, dict) and known.get("trusted_hash") and known.get("enabled", True)
    }


def _snake(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
