"""What `scan` found, as the JSON document that the page and the tables are made from too. Pure."""

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from repeat_guard_cli.people.text import moment
from repeat_guard_cli.settings import Settings
from repeat_guard_cli.transcripts.files import SUBAGENT, SUFFIX, Reading
from repeat_guard_cli.transcripts.runs import Run, Stream, Transcript, seconds

WORST = 10
KINDS = {"same": "loop", "changed": "polling", "unknown": "unclear"}
REDACTED_SHARE = 0.05
REDACTED_CALLS = 3


class Question(NamedTuple):
    """What was asked.

    Attributes:
        since: calls before this time, seconds since the epoch, were left out.
        arguments: whether they may be shown.
    """

    settings: Settings
    min_run: int
    since: float | None
    arguments: bool


class _Session:
    def __init__(self, reading: Reading, transcript: Transcript) -> None:
        self.reading = reading
        self.first = transcript
        self.parts = [(reading.found.path, transcript)]


def document(readings: Iterable[Reading], question: Question, problems: list[str]) -> dict[str, Any]:
    """Return what `--json` prints; its fields are documented in docs/scan-json.md.

    Args:
        readings: of every file, in the order of their paths.
        question: what was asked.
        problems: a line for each path that could not be read.
    """
    sessions = [_session(session, question) for session in _merged(readings)]
    sessions = [session for session in sessions if question.since is None or session["calls"]]
    return {"sessions": sessions, "summary": _summary(sessions, question, problems)}


def _merged(readings: Iterable[Reading]) -> list[_Session]:
    """Put the files of Claude Code's subagents to the session's own file, where that was read too."""
    read = [(reading, reading.transcript) for reading in readings if reading.transcript]
    sessions = {reading.found.path: _Session(reading, transcript) for reading, transcript in read}
    for reading, transcript in read:
        folder, name = os.path.split(reading.found.path)
        if reading.agent != "claude-code" or not name.startswith(SUBAGENT) or not transcript.session_id:
            continue
        own = transcript.session_id + SUFFIX
        before, found, _ = f"{folder}{os.sep}".rpartition(f"{os.sep}{transcript.session_id}{os.sep}")
        for path in (os.path.join(folder, own), os.path.join(before, own) if found else ""):
            if path in sessions and path != reading.found.path:
                sessions[path].parts.append((reading.found.path, transcript))
                del sessions[reading.found.path]
                break
    return list(sessions.values())


def _session(session: _Session, question: Question) -> dict[str, Any]:
    transcripts = [transcript for _, transcript in session.parts]
    streams = [
        (stream, transcript.agent_id or stream.agent_id) for transcript in transcripts for stream in transcript.streams
    ]
    first = [transcript.first_at for transcript in transcripts if transcript.first_at]
    last = [transcript.last_at for transcript in transcripts if transcript.last_at]
    return {
        "path": session.reading.found.path,
        "agent": session.reading.agent,
        "session_id": session.first.session_id or None,
        "version": session.first.version or None,
        "calls": sum(stream.calls for stream, _ in streams),
        "first_at": _moment(min(first, key=_seconds, default="")),
        "last_at": _moment(max(last, key=_seconds, default="")),
        "streams": [_stream(stream, agent_id, question) for stream, agent_id in streams],
        "subagent_paths": [path for path, _ in session.parts[1:]],
        "broken_lines": sum(transcript.broken for transcript in transcripts),
        "redacted_calls": sum(transcript.redacted for transcript in transcripts),
    }


def _stream(stream: Stream, agent_id: str, question: Question) -> dict[str, Any]:
    return {
        "agent_id": agent_id or None,
        "calls": stream.calls,
        "tracked_calls": stream.tracked,
        "repeated_calls": stream.repeats,
        "reminders": stream.reminders,
        "tokens_after_first_threshold": stream.tokens,
        "runs": [_run(run, question) for run in stream.runs],
    }


