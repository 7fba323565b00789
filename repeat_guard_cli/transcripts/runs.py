"""From what happened in a session to the runs of identical calls in it, by the rules that the hook runs.

Pure: no I/O, no clock, no environment.
"""

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import orjson

from repeat_guard_cli import guard, prompts
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.fingerprint import call_key, without_labels
from repeat_guard_cli.model import Agent
from repeat_guard_cli.settings import Settings
from repeat_guard_cli.transcripts import events

MAX_WAITING = 4_096
"""Repeated calls whose results are still awaited; calls that never get one must not pile up."""
MAX_SEEN = 50_000
"""Calls remembered in order not to count one twice; layouts that repeat calls do so within a few lines."""
MAX_HELD_BYTES = 32 << 20
"""Results held in case that their call repeats; beyond this they count as unknown."""

_REDACTED = re.compile(
    r"redacted|\*{3,}|^[xX]{4,}$|[\[<{](?:removed|masked|hidden|omitted|path|file|command|secret)[\]>}]", re.IGNORECASE
)
Labels = Sequence[tuple[str, str]]
"""Pairs of a tool-name pattern and the name of an argument that only labels a call."""
_TELLING = ("command", "cmd", "file_path", "path", "notebook_path")
"""The arguments that tell most calls apart."""


@dataclass(frozen=True)
class Run:
    """Consecutive identical calls of one agent.

    Attributes:
        tool_name: as the transcript names it.
        hook_name: as the agent's hooks name it.
        arguments_preview: the head of the first call's canonical arguments.
        count: how many calls.
        first_at: when the first came, ISO 8601, `""` if unknown.
        last_at: when the last came.
        failures: how many calls failed.
        unknown: of how many calls nobody knows whether they failed.
        results: `same`, `changed` or `unknown`.
        tokens: of the model's messages after the call that reached the first threshold, up to the last call.
        ended_by: `call`, `prompt` or `end`.
        reminders: at which thresholds a reminder would have come, and when.
        unseen: how many calls the live hook would not have been told of.
        unseen_why: and why, `""` if none.
        redacted: whether the arguments look as if their text had been taken out.
    """

    tool_name: str
    hook_name: str
    arguments_preview: str
    count: int
    first_at: str
    last_at: str
    failures: int
    unknown: int
    results: str
    tokens: int
    ended_by: str
    reminders: list[tuple[int, str]]
    unseen: int
    unseen_why: str
    redacted: bool


@dataclass(frozen=True)
class Stream:
    """One agent of a session.

    Attributes:
        tracked: the calls that count; the others are transparent.
        repeats: calls that were the same as the one before.
        tokens: spent in all runs after the first threshold, also in those that are too short to be listed.
        reminders: that would have come in all runs.
        runs: those long enough.
    """

    agent_id: str
    calls: int
    tracked: int
    repeats: int
    tokens: int
    reminders: int
    runs: list[Run]


@dataclass(frozen=True)
class Transcript:
    """What one file told.

    Attributes:
        broken: lines that are no JSON.
        redacted: calls whose arguments look as if their text had been taken out.
    """

    session_id: str
    version: str
    agent_id: str
    streams: list[Stream]
    broken: int
    redacted: int
    first_at: str
    last_at: str


class Format(Protocol):
    """What a module that reads an agent's transcripts provides."""

    def recognises(self, line: dict[str, Any]) -> bool:
        """Tell whether a line is one that only this agent writes."""

    def read(
        self, lines: Iterable[bytes], wants: events.Wants, elsewhere: Collection[str]
    ) -> Iterator[events.Happening]:
        """Tell what happened.

        Args:
            lines: of one file.
            wants: looked at before each line.
            elsewhere: ids of subagents whose own files are read too; what this one repeats of them is left out.
        """

    def outcomes(self, line: bytes) -> Iterator[events.Outcome]:
        """Read the results that a line holds."""

    def hook_name(self, tool_name: str) -> str:
        """Return the name of a tool that the agent's hooks are told."""

    def unseen(self, tool_name: str, version: str, *, failed: bool, refused: bool) -> str:
        """Say why the live hook would not have been told of a call, `""` if it would."""


def seconds(at: str) -> float | None:
    """Read an ISO 8601 time; `None` where it is none."""
    try:
        return datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp() if at else None
    except (ValueError, OverflowError):
        return None


class _Chain:
    """A run that is going on."""

    def __init__(self, call: events.Call, key: str | None, version: str) -> None:
        self.call = call
        self.key = key
        """The first call's, `None` as long as nobody needed it."""
        self.version = version
        self.count = 0
        self.last_at = ""
        self.tokens = 0
        self.reminders: list[tuple[int, str]] = []
        self.known = 0
        self.failures = 0
        self.unclear = 0
        self.compared = 0
        self.contents: set[int] = set()
        self.unseen: dict[str, int] = {}
        self.raw = b""
        """The line with the first call's result, kept until the call repeats."""
        self.ended_by = ""

    def compare(self, content: Any) -> None:
        """Take a result's content in; one that is nested too deeply to compare stays unknown."""
        if len(self.contents) < 2 and (written := _written(content)):
            self.contents.add(hash(written))
            self.compared += 1


