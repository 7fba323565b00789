"""JSON for the hook path: the standard library's own C scanner and encoder, without the price of `import json`.

`json` imports `re`, which alone costs more than half of a bare interpreter's start. The accelerator module `_json`
behind it has had the same interface since Python 3.1; where it is missing or differs, `json` itself serves.
"""

import sys

from repeat_guard_cli.errors import GuardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BOM = b"\xef\xbb\xbf"
WHITESPACE = " \t\n\r"
MAX_INT_DIGITS = 20_000
"""Longer integers are read as doubles: parsing one takes time that grows with the square of its length."""


class _Exact:
    """How numbers are read: as Python's own int and float."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int: "Callable[[str], Any]" = int

    @staticmethod
    def parse_constant(name: str) -> None:
        """Refuse what `json` would let through.

        Raises:
            GuardError: always; `NaN` and `Infinity` are not JSON.
        """
        raise GuardError(f"the input is not JSON: {name} is no JSON value")


class _LongIntegers(_Exact):
    """How numbers are read once the interpreter has refused an integer of more than 4,300 digits."""

    @staticmethod
    def parse_int(text: str) -> "int | float":
        return int(text) if len(text) <= MAX_INT_DIGITS else float(text)


try:
    from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner

    _scan: "Callable[[str, int], tuple[Any, int]]" = make_scanner(_Exact)  # type: ignore[arg-type]
    _scan_long: "Callable[[str, int], tuple[Any, int]]" = make_scanner(_LongIntegers)  # type: ignore[arg-type]

    def _not_json(value: object) -> None:
        raise TypeError(f"{type(value).__name__} is no JSON value")

    _compact: "Callable[[Any, int], tuple[str, ...]]" = make_encoder(
        None, _not_json, encode_basestring_ascii, None, ":", ",", False, False, False
    )
    _sorted: "Callable[[Any, int], tuple[str, ...]]" = make_encoder(
        None, _not_json, encode_basestring, None, ":", ",", True, False, True
    )
except (ImportError, TypeError):  # another implementation of Python, or a future one
    import json

    _scan = json.JSONDecoder(parse_constant=_Exact.parse_constant).raw_decode
    _scan_long = json.JSONDecoder(parse_int=_LongIntegers.parse_int, parse_constant=_Exact.parse_constant).raw_decode
    _compact_encoder = json.JSONEncoder(separators=(",", ":"))
    _sorted_encoder = json.JSONEncoder(separators=(",", ":"), sort_keys=True, ensure_ascii=False)

    def _compact(value: "Any", _level: int) -> "tuple[str, ...]":
        return (_compact_encoder.encode(value),)

    def _sorted(value: "Any", _level: int) -> "tuple[str, ...]":
        return (_sorted_encoder.encode(value),)


def loads(data: bytes) -> "Any":
    """Read one JSON document.

    Args:
        data: UTF-8, with or without a byte-order mark, white space around it allowed.

    Returns:
        The value; integers exact up to `MAX_INT_DIGITS` digits, `1e400` as infinity, lone surrogates kept.

    Raises:
        GuardError: `data` is empty, not UTF-8, not JSON or nested too deeply; the text says which.
    """
    try:
        text = data[3:].decode() if data.startswith(BOM) else data.decode()
    except UnicodeDecodeError as error:
        raise GuardError(f"the input is not UTF-8: byte {error.start} is wrong") from None
    start, size = 0, len(text)
    while start < size and text[start] in WHITESPACE:
        start += 1
    if start == size:
        raise GuardError("the input is empty; expected one JSON object on standard input")
    try:
        try:
            value, end = _scan(text, start)
        except GuardError:
            raise
        except ValueError as error:
            if "digits" not in str(error):
                raise
            sys.set_int_max_str_digits(0)
            value, end = _scan_long(text, start)
        except SystemError:
            import json  # noqa: F401 - CPython 3.10 looks there for its error, and fails if nobody has imported it

            value, end = _scan(text, start)
    except RecursionError:
        raise GuardError("the input is nested too deeply") from None
    except StopIteration as stop:
        raise GuardError(f"the input is not JSON: no value at character {stop.value}") from None
    except ValueError as error:
        where, what = getattr(error, "pos", "?"), getattr(error, "msg", "malformed")
        raise GuardError(f"the input is not JSON: {what} at character {where}") from None
    if text[end:].strip(WHITESPACE):
        raise GuardError(f"the input is not one JSON document: more follows at character {end}")
    return value


def dumps(value: "Any") -> str:
    """Write a value as compact JSON in ASCII, keys in their own order.

    Raises:
        ValueError: a number is infinite or not a number.
    """
    return "".join(_compact(value, 0))


def dumps_sorted(value: "Any") -> str:
    """Write a value as compact JSON, keys sorted at every depth, text as it is, lone surrogates escaped.

    Raises:
        RecursionError: the value is nested too deeply.
    """
    text = "".join(_sorted(value, 0))
    try:
        text.encode()
    except UnicodeEncodeError:
        # "backslashreplace" writes a surrogate exactly as JSON escapes it.
        return text.encode(errors="backslashreplace").decode()
    return text
