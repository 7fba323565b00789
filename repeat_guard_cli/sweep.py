"""Removes what is stale in the state directory, a bounded number of files a run."""

import os

from repeat_guard_cli import paths, store
from repeat_guard_cli.errors import GuardError

STALE_SECONDS = 7 * 86_400
EVERY_SECONDS = 86_400
MAX_LOOKED_AT = 1_000
"""The directory is listed as a whole, which is cheap; so many of its files are looked at, from a point that moves."""


def sweep(state_dir: str, now: float) -> int:
    """Remove session files that nothing has changed for `STALE_SECONDS`, and what killed processes left behind.

    Args:
        state_dir: the state directory, which need not exist.
        now: seconds since the epoch.

    Returns:
        How many sessions were removed.
    """
    removed = 0
    for directory in (paths.sessions_dir(state_dir), os.path.join(state_dir, "settings")):
        if os.path.islink(directory):
            continue  # what it leads to is not the program's
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        start = int(now) % len(names) if len(names) > MAX_LOOKED_AT else 0
        for name in (names[start:] + names[:start])[:MAX_LOOKED_AT]:
            path = os.path.join(directory, name)
            if _is_stale(path, now):
                removed += _remove(path, state_dir, now)
    return removed


def sweep_daily(state_dir: str, now: float) -> None:
    """Sweep unless that was done within `EVERY_SECONDS`."""
    mark = os.path.join(state_dir, "swept")
    try:
        if abs(now - os.stat(mark).st_mtime) < EVERY_SECONDS:
            return
    except FileNotFoundError:
        pass
    except OSError:
        return
    if not os.path.isdir(state_dir):
        return
    try:
        store.write_file(mark, b"", mark + store.TEMPORARY_SUFFIX)
    except OSError:
        return
    sweep(state_dir, now)


def _is_stale(path: str, now: float) -> bool:
    try:
        return now - os.lstat(path).st_mtime > STALE_SECONDS
    except OSError:
        return False


def _remove(path: str, state_dir: str, now: float) -> bool:
    base, suffix = os.path.splitext(path)
    if os.path.dirname(path) != paths.sessions_dir(state_dir):
        _unlink(path)
        return False
    if suffix not in (store.SUFFIX, store.LOCK_SUFFIX, store.TEMPORARY_SUFFIX):
        return False  # the file of another layout, and so another version's to remove
    file = store.SessionFile(state_dir, "", 0)
    file.base = base
    if suffix != store.SUFFIX and file.exists():
        return False  # it goes with its session's file
    try:
        with file:
            return (_is_stale(path, now) or not os.path.lexists(path)) and file.remove()
    except GuardError:
        return False


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
