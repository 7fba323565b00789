"""The rules of the guard. Pure: no I/O, no clock, no environment."""

from repeat_guard_cli.fingerprint import MISSING, call_key, canonical, digest
from repeat_guard_cli.model import MAX_RECENT, MAX_TOOL_NAME, Agent, Chain, bounded_id
from repeat_guard_cli.patterns import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from repeat_guard_cli.payload import Event
    from repeat_guard_cli.settings import Settings

MAX_STORED_PREVIEW = 500
SAME_REPORT_MS = 2_000
"""Two registrations of one hook report a call within this time; a later report with the same id is a new call."""


class Run:
    """Identical calls within one report, and the highest threshold that they reached (0: none)."""

    __slots__ = ("arguments", "threshold", "tool_name")

    def __init__(self, tool_name: str, arguments: "Any") -> None:
        self.tool_name = tool_name
        self.arguments = arguments
        self.threshold = 0


def is_tracked(tool_name: str, include: "Sequence[str]", exclude: "Sequence[str]") -> bool:
    """Tell whether calls of a tool count; the others are transparent: they neither count nor reset."""
    if any(matches(pattern, tool_name) for pattern in exclude):
        return False
    return not include or any(matches(pattern, tool_name) for pattern in include)


def next_count(previous_key: str | None, previous_count: int, key: str) -> int:
    """Count a tracked call after the one before it (`None`: there is none); see `fingerprint.call_key` for keys."""
    return previous_count + 1 if key and key == previous_key else 1


def preview_text(arguments: "Any", chars: int | None) -> str:
    """Return the first `chars` characters (`None`: all) of the canonical arguments; missing arguments have none."""
    return "" if arguments is MISSING else canonical(arguments)[:chars]


def record(agent: Agent, event: "Event", settings: "Settings", now: float) -> list[Run]:
    """Count the calls of one tool event in their order.

    Args:
        agent: what is remembered of the agent; changed in place.
        event: a tool event.
        settings: the settings in force.
        now: seconds since the epoch.

    Returns:
        The runs of identical calls that reached a threshold, in order.

    Raises:
        GuardError: arguments are nested too deeply to compare; calls before that one are already counted.
    """
    runs: list[Run] = []
    for call in event.calls:
        if not is_tracked(call.tool_name, settings.include, settings.exclude):
            continue
        key = call_key(call.tool_name, call.arguments, settings.labels)
        if call.call_id and _already_reported(agent, digest(f"{key} {call.call_id}", 5), event.name, int(now * 1000)):
            continue
        chain = agent.chain
        count = next_count(chain.key, chain.count, key) if chain else 1
        if chain is None or count == 1:
            preview = None
            if settings.state_preview:
                preview = preview_text(call.arguments, min(MAX_STORED_PREVIEW, settings.arguments_preview_chars))
            unknown = chain.unknown if chain else {}
            chain = agent.chain = Chain(call.tool_name[:MAX_TOOL_NAME], key, 1, preview, now)
            chain.unknown = unknown
            runs.append(Run(call.tool_name, call.arguments))
        elif not runs:
            runs.append(Run(call.tool_name, call.arguments))
        chain.count = count
        if not settings.state_preview:
            chain.preview = None  # of a chain that began when one was wanted
        chain.updated_at = now
        agent.prompt_id = bounded_id(event.prompt_id)
        if count in settings.thresholds:
            runs[-1].threshold = count
    return [run for run in runs if run.threshold]


def _already_reported(agent: Agent, report: str, event_name: str, now_ms: int) -> bool:
    """Tell whether a call was reported before, and remember this report."""
    reports = agent.recent.pop(report, None)
    known = reports is not None and event_name in reports
    if reports is None or (known and abs(now_ms - reports[reports.index(event_name) + 1]) > SAME_REPORT_MS):
        agent.recent[report] = [event_name, now_ms]
        while len(agent.recent) > MAX_RECENT:
            del agent.recent[next(iter(agent.recent))]
        return False
    agent.recent[report] = reports if known else [*reports, event_name, now_ms]
    return True
