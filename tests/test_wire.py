"""The JSON that hooks read and write."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repeat_guard_cli import wire
from repeat_guard_cli.errors import GuardError
from tests.support import Guard, tool_payload
from tests.test_fingerprint import VALUES


@given(VALUES)
def test_json_is_read_and_written_as_the_standard_library_does(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1), json.dumps(value, ensure_ascii=False)):
        data = text.encode(errors="surrogatepass")
        try:
            data.decode()
        except UnicodeDecodeError:
            with pytest.raises(GuardError, match="not UTF-8"):
                wire.loads(data)
        else:
            assert wire.loads(b"\xef\xbb\xbf \r\n" + data + b"\n") == value
    assert wire.dumps(value) == json.dumps(value, separators=(",", ":"))


@given(st.binary(max_size=40) | st.text('[]{}":,\\u0123456789.eE-+truefalsn \n', max_size=40).map(str.encode))
def test_whatever_comes_is_read_or_refused(data: bytes) -> None:
    try:
        expected = json.loads(data.decode("utf-8-sig"), parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(GuardError):
            wire.loads(data)
    else:
        assert wire.loads(data) == expected


GOOD = json.dumps(tool_payload("Bash", {"command": "ls"})).encode()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b" \r\n\t", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"{", "not JSON"),
        (b"[1,", "not JSON"),
        (b'{"a":', "not JSON"),
        (b'{"a" 1}', "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": 1,}', "not JSON"),
        (b'"\\ud8', "not JSON"),
        (b'"\\x"', "not JSON"),
        (b'"\n"', "not JSON"),
        (b'{"a": NaN}', "NaN is no JSON value"),
        (b'{"a": -Infinity}', "-Infinity is no JSON value"),
        (b"nul", "not JSON"),
        (b"hello", "not JSON"),
        (GOOD[:-1], "not JSON"),
        (GOOD + GOOD, "more follows"),
        (GOOD + b"\0", "more follows"),
        (b"\xff" + GOOD, "not UTF-8"),
        (GOOD.decode().encode("utf-16"), "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b"null", "the input is null; expected a JSON object"),
        (b"true", "the input is true"),
        (b"3", "the input is a number"),
        (b'"x"', "the input is a string"),
        (b"[{}]", "the input is a list"),
    ],
)
def test_what_is_no_json_object_is_one_clear_line(data: bytes, said: str, guard: Guard) -> None:
    """Through the command: in this process `json` is loaded, which CPython 3.10 needs to tell what is wrong."""
    for command in ("post-tool-use", "user-prompt-submit", "session-end"):
        code, out, err = guard.hook(command, data)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert err.startswith("repeat-guard: ")
        assert said in err
    assert guard.files() == []
