"""Whatever comes in: exit 0 or 1, at most one JSON object out, no file outside the state directory."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from repeat_guard_cli import hook
from repeat_guard_cli.errors import GuardError
from tests.conftest import ROOT
from tests.faults.support import COMMANDS, EXAMPLES, FUZZED, LONG, THROUGH_THE_PROCESS, Figure, judge, payload_of
from tests.support import Guard, tool_payload

TEXT = st.text(st.characters(exclude_categories=()), max_size=30) | st.sampled_from(
    [
        "",
        "..",
        "../../x",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "C:\\x",
        "con",
        "\0",
        "\n",
        ".",
        "-rf",
        "~",
        "a" * 300,
        "\ud800",
    ]
)
NUMBERS = (
    st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from([10**400, -(10**400), 2**63, 1e308, -0.0, 5e-324, float("inf")])
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))
FIELDS = (
    *("session_id", "agent_id", "hook_event_name", "tool_name", "tool_input", "tool_response", "tool_use_id"),
    *("tool_call_id", "tool_calls", "prompt", "prompt_id", "source", "submitted_prompt", "cwd", "transcript_path"),
    *("sessionId", "agentId", "hookEventName", "toolName", "toolInput", "toolUseId", "toolCalls", "promptId"),
)
EVENTS = (
    *("PostToolUse", "PostToolUseFailure", "PostToolBatch", "AfterTool", "UserPromptSubmit", "BeforeAgent"),
    *("SessionEnd", "PreToolUse", "SessionStart"),
)
CALLS = st.lists(st.fixed_dictionaries({"tool_name": TEXT, "tool_input": ANYTHING, "tool_use_id": TEXT}), max_size=9)
SANE = {
    "hook_event_name": st.sampled_from(EVENTS),
    "session_id": TEXT,
    "tool_name": TEXT,
    "cwd": TEXT,
    "tool_calls": CALLS | st.lists(ANYTHING, max_size=2),
}


def dumps(value: Any) -> bytes:
    return json.dumps(value).replace("Infinity", "1e999").encode()


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """Draw a payload that a command acts on, with some fields of any value, some missing, some unknown."""
    payload = payload_of(draw(st.sampled_from(COMMANDS)))
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=4)):
        payload[name] = draw(SANE[name] if name in SANE and draw(st.booleans()) else ANYTHING)
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=2)):
        payload.pop(name, None)
    payload.update(draw(st.dictionaries(TEXT, ANYTHING, max_size=2)))
    return dumps(payload)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """Draw a payload with some bytes changed, cut out or put in."""
    data = bytearray(draw(payloads()))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 3))] = draw(
            st.binary(max_size=4) | st.sampled_from([b'"', b"\\u", b"[" * 99])
        )
    return bytes(data)


INPUTS = payloads() | spoiled() | st.binary(max_size=200) | st.builds(dumps, ANYTHING)
whatever = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

KNOWN = re.compile(
    r"sessions/(_[0-9a-f]{32}|[a-z0-9][a-z0-9-]{0,79})\.(json|lock)|repeat-guard\.log(\.1)?|swept|settings/.*\.json"
)
watched: dict[str, Any] = {"inside": "", "touched": []}


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note every file that is written to, made or removed while `inside` is set, and lies elsewhere."""
    if not watched["inside"]:
        return
    paths: tuple[Any, ...] = ()
    if event == "open":
        path, _, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        paths = (path,) if writes else ()
    elif event in ("os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.utime"):
        paths = arguments[:1]
    elif event in ("os.rename", "os.link", "os.symlink"):
        paths = arguments[:2]
    for path in paths:
        if not isinstance(path, int) and not os.path.abspath(os.fsdecode(path)).startswith(watched["inside"]):
            watched["touched"].append((event, path))


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state directory; in the end it holds files of the known names alone, none of them large."""
    sys.addaudithook(watch)
    directory = tmp_path_factory.mktemp("watched") / "state"
    directory.mkdir()
    yield directory
    for path in directory.rglob("*"):
        if not path.is_dir():
            assert KNOWN.fullmatch(str(path.relative_to(directory))), path
            assert path.stat().st_size <= 128 * 1024


def respond(command: str, data: bytes, state: Path, environment: dict[str, str]) -> list[bytes]:
    """Do what a hook does, as far as it can be done in this process; return what it says."""
    said: list[bytes] = []
    watched.update(inside=str(state), touched=[])
    try:
        hook.respond(command, data, environment, str(state), 1_700_000_000.0, said.append)
    except GuardError:
        assert not said
    finally:
        watched["inside"] = ""
    assert not watched["touched"]
    for reply in said:
        document = json.loads(reply)
        assert reply.endswith(b"}\n")
        assert list(document) == ["hookSpecificOutput"]
        assert list(document["hookSpecificOutput"]) == ["hookEventName", "additionalContext"]
        assert document["hookSpecificOutput"]["hookEventName"] in EVENTS
        assert len(reply) < 50_000
    assert len(said) <= 1
    return said


CALL = tool_payload("Bash", {"command": "ls"})
HOSTILE = [
    b'{"a":' * 5_000,
    dumps({**CALL, "tool_input": {"n": float("inf")}}),
    dumps({**CALL, "tool_name": "*" * 10_000}),
    dumps({**CALL, "cwd": "/" + "x" * 10_000}),
    dumps({**CALL, "cwd": "/\0"}),
    dumps({**CALL, "cwd": "/\ud800"}),
    dumps(CALL).replace(b'{"command": "ls"}', b"[" * 900 + b"]" * 900),
    dumps(CALL).replace(b'{"command": "ls"}', b"1" * 50_000),
    dumps(CALL)[:-1] + b',"session_id":"' + b"x" * 9_000 + b'"}',
]


@whatever
@given(command=st.sampled_from(COMMANDS), data=INPUTS, off=st.sampled_from(["", "2", "2,3,4,5,6,7,8,9"]))
@example(command="post-tool-use", data=HOSTILE[0], off="")
@example(command="post-tool-use", data=HOSTILE[1], off="2")
@example(command="post-tool-use", data=HOSTILE[6], off="2")
def test_any_input(command: str, data: bytes, off: str, state: Path) -> None:
    environment = {"HOME": str(state.parent), **({"REPEAT_GUARD_THRESHOLDS": off} if off else {})}
    for _ in range(2):
        respond(command, data, state, environment)


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_input_through_the_process(data: bytes, guard: Guard) -> None:
    for command in COMMANDS:
        for _ in range(3):
            judge(guard.hook(command, data))
    assert all(name.startswith("state/") for name in guard.files())


@settings(whatever, max_examples=THROUGH_THE_PROCESS)
@given(command=st.sampled_from(COMMANDS), data=INPUTS)
def test_any_input_through_the_process(command: str, data: bytes, guard: Guard) -> None:
    judge(guard.hook(command, data))
    assert os.listdir(guard.home) in ([], ["state"])


@pytest.mark.skipif(not LONG, reason="takes a minute: for the long form")
def test_a_fuzzer_that_follows_the_coverage(figure: Figure) -> None:
    pytest.importorskip("atheris", reason="pip install atheris")
    command = [sys.executable, "-m", "tests.faults.fuzz", str(FUZZED)]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, timeout=3_600, check=False)
    said = done.stderr.decode(errors="replace")
    assert done.returncode == 0, said[-3_000:]
    assert f"Done {FUZZED}" in said
    figure(f"{FUZZED:,} inputs of a fuzzer that follows the coverage")


@pytest.mark.parametrize("depth", [50, 300, 900, 990, 1_000, 1_100, 3_000, 9_900, 10_100, 50_000, 1_000_000])
@pytest.mark.parametrize("field", ["tool_input", "tool_response", "unknown"])
def test_any_depth(field: str, depth: int, guard: Guard) -> None:
    """Too deep is an error of one line, wherever the interpreter's limit lies; never a crash."""
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        data = dumps({**CALL, field: "HERE"}).replace(b'"HERE"', opening * depth + b"0" + closing * depth)
        result = judge(guard.hook("post-tool-use", data))
        assert result.code == 0 or "nested too deeply" in result.err
        assert depth > 200 or result.code == 0
