"""When are two tool calls the same call? Pure: no I/O, no clock, no environment."""

from repeat_guard_cli import wire
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.patterns import matches

try:
    from _blake2 import blake2b  # hashlib would also load OpenSSL: a quarter of a bare interpreter's start
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class _Missing:
    """The arguments of a call that was reported without any."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()
HIDDEN = {"command": ""}
"""What the DeepSeek harness' Codex bridge (0.1.0-rc.8, seen) sends for every tool that has no command."""


def digest(text: str, size: int = 16) -> str:
    """Digest any text, lone surrogates included, to `2 * size` hexadecimal digits."""
    return blake2b(text.encode(errors="surrogatepass"), digest_size=size).hexdigest()


def canonical(value: "Any") -> str:
    """Write JSON so that equal values give equal text.

    Keys are sorted at every depth, the order of lists is kept, and numbers are compared as JavaScript does
    (`1` and `1.0`, `0` and `-0.0`), except that integers stay exact at any size.

    Raises:
        GuardError: the value is nested too deeply.
    """
    try:
        return wire.dumps_sorted(_plain_numbers(value))
    except RecursionError:
        raise GuardError("the tool call's arguments are nested too deeply to compare") from None


def _plain_numbers(value: "Any") -> "Any":
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    return value


def without_labels(tool_name: str, arguments: "Any", labels: "Sequence[tuple[str, str]]") -> "Any":
    """Leave out the top-level arguments that only label a call for people.

    Args:
        labels: pairs of a tool-name pattern and an argument's name.
    """
    if not isinstance(arguments, dict):
        return arguments
    ignored = [name for pattern, name in labels if name in arguments and matches(pattern, tool_name)]
    if not ignored:
        return arguments
    return {name: value for name, value in arguments.items() if name not in ignored}


def call_key(tool_name: str, arguments: "Any", labels: "Sequence[tuple[str, str]]") -> str:
    """Digest a call so that two calls are the same exactly when their keys are.

    Args:
        arguments: any JSON value, or `MISSING`.
        labels: see `without_labels`.

    Returns:
        32 hexadecimal digits, or `""` for a call that can be compared with none because its arguments are hidden.

    Raises:
        GuardError: the arguments are nested too deeply.
    """
    if arguments == HIDDEN:
        return ""
    compared = without_labels(tool_name, arguments, labels)
    return digest(canonical([tool_name] if compared is MISSING else [tool_name, compared]))
