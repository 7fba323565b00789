"""Reads every session of the state directory."""

import os

from repeat_guard_cli import model, paths, store
from repeat_guard_cli.errors import GuardError


def read_all(state_dir: str) -> tuple[list[model.Session], list[str]]:
    """Read the session files of a state directory.

    Returns:
        The sessions, the one changed last first, and a line for each file that can't be read.

    Raises:
        GuardError: the directory is there but can't be listed.
    """
    directory = paths.sessions_dir(state_dir)
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise GuardError(f"can't list {directory}: {error.strerror}; make it readable") from None
    found, skipped = [], []
    for name in names:
        if not name.endswith(store.SUFFIX):
            continue
        path = os.path.join(directory, name)
        try:
            found.append(store.read_session(path))
        except FileNotFoundError:
            continue  # the session ended meanwhile
        except (OSError, ValueError) as error:
            skipped.append(f"skipped {path}: {getattr(error, 'strerror', None) or error}")
    found.sort(key=lambda session: (-session.updated_at, session.session_id))
    return found, skipped


def choose(sessions: list[model.Session], start: str) -> model.Session:
    """Return the session whose id is `start`, else the only one whose id begins so.

    Raises:
        GuardError: there is none, or more than one.
    """
    start = model.bounded_id(start)
    matching = [session for session in sessions if session.session_id.startswith(start)]
    exact = [session for session in matching if session.session_id == start]
    if len(exact or matching) == 1:
        return (exact or matching)[0]
    if matching:
        few = ", ".join(session.session_id for session in matching[:3])
        raise GuardError(f"{start} is the start of {len(matching)} session ids ({few}...); give more of it")
    raise GuardError(f"no session begins with {start!r}; `repeat-guard show` lists them")
