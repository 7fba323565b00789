"""`repeat-guard reset`: forget chains, and say which."""

import os
import time

from repeat_guard_cli import hook, paths, store, sweep
from repeat_guard_cli.people.sessions import choose, read_all

LOCK_SECONDS = 2.0


def reset(start: str | None) -> int:
    """Forget the session whose id begins with `start`; `None`: every session, those with unreadable files too."""
    state_dir = paths.state_dir(os.environ)
    sessions, skipped = read_all(state_dir)
    if start is not None:
        sessions, skipped = [choose(sessions, start)], []
    for session in sessions:
        with store.SessionFile(state_dir, session.session_id, LOCK_SECONDS) as file:
            file.remove()
        chains = sum(1 for agent in session.agents.values() if agent.chain)
        print(f"forgot session {session.session_id!a}: {chains} {'chain' if chains == 1 else 'chains'}")
    if skipped:
        print(f"removed {_remove_unreadable(state_dir)} unreadable files")
    if not sessions and not skipped:
        print(f"nothing to forget in {state_dir}")
    sweep.sweep(state_dir, time.time())
    return hook.OK


def _remove_unreadable(state_dir: str) -> int:
    directory, removed = paths.sessions_dir(state_dir), 0
    for name in os.listdir(directory):
        if name.endswith(store.SUFFIX):
            file = store.SessionFile(state_dir, "", LOCK_SECONDS)
            file.base = os.path.join(directory, name[: -len(store.SUFFIX)])
            with file:
                removed += file.remove()
    return removed
