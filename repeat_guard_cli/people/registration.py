"""Our hooks in an agent's settings: found, put in, taken out. Pure: from text to text."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from repeat_guard_cli import payload
from repeat_guard_cli.agents import Registration
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.people import executable, json_text

_COMMANDS = "|".join(payload.COMMANDS)
_OURS = re.compile(
    rf"""(?:(?:^|[\s"'/\\;&|(])repeat-guard(?:\.exe)?|-m\s+repeat_guard_cli)["']?\s+["']?({_COMMANDS})\b"""
)
_PLAIN = re.compile(
    rf"""(?:"[^"]*"|'[^']*'(?:"'"'[^']*')*|[^\s"'|;&<>$`]+)(?:\s+(?:-I\s+)?-m\s+repeat_guard_cli)?\s+(?:{_COMMANDS})"""
    r"(?:\s+2>\s*/dev/null)?(?:\s*\|\|\s*(?:true|:))?\s*"
)


class Entry(NamedTuple):
    """One of our hooks as it stands.

    Attributes:
        event: the event that it is registered for.
        group: its group's index in the event's list.
        handler: its index in the group.
        fields: what the agent reads: `type`, `command`, `timeout` ...
        command: one of `payload.COMMANDS`.
    """

    event: str
    group: int
    handler: int
    fields: dict[str, Any]
    command: str

    @property
    def path(self) -> json_text.Path:
        """Where it stands in the document."""
        return ("hooks", self.event, self.group, "hooks", self.handler)


def entries(document: Any) -> list[Entry]:
    """Find our hooks, in every form that this program ever registered or a person may have written by hand."""
    hooks = document.get("hooks") if isinstance(document, dict) else None
    found = []
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for index, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for number, fields in enumerate(handlers if isinstance(handlers, list) else ()):
                command = _command(fields)
                if command:
                    found.append(Entry(event, index, number, fields, command))
    return found


def command_line(fields: dict[str, Any]) -> str:
    """Return what the agent runs; arguments of the form without a shell are joined by spaces."""
    return " ".join([str(fields.get("command", "")), *(str(item) for item in fields.get("args") or ())])


def _command(fields: Any) -> str:
    if not isinstance(fields, dict) or not isinstance(fields.get("command"), str):
        return ""
    if not isinstance(fields.get("args") or [], list):
        return ""
    ours = _OURS.search(command_line(fields))
    return ours[1] if ours else ""


def is_custom(entry: Entry) -> bool:
    """Tell whether a person made something of their own of the command (variables, a wrapper): that is left alone."""
    line = command_line(entry.fields)
    return not _PLAIN.fullmatch(line) and executable.ON_PATH not in line


def put_in(text: str, registrations: Sequence[Registration], command: Callable[[str], str]) -> str:
    """Return a settings file with our hooks in it, and no others of ours.

    Args:
        text: the file as it is; blank for a new one.
        registrations: what to register.
        command: from a hook command to the command line.

    Raises:
        GuardError: the file doesn't have the agents' shape.
        ValueError: it is not JSON.
    """
    text = "{}\n" if json_text.is_blank(text) else text
    _check_shape(json_text.load(text), registrations)
    wanted = {registration.event: registration for registration in registrations}
    kept: set[str] = set()
    extra = []
    for entry in entries(json_text.load(text)):
        registration = wanted.get(entry.event)
        if registration is None or registration.command != entry.command or entry.event in kept:
            extra.append(entry)
            continue
        kept.add(entry.event)
        fields = {name: value for name, value in entry.fields.items() if name != "args"}
        fields.update(handler(registration, command))
        if not is_custom(entry) and fields != entry.fields:
            text = json_text.replace(text, entry.path, fields)
    for entry in reversed(extra):
        text = _without(text, entry)
    for registration in registrations:
        if registration.event not in kept:
            text = _with(text, registration, command)
    return text


def take_out(text: str, before: Any = None) -> str:
    """Return a settings file without our hooks, and without what they leave empty unless it was so `before`.

    Args:
        text: the file as it is.
        before: what the file held before we came, if known.

    Raises:
        ValueError: it is not JSON.
    """
    for entry in reversed(entries(json_text.load(text))):
        text = _without(text, entry)
    hooks = json_text.load(text).get("hooks")
    earlier = before.get("hooks") if isinstance(before, dict) else None
    if hooks == {} and not isinstance(earlier, dict):
        text = json_text.remove(text, ("hooks",))
    elif isinstance(hooks, dict) and isinstance(earlier, dict):
        for event, groups in earlier.items():
            if groups == [] and event not in hooks:
                text = json_text.insert(text, ("hooks",), event, [])
    return text


def handler(registration: Registration, command: Callable[[str], str]) -> dict[str, Any]:
    """Return a hook in the agents' form."""
    return {"type": "command", "command": command(registration.command), "timeout": registration.timeout}


def block(registrations: Sequence[Registration], command: Callable[[str], str]) -> dict[str, Any]:
    """Return a whole settings file with nothing but our hooks, for people to paste."""
    return {"hooks": {registration.event: [_group(registration, command)] for registration in registrations}}


def new_file(text: str) -> str:
    """Return what a file would be that `install` made and that holds the same as `text`."""
    return json_text.insert("{}\n", (), "hooks", json_text.load(text)["hooks"])


def _group(registration: Registration, command: Callable[[str], str]) -> dict[str, Any]:
    matcher = {} if registration.matcher is None else {"matcher": registration.matcher}
    return {**matcher, "hooks": [handler(registration, command)]}


def _with(text: str, registration: Registration, command: Callable[[str], str]) -> str:
    group = _group(registration, command)
    document = json_text.load(text)
    if "hooks" not in document:
        return json_text.insert(text, (), "hooks", {registration.event: [group]})
    if registration.event not in document["hooks"]:
        return json_text.insert(text, ("hooks",), registration.event, [group])
    return json_text.insert(text, ("hooks", registration.event), None, group)


def _without(text: str, entry: Entry) -> str:
    groups = json_text.load(text)["hooks"][entry.event]
    if len(groups[entry.group]["hooks"]) > 1:
        return json_text.remove(text, entry.path)
    return json_text.remove(text, entry.path[: 3 if len(groups) > 1 else 2])


def _check_shape(document: Any, registrations: Sequence[Registration]) -> None:
    if not isinstance(document, dict):
        raise GuardError("it is no JSON object")
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict):
        raise GuardError("its `hooks` is no object")
    for registration in registrations:
        if not isinstance(hooks.get(registration.event, []), list):
            raise GuardError(f"its `hooks.{registration.event}` is no list")
