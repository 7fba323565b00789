"""The settings and what makes them wrong. Pure: no I/O, no clock, no environment."""

from repeat_guard_cli.errors import SettingsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

DEFAULTS: "dict[str, Any]" = {
    "thresholds": [3, 5, 8],
    "include": [],
    "exclude": [],
    "arguments_preview_chars": 500,
    "state_preview": True,
    "ignore_arguments": ["Bash.description", "PowerShell.description", "run_shell_command.description"],
}
VARIABLES = {
    "thresholds": "REPEAT_GUARD_THRESHOLDS",
    "include": "REPEAT_GUARD_INCLUDE",
    "exclude": "REPEAT_GUARD_EXCLUDE",
}
"""The settings that the environment can set, as comma lists."""


class Settings:
    """The settings in force; never changed once made.

    Attributes:
        thresholds: consecutive counts that draw a reminder, ascending, at least one, each at least 2.
        include: tool-name patterns to track; empty: all.
        exclude: tool-name patterns that are transparent to the chain; wins over `include`.
        arguments_preview_chars: cap on the arguments quoted in the detailed reminder, at least 1.
        state_preview: whether the head of the arguments is kept in the state.
        labels: pairs of a tool-name pattern and an argument that is left out of the comparison.
    """

    __slots__ = ("arguments_preview_chars", "exclude", "include", "labels", "state_preview", "thresholds")

    def __init__(self, values: "Mapping[str, Any]") -> None:
        """Take valid values, as `validated` returns them; the default serves for each that is absent."""
        values = {**DEFAULTS, **values}
        self.thresholds: Sequence[int] = tuple(sorted(values["thresholds"]))
        self.include: Sequence[str] = tuple(values["include"])
        self.exclude: Sequence[str] = tuple(values["exclude"])
        self.arguments_preview_chars: int = values["arguments_preview_chars"]
        self.state_preview: bool = values["state_preview"]
        self.labels: Sequence[tuple[str, str]] = tuple(
            (tool, argument) for tool, _, argument in (item.rpartition(".") for item in values["ignore_arguments"])
        )


def validated(values: "Mapping[str, Any]", where: str) -> "dict[str, Any]":
    """Check the settings of one file.

    Args:
        values: as parsed from TOML.
        where: the file, for the message.

    Returns:
        The same values.

    Raises:
        SettingsError: an unknown key or a wrong value.
    """
    for key, value in values.items():
        if key not in DEFAULTS:
            raise SettingsError(f"{where}: unknown setting {key!r}{_nearest(key)}")
        problem = _CHECKS[key](value)
        if problem:
            raise SettingsError(f"{where}: {key} = {_shown(value)}: {problem}")
    return dict(values)


def from_environment(environment: "Mapping[str, str]") -> "dict[str, Any]":
    """Read the settings that the environment holds.

    Raises:
        SettingsError: a wrong value; the text names the variable.
    """
    return {
        key: from_text(key, environment[variable], variable)
        for key, variable in VARIABLES.items()
        if variable in environment
    }


def from_text(key: str, text: str, where: str) -> "list[Any]":
    """Read a setting that is written as a comma list.

    Args:
        key: one of `VARIABLES`.
        text: the list; nothing but white space is an empty one.
        where: the variable or the option that holds it, for the message.

    Raises:
        SettingsError: a wrong value.
    """
    items: list[Any] = [item.strip() for item in text.split(",")] if text.strip() else []
    if key == "thresholds":
        items = [int(item) if item.isascii() and item.isdigit() and len(item) < 10 else item for item in items]
    problem = _CHECKS[key](items)
    if problem:
        raise SettingsError(f"{where} = {_shown(text)}: {problem}")
    return items


def _wrong_thresholds(value: "Any") -> str:
    if not isinstance(value, list) or any(type(item) is not int for item in value):
        return "expected a list of whole numbers, such as [3, 5, 8]"
    if not value:
        return "expected at least one threshold; to switch the guard off set REPEAT_GUARD_OFF=1"
    if min(value) < 2:
        return "a threshold is at least 2: one call repeats nothing"
    if len(set(value)) < len(value):
        return "a threshold stands twice"
    return ""


def _wrong_patterns(value: "Any") -> str:
    if not isinstance(value, list) or any(not isinstance(item, str) or not item for item in value):
        return 'expected a list of tool-name patterns, such as ["Bash", "mcp__*"]'
    return ""


def _wrong_preview_chars(value: "Any") -> str:
    return "" if type(value) is int and value >= 1 else "expected a whole number from 1"


def _wrong_switch(value: "Any") -> str:
    return "" if isinstance(value, bool) else "expected true or false"


def _wrong_labels(value: "Any") -> str:
    if isinstance(value, list) and all(isinstance(item, str) and all(item.rpartition(".")) for item in value):
        return ""
    return 'expected a list of TOOL.ARGUMENT, such as ["Bash.description"]'


_CHECKS: "dict[str, Callable[[Any], str]]" = {
    "thresholds": _wrong_thresholds,
    "include": _wrong_patterns,
    "exclude": _wrong_patterns,
    "arguments_preview_chars": _wrong_preview_chars,
    "state_preview": _wrong_switch,
    "ignore_arguments": _wrong_labels,
}


def _shown(value: "Any") -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _nearest(key: str) -> str:
    import difflib  # slow to import, and wanted only when a setting is wrong

    near = difflib.get_close_matches(key, DEFAULTS, 1, 0.5) or list(DEFAULTS)
    return f"; did you mean {near[0]!r}?" if len(near) == 1 else f"; known are {', '.join(near)}"
