"""Edits JSON as text, so that whatever is not ours keeps its bytes: order, spacing, escapes, line ends. Pure."""

import json
import re
from typing import Any, NamedTuple, NoReturn

Path = tuple[str | int, ...]
"""Where a value is: keys of objects and indices of lists, from the top."""

_BLANK = re.compile(r"[ \t\n\r]*")


class Child(NamedTuple):
    """A member of an object or an element of a list: its key or index, and where it stands in the text."""

    name: str | int
    start: int
    value: int
    end: int


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


_decoder = json.JSONDecoder(parse_constant=_refuse)


def load(text: str) -> Any:
    """Read JSON as strictly as the agents do.

    Args:
        text: a document; a byte-order mark may stand before it.

    Raises:
        ValueError: it is not JSON; the text says where.
    """
    try:
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def is_blank(text: str) -> bool:
    """Tell whether a file holds nothing."""
    return not text.strip("\ufeff \t\r\n")


def insert(text: str, path: Path, name: str | None, value: Any) -> str:
    """Add a value at the end of an object (with its `name`) or a list (`None`), in the file's own style."""
    start = _start(text, path)
    children = _children(text, start)
    unit, newline = _style(text)
    tight = _is_tight(text)
    key = "" if name is None else json.dumps(name, ensure_ascii=False) + (":" if tight else ": ")
    if children:
        last = children[-1]
        # What stands between the last child and the bracket or comma before it stands before the new one too.
        gap = text[children[-2].end : last.start].partition(",")[2] if children[1:] else text[start + 1 : last.start]
        if "\n" in gap:
            written = _written(value, unit, newline, gap.rpartition("\n")[2], tight)
        else:
            gap = "" if tight else " "
            written = _written(value, None, newline, "", tight)
        return f"{text[: last.end]},{gap}{key}{written}{text[last.end :]}"
    end = _decoder.raw_decode(text, start)[1]
    if unit is None:
        return f"{text[: start + 1]}{key}{_written(value, None, newline, '', tight)}{text[end - 1 :]}"
    outer = _margin(text, start)
    inner = outer + unit
    body = f"{newline}{inner}{key}{_written(value, unit, newline, inner, tight)}{newline}{outer}"
    return text[: start + 1] + body + text[end - 1 :]


def replace(text: str, path: Path, value: Any) -> str:
    """Put another value in the place of the one at `path`."""
    start = _start(text, path)
    end = _decoder.raw_decode(text, start)[1]
    unit, newline = _style(text)
    if "\n" not in text[start:end]:
        unit = None
    written = _written(value, unit, newline, _margin(text, start), _is_tight(text))
    return text[:start] + written + text[end:]


def remove(text: str, path: Path) -> str:
    """Take out the member or element at `path`; after `insert` this gives the text from before it."""
    start = _start(text, path[:-1])
    children = _children(text, start)
    number = _position(children, path[-1])
    if len(children) == 1:
        end = _decoder.raw_decode(text, start)[1]
        return text[: start + 1] + text[end - 1 :]
    if number:
        return text[: children[number - 1].end] + text[children[number].end :]
    return text[: children[0].start] + text[children[1].start :]


def _start(text: str, path: Path) -> int:
    start = _skip(text, 1 if text.startswith("\ufeff") else 0)
    for name in path:
        children = _children(text, start)
        start = children[_position(children, name)].value
    return start


def _position(children: list[Child], name: str | int) -> int:
    """Return which child has a name; of several with one name the last is the one that counts."""
    return max(number for number, child in enumerate(children) if child.name == name)


def _children(text: str, start: int) -> list[Child]:
    found: list[Child] = []
    at = _skip(text, start + 1)
    while text[at] not in "}]":
        name: str | int = len(found)
        value = at
        if text[start] == "{":
            name, after = _decoder.raw_decode(text, at)
            value = _skip(text, _skip(text, after) + 1)
        end = _decoder.raw_decode(text, value)[1]
        found.append(Child(name, at, value, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _style(text: str) -> tuple[str | None, str]:
    """Return the unit of indentation, `None` for a document on one line, and the line end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    indented = re.search(r"[{\[]\r?\n([ \t]+)\S", text)
    if indented:
        return indented[1], newline
    return (None if re.search(r"[^\s{}]", text.strip()) and "\n" not in text.strip() else "  "), newline


def _margin(text: str, at: int) -> str:
    """Return the white space before the first character of a line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_tight(text: str) -> bool:
    """Tell whether nothing stands between a colon and its value, as in minified files."""
    return '":' in text and '": ' not in text


def _written(value: Any, unit: str | None, newline: str, margin: str, tight: bool) -> str:
    """Write a value: on one line (`unit` is `None`), or on several of which all but the first begin with `margin`."""
    if unit is None:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":") if tight else None)
    return f"{newline}{margin}".join(json.dumps(value, ensure_ascii=False, indent=unit).split("\n"))
