"""From what an agent sends to what happened. Pure: no I/O, no clock, no environment.

The shapes are Claude Code's; the other agents' are the same but for event names (Gemini CLI), spelling of field
names (VS Code: camelCase) and the name of the call's id (Qwen Code, Kimi).
"""

from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.fingerprint import MISSING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

POST_TOOL_USE, USER_PROMPT_SUBMIT, SESSION_END = COMMANDS = ("post-tool-use", "user-prompt-submit", "session-end")

BATCH = "PostToolBatch"
EVENTS = {
    POST_TOOL_USE: ("PostToolUse", "PostToolUseFailure", BATCH, "AfterTool"),
    USER_PROMPT_SUBMIT: ("UserPromptSubmit", "BeforeAgent"),
    SESSION_END: ("SessionEnd",),
}
"""The events that each hook command acts on; it ignores all others."""

_CAMEL = {
    name: name.split("_")[0] + "".join(part.title() for part in name.split("_")[1:])
    for name in (
        "session_id",
        "agent_id",
        "hook_event_name",
        "prompt_id",
        "submitted_prompt",
        "tool_name",
        "tool_input",
        "tool_use_id",
        "tool_call_id",
        "tool_calls",
    )
}


class Call:
    """One tool call as reported.

    Attributes:
        tool_name: untrusted text.
        arguments: any JSON value, or `MISSING`.
        call_id: the agent's id of the call, `""` where it sends none.
    """

    __slots__ = ("arguments", "call_id", "tool_name")

    def __init__(self, tool_name: str, arguments: "Any", call_id: str) -> None:
        self.tool_name = tool_name
        self.arguments = arguments
        self.call_id = call_id


class Event:
    """What every event has.

    Attributes:
        name: the agent's name of the event.
        session_id: never empty.
        agent_id: `""` for the main agent.
        prompt_id: the agent's id of the prompt being worked on, `""` where it sends none.
        cwd: the agent's working directory, `""` where it sends none.
        calls: the tool calls, in the model's order; empty but for tool events.
        prompt: the text of a prompt event, `""` otherwise.
        source: who wrote the prompt by the agent's word, `None` where it says nothing.
        submitted: whether Qwen Code marks the prompt as typed by a person.
    """

    __slots__ = ("agent_id", "calls", "cwd", "name", "prompt", "prompt_id", "session_id", "source", "submitted")

    def __init__(self, name: str, session_id: str, agent_id: str = "") -> None:
        self.name = name
        self.session_id = session_id
        self.agent_id = agent_id
        self.prompt_id = ""
        self.cwd = ""
        self.calls: list[Call] = []
        self.prompt = ""
        self.source: str | None = None
        self.submitted = False


def read_event(command: str, payload: "Any") -> Event | None:
    """Make an event of a hook payload.

    Args:
        command: one of `COMMANDS`.
        payload: the JSON value that the agent sent.

    Returns:
        The event, or `None` where there is nothing to do: an event that the command ignores, or no session.

    Raises:
        GuardError: the payload is no object, or a field that is needed has the wrong type.
    """
    if not isinstance(payload, dict):
        raise GuardError(f"the input is {_kind(payload)}; expected a JSON object")
    name = _text(payload, "hook_event_name")
    if name not in EVENTS[command]:
        return None
    session_id = _text(payload, "session_id")
    if not session_id:
        return None
    event = Event(name, session_id, _text(payload, "agent_id"))
    event.prompt_id = _loose_text(payload, "prompt_id")
    event.cwd = _loose_text(payload, "cwd")
    if command == POST_TOOL_USE:
        event.calls = _read_batch(payload) if name == BATCH else [_read_call(payload)]
    elif command == USER_PROMPT_SUBMIT:
        event.prompt = _prompt_text(_field(payload, "prompt"))
        source = _field(payload, "source")
        event.source = None if source in (None, MISSING, "") else str(source)
        event.submitted = _field(payload, "submitted_prompt") not in (None, MISSING)
    return event


def _read_batch(payload: "dict[str, Any]") -> list[Call]:
    entries = _field(payload, "tool_calls")
    if not isinstance(entries, list):
        raise GuardError(f"field tool_calls is {_kind(entries)}; expected a list")
    for entry in entries:
        if not isinstance(entry, dict):
            raise GuardError(f"an entry of tool_calls is {_kind(entry)}; expected an object")
    return [_read_call(entry) for entry in entries]


def _read_call(fields: "dict[str, Any]") -> Call:
    tool_name = _field(fields, "tool_name")
    if not isinstance(tool_name, str):
        raise GuardError(f"field tool_name is {_kind(tool_name)}; expected a string")
    # Qwen Code 0.24.4 gives one call two tool_use_ids, in PostToolUse and PostToolBatch, but one tool_call_id (seen).
    call_id = _loose_text(fields, "tool_call_id") or _loose_text(fields, "tool_use_id")
    return Call(tool_name, _field(fields, "tool_input"), call_id)


def _field(fields: "dict[str, Any]", name: str) -> "Any":
    value = fields.get(name, MISSING)
    if value is MISSING and name in _CAMEL:
        value = fields.get(_CAMEL[name], MISSING)
    return value


def _text(fields: "dict[str, Any]", name: str) -> str:
    """Return a field that decides where a call is counted: absent is `""`, another type is an error."""
    value = _field(fields, name)
    if value is None or value is MISSING:
        return ""
    if not isinstance(value, str):
        raise GuardError(f"field {name} is {_kind(value)}; expected a string")
    return value


def _loose_text(fields: "dict[str, Any]", name: str) -> str:
    """Return a field that only helps: what is no string counts as absent."""
    value = _field(fields, name)
    return value if isinstance(value, str) else ""


def _prompt_text(prompt: "Any") -> str:
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list):  # Kimi Code 2.1.0 sends content parts
        return "".join(part["text"] for part in prompt if isinstance(part, dict) and isinstance(part.get("text"), str))
    return ""


def _kind(value: "Any") -> str:
    if value is MISSING:
        return "missing"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    names = {str: "a string", list: "a list", dict: "an object", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)
