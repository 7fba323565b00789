"""`repeat-guard doctor`: proves that the hooks are registered, and that they work as registered."""

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from repeat_guard_cli import agents, config, hook, paths, payload, store
from repeat_guard_cli.agents import Agent, Finding, Version
from repeat_guard_cli.errors import GuardError, SettingsError
from repeat_guard_cli.people import executable, json_text, registration, rehearsal, settings_file
from repeat_guard_cli.people.text import clean, to_json

STYLES = {"ok": "green", "note": "yellow", "broken": "bold red"}
RECENT_SECONDS = 7 * 86_400


class Files(NamedTuple):
    """An agent's settings: the path of each scope's file, and what those hold that are there."""

    paths: dict[str, Path]
    documents: dict[str, Any]


def doctor(name: str | None, *, as_json: bool) -> int:
    """Check everything for one agent, or for each that is found; exit code 1 if anything is broken."""
    state_dir = paths.state_dir(os.environ)
    findings: list[tuple[str | None, Finding]] = [(None, finding) for finding in _guard(state_dir)]
    found = [agents.named(name)] if name else [agent for agent in agents.known().values() if _is_here(agent)]
    if not found:
        known = ", ".join(agents.known())
        message = f"no agent was found ({known}); install one, or name it: `repeat-guard doctor AGENT`"
        findings.append((None, Finding("broken", "agents", message)))
    for agent in found:
        findings += [(agent.NAME, finding) for finding in _agent(agent)]
    broken = any(finding.status == "broken" for _, finding in findings)
    if as_json:
        print(to_json({"ok": not broken, "checks": [{"agent": agent, **each._asdict()} for agent, each in findings]}))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for agent_name, finding in findings:
            label = Text(f"{finding.status:7}", STYLES[finding.status])
            console.print(label, Text(f"{agent_name or 'repeat-guard'}: {clean(finding.message)}"))
    return hook.FAILED if broken else hook.OK


def _is_here(agent: Agent) -> bool:
    return agent.user_folder(os.environ).is_dir() or shutil.which(agent.PROGRAM) is not None


def _guard(state_dir: str) -> Iterator[Finding]:
    """Check what all agents share."""
    if config.is_off(os.environ):
        yield Finding("broken", "switched-on", "REPEAT_GUARD_OFF switches the guard off; unset it")
    try:
        config.load(os.environ, os.getcwd(), state_dir)
        project = config.project_source(os.environ, os.getcwd(), state_dir)
        yield Finding("ok", "settings", f"the settings are valid{f' ({project.path} too)' if project.values else ''}")
    except SettingsError as error:
        yield Finding("broken", "settings", str(error))
    yield _state(state_dir)
    last = _last_failure(state_dir)
    if last:
        yield Finding("note", "log", f"the last failure in {paths.log_file(state_dir)}: {last}")


def _state(state_dir: str) -> Finding:
    probe = os.path.join(paths.sessions_dir(state_dir), f"_doctor-{os.getpid()}")
    try:
        store.make_private_dir(state_dir)
        store.make_private_dir(paths.sessions_dir(state_dir))
        store.write_file(probe, b"", f"{probe}{store.TEMPORARY_SUFFIX}")
        os.unlink(probe)
    except OSError as error:
        return Finding(
            "broken",
            "state",
            f"can't write to the state directory {state_dir}: {error.strerror}; make it writable, or name another "
            "in REPEAT_GUARD_STATE_DIR",
        )
    return Finding("ok", "state", f"the state directory {state_dir} is writable")


def _last_failure(state_dir: str) -> str:
    """Return the newest entry of the log if it is from the last days; "" if there is none."""
    path = paths.log_file(state_dir)
    try:
        if time.time() - os.stat(path).st_mtime > RECENT_SECONDS:
            return ""
        lines = store.read_file(path, 1 << 20).decode(errors="replace").splitlines()
    except (OSError, ValueError):
        return ""
    dated = [line for line in lines if line[:2] == "20"]
    return dated[-1][:300] if dated else ""


