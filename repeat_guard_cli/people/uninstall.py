"""`repeat-guard uninstall`: takes the hooks out of an agent's settings."""

import os
from pathlib import Path

from repeat_guard_cli import agents, hook, paths
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.people import json_text, registration, settings_file


def uninstall(name: str, scope: str | None, *, dry_run: bool) -> int:
    """Take our hooks out of an agent's settings, and say what changed.

    Args:
        name: the agent's.
        scope: which of its files, `None`: every one that has our hooks.
        dry_run: only say what would change.
    """
    agent = agents.named(name)
    scopes = agent.SCOPES if scope is None else (scope,)
    changed = 0
    for path in dict.fromkeys(agents.scoped(agent, each, os.environ, Path.cwd()) for each in scopes):
        changed += _take_out(path, dry_run)
    if not changed:
        print(f"{agent.TITLE} has no hooks of repeat-guard here; nothing to do")
    return hook.OK


def _take_out(path: Path, dry_run: bool) -> bool:
    content = settings_file.read(path)
    if json_text.is_blank(content.text):
        return False
    try:
        if not registration.entries(json_text.load(content.text)):
            return False
    except ValueError as error:
        if "repeat-guard" not in content.text and "repeat_guard_cli" not in content.text:
            return False
        raise GuardError(
            f"{path} was left as it is: it is not valid JSON ({error}). Take the lines with repeat-guard out by hand"
        ) from None
    state_dir = paths.state_dir(os.environ)
    record, backup = settings_file.recall(state_dir, path), settings_file.read(settings_file.backup_path(path))
    text = _restored(content.text, record, backup)
    print(settings_file.changes(path, content.text, text or ""), end="")
    if dry_run:
        return True
    if text is None:
        _remove(path, record.folders if record else 0)
        print(f"\nremoved {path}, which `repeat-guard install` had made")
    else:
        settings_file.write(path, text)
        print(f"\ntook the hooks out of {path}")
    if backup.existed:
        if backup.text == (text or ""):
            settings_file.backup_path(path).unlink()
        else:
            print(f"others changed it too; what it held before `install` is in {settings_file.backup_path(path)}")
    settings_file.forget(state_dir, path)
    return True


def _restored(text: str, record: settings_file.Record | None, backup: settings_file.Content) -> str | None:
    """Return what the file is to hold, `None` if it is to go."""
    if record is None:
        guess = settings_file.guess(text, backup)
        return guess.text if guess.existed else None
    if record.written == settings_file.fingerprint(text) and backup.existed and record.existed:
        return backup.text
    left = registration.take_out(text, settings_file.document(backup))
    return None if not record.existed and json_text.load(left) == {} else left


def _remove(path: Path, folders: int) -> None:
    target = path.resolve()
    try:
        target.unlink()
        for folder in list(target.parents)[:folders]:
            folder.rmdir()
    except OSError:
        pass  # other files are in the folder by now
