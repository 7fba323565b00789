"""`repeat-guard install`: registers the hooks with an agent."""

import json
import os
from pathlib import Path

from repeat_guard_cli import agents, hook, paths
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.people import executable, json_text, registration, settings_file


def install(name: str, scope: str, events: str | None, *, dry_run: bool) -> int:
    """Put our hooks into an agent's settings, and say what changed and what to know.

    Args:
        name: the agent's.
        scope: which of its files.
        events: which set of events, `None`: the best for the installed version.
        dry_run: only say what would change.
    """
    agent = agents.named(name)
    path = agents.scoped(agent, scope, os.environ, Path.cwd())
    version = executable.version(agent)
    plan = agent.plan(scope, version, events)
    command = executable.on_path if scope == "project" else executable.absolute()
    content = settings_file.read(path)
    try:
        text = registration.put_in(content.text, plan.registrations, command)
    except (ValueError, GuardError) as error:
        print(json.dumps(registration.block(plan.registrations, command), indent=2))
        reason = error if isinstance(error, GuardError) else f"it is not valid JSON ({error})"
        raise GuardError(f"{path} was left as it is: {reason}. Put the block above into it by hand") from None
    if text != content.text:
        print(settings_file.changes(path, content.text, text), end="")
    if dry_run:
        return hook.OK
    if text == content.text:
        print(f"{path} has the hooks already; nothing to do")
    else:
        _write(path, content, text)
        print(f"\nregistered with {agent.TITLE}{_called(version)}: {_listed(text)}, in {path}")
        if settings_file.backup_path(path).exists():
            print(f"what it held before is in {settings_file.backup_path(path)}")
    for note in plan.notes:
        print(f"- {note}")
    print(f"`repeat-guard doctor {name}` tries it out; `repeat-guard uninstall {name}` takes it back")
    return hook.OK


def _write(path: Path, content: settings_file.Content, text: str) -> None:
    state_dir = paths.state_dir(os.environ)
    missing = sum(1 for folder in path.resolve().parents if not folder.exists())
    settings_file.remember(state_dir, path, content, text, missing)  # what was there is safe before anything is written
    settings_file.write(path, text)


def _called(version: agents.Version | None) -> str:
    return f" {agents.version_text(version)}" if version else ""


def _listed(text: str) -> str:
    return ", ".join(entry.event for entry in registration.entries(json_text.load(text)))