def _agent(agent: Agent) -> Iterator[Finding]:
    version = executable.version(agent)
    if version:
        yield Finding("ok", "program", f"{agent.TITLE} {agents.version_text(version)}")
    else:
        yield Finding("note", "program", f"no `{agent.PROGRAM}` on PATH to ask for its version")
    files = _files(agent)
    for scope, path in files.paths.items():
        try:
            text = settings_file.read(path).text
            if not json_text.is_blank(text):
                files.documents[scope] = json_text.load(text)
        except ValueError as error:
            yield Finding("broken", "file", f"{path} is not valid JSON ({error}); mend it")
        except GuardError as error:
            yield Finding("broken", "file", str(error))
    for name, (path, document) in agent.also(agent.user_folder(os.environ)).items():
        files.paths[name], files.documents[name] = path, document
    yield from agent.check(files.documents, files.paths, version, agent.user_folder(os.environ))
    yield from _registered(agent, files, version)


def _files(agent: Agent) -> Files:
    """Return the files of each scope, those once that two scopes share (in the home directory)."""
    found: dict[str, Path] = {}
    for scope in agent.SCOPES:
        path = agent.settings_file(scope, os.environ, Path.cwd())
        if path.resolve() not in {other.resolve() for other in found.values()}:
            found[scope] = path
    return Files(found, {})


def _registered(agent: Agent, files: Files, version: Version | None) -> Iterator[Finding]:
    entries = {scope: registration.entries(document) for scope, document in files.documents.items()}
    plugin = agent.plugin(files.documents, files.paths, agent.user_folder(os.environ))
    if not any(entries.values()):
        if plugin:
            yield Finding("ok", "registered", f"by the plugin that {plugin} enables")
            yield from rehearsal.rehearse(agent, [("PostToolUse", {"command": "repeat-guard post-tool-use"})])
        else:
            message = f"not registered with {agent.TITLE}; run `repeat-guard install {agent.NAME}`"
            yield Finding("broken", "registered", message)
        return
    places: dict[str, list[str]] = {}
    for scope, found in entries.items():
        for entry in found:
            places.setdefault(entry.event, []).append(str(files.paths[scope]))
    if plugin:
        places.setdefault("PostToolUse", []).append("the plugin")
    for scope, found in entries.items():
        if found:
            yield Finding("ok", "registered", f"{', '.join(entry.event for entry in found)} in {files.paths[scope]}")
    for event, where in places.items():
        if len(where) > 1:
            message = (
                f"{event} is registered {len(where)} times ({', '.join(dict.fromkeys(where))}): a call counts once "
            )
            yield Finding("note", "twice", f"{message}all the same, but costs a process for each; one is enough")
    yield from _complete(agent, set(places), version)
    yield from _narrowed(files, entries)
    for found in entries.values():
        if found:
            yield from rehearsal.rehearse(agent, [(entry.event, entry.fields) for entry in found])


def _complete(agent: Agent, events: set[str], version: Version | None) -> Iterator[Finding]:
    if not events & set(payload.EVENTS[payload.POST_TOOL_USE]):
        yield Finding("broken", "events", f"no tool event is registered; run `repeat-guard install {agent.NAME}`")
    if "UserPromptSubmit" not in events:
        message = "UserPromptSubmit is not registered: a prompt of yours doesn't start afresh; run "
        yield Finding("broken", "events", f"{message}`repeat-guard install {agent.NAME}`")
    missed = agent.blind(events, version)
    if missed:
        yield Finding("note", "events", missed)


def _narrowed(files: Files, entries: Mapping[str, list[registration.Entry]]) -> Iterator[Finding]:
    for scope, found in entries.items():
        for entry in found:
            matcher = files.documents[scope]["hooks"][entry.event][entry.group].get("matcher")
            if matcher not in (None, "", "*", ".*"):
                message = f"{entry.event} in {files.paths[scope]} sees only tools that match {matcher!r}"
                yield Finding("note", "matcher", message)