class _Stream:
    def __init__(self) -> None:
        self.chain: _Chain | None = None
        self.runs: list[_Chain] = []
        self.calls = self.tracked = self.repeats = self.tokens = self.reminders = 0
        self.pending = 0
        self.messages: dict[Hashable, None] = {}
        self.since_usage: tuple[_Chain, bool] | None = None


class Analysis:
    """Counts what the readers tell."""

    def __init__(self, form: Format, settings: Settings, min_run: int, since: float | None, written: float) -> None:
        """Begin with a file.

        Args:
            form: the agent's.
            settings: the rules.
            min_run: how long a run must be to be listed, at least 2.
            since: calls before this time, seconds since the epoch, are left out.
            written: when the file was last changed, which serves where it tells no times.
        """
        self.wants = events.Wants()
        self._form = form
        self._settings = settings
        self._min_run = min_run
        self._since = since
        self._written = written
        self._session = events.Session("", "")
        self._streams: dict[str, _Stream] = {}
        self._waiting: dict[str, _Chain] = {}
        self._seen: dict[int, None] = {}
        self._tracked: dict[str, bool] = {}
        self._broken = self._redacted = self._held = 0
        self._first_at = self._last_at = ""

    def take(self, happenings: Iterable[events.Happening]) -> Transcript:
        """Count everything, and tell what came of it."""
        for happening in happenings:
            if isinstance(happening, events.Result):
                self._result(happening)
            elif isinstance(happening, events.Call):
                self._call(happening)
            elif isinstance(happening, events.Usage):
                self._usage(happening)
            elif isinstance(happening, events.Prompt):
                if prompts.resets(happening.event, Agent()):
                    self._end(events.MAIN, "prompt")
            elif isinstance(happening, events.Branch):
                self._end(happening.agent_id, "end")
            elif isinstance(happening, events.Broken):
                self._broken += 1
            else:
                self._session = happening
        for agent_id in self._streams:
            self._end(agent_id, "end")
        streams = [self._report(agent_id, stream) for agent_id, stream in self._streams.items()]
        session = self._session
        return Transcript(
            session.session_id,
            session.version,
            session.agent_id,
            streams,
            self._broken,
            self._redacted,
            self._first_at,
            self._last_at,
        )

    def _call(self, call: events.Call) -> None:
        self._last_at = call.at or self._last_at
        if self._since is not None:
            at = seconds(call.at or self._last_at)
            if (self._written if at is None else at) < self._since:
                return
        if call.call_id and self._is_known(hash((call.call_id, call.tool_name, _written(call.arguments)))):
            return
        self._first_at = self._first_at or call.at
        stream = self._streams.setdefault(call.agent_id, _Stream())
        stream.calls += 1
        self._redacted += _looks_redacted(call.arguments)
        if not self._is_tracked(call.tool_name):
            return
        stream.tracked += 1
        chain = stream.chain
        count, key = self._next_count(chain, call)
        first = self._settings.thresholds[0]
        if chain is None or count == 1:
            self._end(call.agent_id, "call")
            chain = stream.chain = _Chain(call, key, self._session.version)
        else:
            stream.repeats += 1
            if count > first:
                chain.tokens += stream.pending
            if count == 2 and chain.raw:
                self._read(chain.raw)
                self._held -= len(chain.raw)
                chain.raw = b""
        stream.pending = 0
        chain.count, chain.last_at = count, call.at
        if count in self._settings.thresholds:
            chain.reminders.append((count, call.at))
            stream.reminders += 1
        if stream.since_usage is None:
            stream.since_usage = (chain, count > first)
        self._await(call.call_id, chain)
        if count >= first or self.wants.usage:
            self._look_for_usage()

    def _next_count(self, chain: _Chain | None, call: events.Call) -> tuple[int, str | None]:
        """Count a call after those before it, and return its key if it took one to tell.

        A key costs more than all the rest that a call takes, and most calls differ from the one before.
        """
        labels = self._settings.labels
        if chain is None or not may_be_same(chain.call, call, labels):
            return 1, None
        if chain.key is None:
            chain.key = _key(chain.call, labels)
        key = _key(call, labels)
        return guard.next_count(chain.key, chain.count, key), key

    def _await(self, call_id: str, chain: _Chain) -> None:
        if not call_id:
            return
        self._waiting[call_id] = chain
        if len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def _is_known(self, mark: int) -> bool:
        if mark in self._seen:
            return True
        self._seen[mark] = None
        if len(self._seen) > MAX_SEEN:
            del self._seen[next(iter(self._seen))]
        return False

    def _is_tracked(self, tool_name: str) -> bool:
        """Tell whether calls of a tool count, by its name in the transcript or the one that hooks are told."""
        if tool_name not in self._tracked:
            names = {tool_name, self._form.hook_name(tool_name)}
            include, exclude = self._settings.include, self._settings.exclude
            self._tracked[tool_name] = any(guard.is_tracked(name, include, ()) for name in names) and all(
                guard.is_tracked(name, (), exclude) for name in names
            )
        return self._tracked[tool_name]

    def _result(self, result: events.Result) -> None:
        chain = self._waiting.get(result.call_id)
        if chain is None:
            return
        if chain.count == 1 and not chain.ended_by:
            if self._held + len(result.line) <= MAX_HELD_BYTES:
                chain.raw = result.line
                self._held += len(result.line)
        else:
            self._read(result.line)

    def _read(self, line: bytes) -> None:
        for outcome in self._form.outcomes(line):
            chain = self._waiting.pop(outcome.call_id, None)
            if chain is None:
                continue
            chain.known += 1
            chain.failures += outcome.failed is True
            chain.unclear += outcome.failed is None
            chain.compare(outcome.content)
            why = self._form.unseen(
                chain.call.tool_name, chain.version, failed=outcome.failed is True, refused=outcome.refused
            )
            if why:
                chain.unseen[why] = chain.unseen.get(why, 0) + 1

    def _usage(self, usage: events.Usage) -> None:
        stream = self._streams.get(usage.agent_id)
        if stream is None:
            return
        if usage.message is not None:
            known = usage.message in stream.messages
            stream.messages[usage.message] = None
            if len(stream.messages) > 64:
                del stream.messages[next(iter(stream.messages))]
            if known:
                return
        if usage.follows and stream.since_usage is not None:
            chain, is_past = stream.since_usage
            if is_past:
                chain.tokens += usage.tokens
                if chain.ended_by:
                    stream.tokens += usage.tokens
            stream.since_usage = None
            self._look_for_usage()
        elif stream.chain and stream.chain.count >= self._settings.thresholds[0]:
            stream.pending += usage.tokens

    def _look_for_usage(self) -> None:
        first = self._settings.thresholds[0]
        self.wants.usage = any(
            (stream.chain is not None and stream.chain.count >= first)
            or (stream.since_usage is not None and stream.since_usage[1])
            for stream in self._streams.values()
        )

    def _end(self, agent_id: str, ended_by: str) -> None:
        stream = self._streams.get(agent_id)
        if stream is None or stream.chain is None:
            return
        chain, stream.chain, stream.pending = stream.chain, None, 0
        chain.ended_by = ended_by
        stream.tokens += chain.tokens
        self._held -= len(chain.raw)
        chain.raw = b""
        if chain.count >= self._min_run:
            stream.runs.append(chain)
        if chain.count == 1:
            self._waiting.pop(chain.call.call_id, None)
        if self.wants.usage:
            self._look_for_usage()

    def _report(self, agent_id: str, stream: _Stream) -> Stream:
        runs = [self._run(chain) for chain in stream.runs]
        return Stream(agent_id, stream.calls, stream.tracked, stream.repeats, stream.tokens, stream.reminders, runs)

    def _run(self, chain: _Chain) -> Run:
        call = chain.call
        results = "changed" if len(chain.contents) > 1 else "same" if chain.compared > 1 else "unknown"
        never = self._form.unseen(call.tool_name, chain.version, failed=False, refused=False)
        if never:
            chain.unseen = {never: chain.count}
        return Run(
            call.tool_name,
            self._form.hook_name(call.tool_name),
            guard.preview_text(call.arguments, self._settings.arguments_preview_chars),
            chain.count,
            call.at,
            chain.last_at,
            chain.failures,
            chain.count - chain.known + chain.unclear,
            results,
            chain.tokens,
            chain.ended_by,
            chain.reminders,
            sum(chain.unseen.values()),
            "; ".join(chain.unseen),
            bool(_looks_redacted(call.arguments)),
        )


def may_be_same(one: events.Call, other: events.Call, labels: Labels) -> bool:
    """Tell whether the keys of two calls may be equal; where this says no, they are not.

    Python's own comparison is quick, and coarser than that of keys: to it, `1` and `true` are equal too.
    """
    if one.tool_name != other.tool_name:
        return False
    try:
        return bool(
            without_labels(one.tool_name, one.arguments, labels)
            == without_labels(other.tool_name, other.arguments, labels)
        )
    except RecursionError:
        return True


def _key(call: events.Call, labels: Labels) -> str:
    try:
        return call_key(call.tool_name, call.arguments, labels)
    except GuardError:  # nested too deeply to compare: as for the hook
        return ""


def _written(value: Any) -> bytes | str:
    """Write a value so that what is written differs where values do; what is nested too deeply is all the same."""
    try:
        return orjson.dumps(value)
    except TypeError:  # integers beyond 64 bits, lone surrogates, deep nesting
        try:
            return repr(value)
        except RecursionError:
            return ""


def _looks_redacted(arguments: Any) -> int:
    if not isinstance(arguments, dict):
        return 0
    return any(isinstance(text := arguments.get(name), str) and _REDACTED.search(text[:500]) for name in _TELLING)
