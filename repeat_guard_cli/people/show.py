"""`repeat-guard show`: the chains as they stand."""

import os
import time
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from repeat_guard_cli import config, hook, model, paths
from repeat_guard_cli.people.sessions import choose, read_all
from repeat_guard_cli.people.text import clean, moment, to_json
from repeat_guard_cli.settings import Settings


def show(start: str | None, *, as_json: bool) -> int:
    """Print the chains of every session, or of the one whose id begins with `start`."""
    state_dir = paths.state_dir(os.environ)
    sessions, settings = _read(start, state_dir)
    if as_json:
        print(to_json(document(sessions, settings)))
        return hook.OK
    Console(highlight=False).print(_picture(sessions, settings, start is not None, state_dir))
    return hook.OK


def watch(start: str | None) -> int:
    """Print the chains anew every second until Ctrl-C."""
    state_dir = paths.state_dir(os.environ)

    def picture() -> RenderableType:
        sessions, settings = _read(start, state_dir)
        return _picture(sessions, settings, start is not None, state_dir)

    with Live(picture(), console=Console(highlight=False), auto_refresh=False, screen=False) as live:
        while True:
            time.sleep(1)
            live.update(picture(), refresh=True)


def document(sessions: list[model.Session], settings: Settings) -> dict[str, Any]:
    """Return what `--json` prints; a JSON value whose fields are documented in the README."""
    return {
        "sessions": [
            {
                "session_id": session.session_id,
                "updated_at": moment(session.updated_at),
                "chains": [
                    {
                        "agent_id": agent_id or None,
                        "tool_name": chain.tool_name,
                        "count": chain.count,
                        "next_threshold": next_threshold(chain.count, settings),
                        "arguments_preview": chain.preview,
                        "updated_at": moment(chain.updated_at),
                    }
                    for agent_id, chain in _chains(session)
                ],
            }
            for session in sessions
        ]
    }


def next_threshold(count: int, settings: Settings) -> int | None:
    """Return the threshold that a chain reaches next, `None` past the last."""
    return next((threshold for threshold in settings.thresholds if threshold > count), None)


def _read(start: str | None, state_dir: str) -> tuple[list[model.Session], Settings]:
    settings = config.load(os.environ, paths.working_dir(), state_dir)
    sessions, skipped = read_all(state_dir)
    for line in skipped:
        hook.complain(line)
    return ([choose(sessions, start)] if start is not None else sessions), settings


def _chains(session: model.Session) -> list[tuple[str, model.Chain]]:
    chains = [(agent_id, agent.chain) for agent_id, agent in session.agents.items() if agent.chain]
    return sorted(chains, key=lambda pair: (-pair[1].updated_at, pair[0]))


def _picture(sessions: list[model.Session], settings: Settings, in_detail: bool, state_dir: str) -> RenderableType:
    if not sessions:
        return Text(
            f"No sessions yet in {state_dir}.\n"
            "They appear once an agent runs with the hooks registered. `repeat-guard demo` shows what happens then."
        )
    return _details(sessions[0], settings) if in_detail else _table(sessions, settings)


def _table(sessions: list[model.Session], settings: Settings) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in ("session", "agent", "tool"):
        table.add_column(name, overflow="ellipsis", no_wrap=True, max_width=12 if name == "session" else 20)
    for name in ("count", "next", "when"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("arguments", overflow="ellipsis", no_wrap=True, ratio=1, min_width=9)
    for session in sessions:
        session_id = Text(clean(session.session_id))
        if not _chains(session):
            table.add_row(session_id, "", "", "", "", _ago(session.updated_at), Text("no chain", "dim"))
        for agent_id, chain in _chains(session):
            table.add_row(
                session_id,
                Text(clean(agent_id) or "main"),
                Text(clean(chain.tool_name)),
                Text(str(chain.count), "bold red" if chain.count >= settings.thresholds[0] else ""),
                str(next_threshold(chain.count, settings) or "-"),
                _ago(chain.updated_at),
                Text(clean(chain.preview or "")),
            )
    return table


def _details(session: model.Session, settings: Settings) -> RenderableType:
    lines = [Text(f"session    {clean(session.session_id)}"), Text(f"last event {moment(session.updated_at)}")]
    for agent_id, chain in _chains(session):
        lines += [
            Text(),
            Text(f"agent      {clean(agent_id) or 'main'}"),
            Text(f"tool       {clean(chain.tool_name)}"),
            Text(f"count      {chain.count}"),
            Text(f"next       {next_threshold(chain.count, settings) or '- (past the last threshold)'}"),
            Text(f"last call  {moment(chain.updated_at)} ({_ago(chain.updated_at)} ago)"),
            Text(f"arguments  {'(not kept)' if chain.preview is None else clean(chain.preview)}"),
        ]
    if not _chains(session):
        lines.append(Text("no chain: nothing was called since the last reset"))
    return Group(*lines)


def _ago(seconds: float) -> str:
    passed = max(0.0, time.time() - seconds)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if passed >= size:
            return f"{passed / size:.0f}{unit}"
    return f"{passed:.0f}s"
