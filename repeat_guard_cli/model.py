"""What is remembered of a session, and its JSON form. Pure: no I/O, no clock, no environment.

The layout has a version number, which stands first. Fields that this version does not know are kept, at every level,
so that a newer version of the same layout loses nothing when an older one writes.
"""

from repeat_guard_cli.fingerprint import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LAYOUT = 1
MAX_AGENTS = 32
MAX_RECENT = 256
MAX_BYTES = 128 * 1024
MAX_ID = 1_000
MAX_TOOL_NAME = 100
MAX_COUNT = 2**53
MAX_SECONDS = 1e11
"""The year 5138: a time beyond it was not written by a clock."""


def bounded_id(text: str) -> str:
    """Return an agent's id as it is stored: long ones as their head and a digest of the whole."""
    return text if len(text) <= MAX_ID else f"{text[:64]}...{digest(text)}"


class Chain:
    """Consecutive identical tool calls of one agent.

    Attributes:
        tool_name: as reported, cut at `MAX_TOOL_NAME` characters.
        key: what `fingerprint.call_key` gave; `""` for a call that nothing continues.
        count: how many calls, from 1.
        preview: the head of the canonical arguments, or `None` where none is kept.
        updated_at: when the last call came, seconds since the epoch.
    """

    __slots__ = ("count", "key", "preview", "tool_name", "unknown", "updated_at")

    def __init__(self, tool_name: str, key: str, count: int, preview: str | None, updated_at: float) -> None:
        self.tool_name = tool_name
        self.key = key
        self.count = count
        self.preview = preview
        self.updated_at = updated_at
        self.unknown: dict[str, Any] = {}


class Agent:
    """One agent of a session.

    Attributes:
        chain: `None` before the first call and after a reset.
        recent: what was already reported: a short digest of a call's id and key, to the events that reported it and
            when, `[event, milliseconds since the epoch, event, ...]`; oldest first.
        prompt_id: that of the calls counted last, `""` where the agent sends none.
    """

    __slots__ = ("chain", "prompt_id", "recent", "unknown")

    def __init__(self) -> None:
        self.chain: Chain | None = None
        self.recent: dict[str, list[Any]] = {}
        self.prompt_id = ""
        self.unknown: dict[str, Any] = {}


class Session:
    """One session: its agents by id (`""`: the main agent), least recently used first."""

    __slots__ = ("agents", "session_id", "unknown", "updated_at")

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.updated_at = 0.0
        self.agents: dict[str, Agent] = {}
        self.unknown: dict[str, Any] = {}

    def use(self, agent_id: str) -> Agent:
        """Return an agent, new if need be, as the most recently used one; the least recently used makes room."""
        agent = self.agents.pop(bounded_id(agent_id), None) or Agent()
        while len(self.agents) >= MAX_AGENTS:
            del self.agents[next(iter(self.agents))]
        self.agents[bounded_id(agent_id)] = agent
        return agent


_SESSION_FIELDS = ("version", "session_id", "updated_at", "agents")
_AGENT_FIELDS = ("chain", "recent", "prompt_id")
_CHAIN_FIELDS = ("tool_name", "key", "count", "preview", "updated_at")


def from_json(value: "Any") -> Session:
    """Read a session.

    Raises:
        ValueError: the value is not a session of this layout.
    """
    if not isinstance(value, dict) or value.get("version") != LAYOUT:
        raise ValueError("it is no session state of this layout")
    session = Session(_typed(value, "session_id", str))
    session.updated_at = _time(value)
    session.unknown = _others(value, _SESSION_FIELDS)
    for agent_id, fields in _typed(value, "agents", dict).items():
        session.agents[agent_id] = _agent_from_json(fields)
    return session


def _agent_from_json(fields: "Any") -> Agent:
    if not isinstance(fields, dict):
        raise ValueError("an agent is no object")
    agent = Agent()
    agent.recent = _typed(fields, "recent", dict)
    for reports in agent.recent.values():
        if not isinstance(reports, list) or [type(value) for value in reports] != [str, int] * (len(reports) // 2):
            raise ValueError("recent reports are not pairs of an event and a time")
    agent.prompt_id = _typed(fields, "prompt_id", str)
    agent.unknown = _others(fields, _AGENT_FIELDS)
    chain = fields.get("chain")
    if chain is not None:
        agent.chain = _chain_from_json(chain)
    return agent


def _chain_from_json(fields: "Any") -> Chain:
    if not isinstance(fields, dict):
        raise ValueError("a chain is no object")
    preview = fields.get("preview")
    chain = Chain(
        _typed(fields, "tool_name", str),
        _typed(fields, "key", str),
        _typed(fields, "count", int),
        preview if preview is None else _typed(fields, "preview", str),
        _time(fields),
    )
    if not 0 < chain.count <= MAX_COUNT:
        raise ValueError("count is out of range")
    chain.unknown = _others(fields, _CHAIN_FIELDS)
    return chain


def _typed(fields: "dict[str, Any]", name: str, kind: "Any") -> "Any":
    value = fields.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{name} has the wrong type")
    return value


def _time(fields: "dict[str, Any]") -> float:
    value = _typed(fields, "updated_at", (int, float))
    if not 0 <= value <= MAX_SECONDS:
        raise ValueError("updated_at is out of range")
    return float(value)


def _others(fields: "dict[str, Any]", known: "tuple[str, ...]") -> "dict[str, Any]":
    return {name: value for name, value in fields.items() if name not in known}


def to_json(session: Session) -> "dict[str, Any]":
    """Write a session in the form that `from_json` reads."""
    return {
        "version": LAYOUT,
        "session_id": session.session_id,
        "updated_at": session.updated_at,
        "agents": {agent_id: _agent_to_json(agent) for agent_id, agent in session.agents.items()},
        **session.unknown,
    }


def _agent_to_json(agent: Agent) -> "dict[str, Any]":
    chain = agent.chain
    return {
        "chain": chain
        and {
            "tool_name": chain.tool_name,
            "key": chain.key,
            "count": chain.count,
            "preview": chain.preview,
            "updated_at": chain.updated_at,
            **chain.unknown,
        },
        "recent": agent.recent,
        "prompt_id": agent.prompt_id,
        **agent.unknown,
    }


def shrink(session: Session) -> bool:
    """Forget the part of a session that is missed least, for a file that came out over `MAX_BYTES`.

    Returns:
        Whether there was anything to forget.
    """
    for agent in session.agents.values():
        if len(agent.recent) > 16:
            for name in list(agent.recent)[: len(agent.recent) // 2]:
                del agent.recent[name]
            return True
    if len(session.agents) > 1:
        del session.agents[next(iter(session.agents))]
        return True
    if forget_unknown(session):
        return True
    left = bool(session.agents)  # a file that no version of this layout wrote
    session.agents.clear()
    return left


def forget_unknown(session: Session) -> bool:
    """Forget the fields that this version does not know.

    Returns:
        Whether there were any.
    """
    found = bool(session.unknown)
    session.unknown = {}
    for agent in session.agents.values():
        found = found or bool(agent.unknown or (agent.chain and agent.chain.unknown))
        agent.unknown = {}
        if agent.chain:
            agent.chain.unknown = {}
    return found