def _run(run: Run, question: Question) -> dict[str, Any]:
    first, last = seconds(run.first_at), seconds(run.last_at)
    return {
        "tool_name": run.tool_name,
        "arguments_preview": run.arguments_preview if question.arguments else None,
        "count": run.count,
        "first_at": _moment(run.first_at),
        "last_at": _moment(run.last_at),
        "seconds": None if first is None or last is None else round(last - first, 3),
        "all_failed": run.failures == run.count,
        "failed": run.failures,
        "results": run.results,
        "kind": KINDS[run.results],
        "tokens_after_first_threshold": run.tokens,
        "ended_by": run.ended_by,
        "reminders": [{"count": count, "at": _moment(at)} for count, at in run.reminders],
        "hook_tool_name": run.hook_name,
        "unseen_by_hook": run.unseen,
        "unseen_why": run.unseen_why or None,
        "redacted": run.redacted,
    }


def _summary(sessions: list[dict[str, Any]], question: Question, problems: list[str]) -> dict[str, Any]:
    streams = [stream for session in sessions for stream in session["streams"]]
    runs = [
        {"path": session["path"], "session_id": session["session_id"], "agent_id": stream["agent_id"], **run}
        for session in sessions
        for stream in session["streams"]
        for run in stream["runs"]
    ]
    calls = sum(session["calls"] for session in sessions)
    repeats = sum(stream["repeated_calls"] for stream in streams)
    kinds = Counter(run["kind"] for run in runs)
    redacted = sum(session["redacted_calls"] for session in sessions)
    settings = question.settings
    times = [session[name] for session in sessions for name in ("first_at", "last_at") if session[name]]
    return {
        "sessions": len(sessions),
        "calls": calls,
        "tracked_calls": sum(stream["tracked_calls"] for stream in streams),
        "repeated_calls": repeats,
        "repeated_share": round(repeats / calls, 6) if calls else 0.0,
        "runs": len(runs),
        "loops": kinds["loop"],
        "polling": kinds["polling"],
        "unclear": kinds["unclear"],
        "longest_run": max((run["count"] for run in runs), default=0),
        "reminders": sum(stream["reminders"] for stream in streams),
        "tokens_after_first_threshold": sum(stream["tokens_after_first_threshold"] for stream in streams),
        "unseen_by_hook": sum(run["unseen_by_hook"] for run in runs),
        "first_at": min(times, default=None),
        "last_at": max(times, default=None),
        "worst_runs": sorted(runs, key=lambda run: (-run["count"], -run["tokens_after_first_threshold"]))[:WORST],
        "tools": _tools(runs, settings),
        "redacted_calls": redacted,
        "looks_redacted": redacted >= max(REDACTED_CALLS, REDACTED_SHARE * calls),
        "broken_lines": sum(session["broken_lines"] for session in sessions),
        "unreadable": problems,
        "settings": {
            "thresholds": list(settings.thresholds),
            "include": list(settings.include),
            "exclude": list(settings.exclude),
            "ignore_arguments": [f"{tool}.{argument}" for tool, argument in settings.labels],
            "min_run": question.min_run,
            "since": None if question.since is None else moment(question.since),
        },
    }


def _tools(runs: list[dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    """Return for each tool its runs, and the setting that would silence it where some of them looked like polling."""
    tools: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        tools.setdefault((run["tool_name"], run["hook_tool_name"]), []).append(run)
    found = []
    for (tool_name, hook_name), those in tools.items():
        polling = sum(run["kind"] == "polling" for run in those)
        found.append(
            {
                "tool_name": tool_name,
                "hook_tool_name": hook_name,
                "runs": len(those),
                "polling": polling,
                "loops": sum(run["kind"] == "loop" for run in those),
                "longest_run": max(run["count"] for run in those),
                "tokens_after_first_threshold": sum(run["tokens_after_first_threshold"] for run in those),
                "exclude": _exclude_line([*settings.exclude, hook_name]) if polling else None,
            }
        )
    return sorted(found, key=lambda tool: (-tool["runs"], tool["tool_name"]))


def _exclude_line(patterns: list[str]) -> str:
    """Write the setting as it stands in a settings file; a TOML string escapes as JSON does."""
    from repeat_guard_cli import wire

    return f"exclude = [{', '.join(wire.dumps_sorted(pattern) for pattern in patterns)}]"


def _seconds(at: str) -> float:
    return seconds(at) or 0.0


def _moment(at: str) -> str | None:
    found = seconds(at)
    return None if found is None else moment(found)
