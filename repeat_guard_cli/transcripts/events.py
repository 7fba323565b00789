"""What a transcript tells, in the order in which it stands there. Pure: no I/O, no clock, no environment."""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import orjson

from repeat_guard_cli import wire
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.payload import Event

MAIN = ""
SMALL_LINE = 256
"""Bytes up to which a line is always parsed, so that one that is broken is found; a longer one that is cut off too."""
HEAD = 1_000
"""Bytes at the start of a line that tell what most lines are: to search whole lines is what reading costs then."""
_EXACT = frozenset({str, int, bool, type(None)})
"""The types of parsed values that are what the transcript says."""


class Session(NamedTuple):
    """Whose transcript it is; comes again when something of it changes.

    Attributes:
        session_id: as the agent names it.
        version: the agent's, as it stands there; `""` where it says none.
        agent_id: of the subagent that the whole file belongs to, `MAIN` otherwise.
    """

    session_id: str
    version: str
    agent_id: str = MAIN


class Call(NamedTuple):
    """A tool call.

    Attributes:
        agent_id: which agent of the session made it.
        call_id: the agent's id of it, `""` where it has none.
        tool_name: untrusted text.
        arguments: any JSON value, or `fingerprint.MISSING`.
        at: ISO 8601, `""` where the transcript tells no time.
    """

    agent_id: str
    call_id: str
    tool_name: str
    arguments: Any
    at: str


class Result(NamedTuple):
    """A line that holds the result of a call, not parsed yet: few results are ever looked at."""

    call_id: str
    line: bytes


class Outcome(NamedTuple):
    """What a call gave.

    Attributes:
        failed: `None` where the transcript doesn't tell.
        refused: whether the call never ran: denied, invalid, or of an unknown tool.
        content: what to compare with other results; without times and the like, which differ for equal results.
    """

    call_id: str
    failed: bool | None
    refused: bool
    content: Any


class Prompt(NamedTuple):
    """A prompt to the main agent, in the form in which the hook would have seen it."""

    event: Event
    at: str


class Usage(NamedTuple):
    """Tokens that a message of the model cost, input and output, cached ones included.

    Attributes:
        message: equal for reports of one message; `None` where each report is one of its own.
        follows: whether it comes after the message's calls (Codex), and not before them (Claude Code).
    """

    agent_id: str
    message: Hashable | None
    tokens: int
    follows: bool


class Branch(NamedTuple):
    """Another subagent begins in a stream that several share."""

    agent_id: str


class Broken(NamedTuple):
    """A line that is no JSON."""


class Wants:
    """What whoever takes the events needs at the moment.

    Attributes:
        usage: whether counts of tokens matter; lines that hold nothing else are left out otherwise.
    """

    __slots__ = ("usage",)

    def __init__(self) -> None:
        self.usage = False


Happening = Session | Call | Result | Prompt | Usage | Branch | Broken


def parse(line: bytes) -> Any:
    """Read a line of JSON; `None` where it is broken, or no object."""
    try:
        value = orjson.loads(line)
    except ValueError:
        try:  # lone surrogates, numbers beyond doubles: not for orjson
            value = wire.loads(line)
        except GuardError:
            return None
    return value if isinstance(value, dict) else None


def is_cut(line: bytes) -> bool:
    """Tell whether a line is cut off, without parsing it."""
    if line[:1] == b"{" and line[-2:] == b"}\n":
        return False
    return not (line.startswith((b"{", b" ", b"\t", wire.BOM)) and line[-8:].rstrip().endswith(b"}"))


def holds_inexact(value: Any) -> bool:
    """Tell whether a parsed value holds a number that orjson may have read inexactly: an integer beyond 64 bits."""
    rest: list[Iterable[Any]] = [[value]]
    for items in rest:
        if _EXACT.issuperset(map(type, items)):  # as almost always, and quicker than to look at each
            continue
        for item in items:
            if isinstance(item, dict):
                rest.append(item.values())
            elif isinstance(item, list):
                rest.append(item)
            elif isinstance(item, float) and abs(item) >= 2**53:
                return True
    return False


def text_of(content: Any) -> str:
    """Return the text of a message or result: a string, or a list of parts with text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return ""


def string(fields: dict[str, Any], name: str) -> str:
    """Return a field that is a string, `""` where it isn't."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def number(fields: dict[str, Any], name: str) -> int:
    """Return a field that is a whole number from 0, 0 where it isn't."""
    value = fields.get(name)
    return value if type(value) is int and value > 0 else 0
