import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repeat_guard_cli import wire
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.fingerprint import MISSING, call_key, canonical
from repeat_guard_cli.patterns import matches

TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))


def javascript_equal(one: Any, other: Any) -> bool:
    """Compare as the design says, written without any of the code under test."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other  # Python compares int and float exactly
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(javascript_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(javascript_equal, one, other))
    return type(one) is type(other) and one == other


@given(VALUES, VALUES)
def test_keys_are_equal_exactly_when_the_arguments_are(one: Any, other: Any) -> None:
    assert (call_key("T", one, ()) == call_key("T", other, ())) == javascript_equal(one, other)


@given(VALUES)
def test_spelling_does_not_matter(value: Any) -> None:
    shuffled = json.loads(json.dumps(value), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    spaced = json.dumps(value, indent=3, sort_keys=True).encode()
    assert call_key("T", value, ()) == call_key("T", shuffled, ()) == call_key("T", wire.loads(spaced), ())


@given(VALUES)
def test_canonical_text_is_json_of_the_same_value(value: Any) -> None:
    text = canonical(value)
    assert text == text.encode().decode()
    assert javascript_equal(json.loads(text), value)


@given(st.dictionaries(st.text(max_size=5), st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)))
def test_the_parser_does_not_matter(value: dict[str, Any]) -> None:
    data = json.dumps(value).encode()
    assert call_key("T", wire.loads(data), ()) == call_key("T", orjson.loads(data), ())


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param('{"n": 36893488147419103232, "m": 36893488147419103233}', id="beyond 64 bits"),
        pytest.param('{"s": "\\ud83d"}', id="a lone surrogate"),
        pytest.param('{"x": 1e400}', id="beyond a double"),
        pytest.param('{"x": -0.0, "y": 1.0, "z": 1e22}', id="integral doubles"),
        pytest.param('{"n": ' + "7" * 5000 + "}", id="5,000 digits"),
    ],
)
def test_the_size_of_the_output_does_not_matter(arguments: str) -> None:
    """Whatever reads a large payload gives the same key."""

    def key(output: str) -> str:
        data = f'{{"tool_input": {arguments}, "tool_response": "{output}"}}'.encode()
        return call_key("T", wire.loads(data)["tool_input"], ())

    assert key("x" * 1_000) == key("x" * 10_000_000)


def test_a_name_can_not_pass_for_arguments() -> None:
    keys = {call_key("a", "b", ()), call_key('a","b', MISSING, ()), call_key("a", MISSING, ()), call_key("ab", "", ())}
    assert len(keys) == 4


def test_arguments_nested_too_deeply_are_an_error() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(GuardError, match="nested too deeply"):
        call_key("T", deep, ())


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("Bash", "Bash", True),
        ("Bash", "bash", False),
        ("Bash", "BashOutput", False),
        ("Bash*", "BashOutput", True),
        ("*Output", "BashOutput", True),
        ("*", "", True),
        ("", "", True),
        ("", "x", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("mcp__*__check_*", "mcp__ci__check_status", True),
        ("mcp__*__check_*", "mcp__check_status", False),
        ("a**b", "ab", True),
        ("*a*b*", "xaybz", True),
        ("*a*b*", "xbyaz", False),
        ("a.c", "abc", False),
        ("[ab]", "a", False),
        ("a?", "ab", False),
        ("a*", "a\nb", True),
    ],
)
def test_patterns(pattern: str, name: str, expected: bool) -> None:
    assert matches(pattern, name) is expected


def test_a_pattern_of_many_stars_is_quick() -> None:
    assert not matches("*a" * 500 + "b", "a" * 20_000)
