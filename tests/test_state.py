"""What is remembered of a session, and how much of it."""

import json
import os
import stat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repeat_guard_cli import model, store
from repeat_guard_cli.fingerprint import digest
from tests.support import SESSION, Guard, tool_payload

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
EXTRA = st.dictionaries(st.sampled_from(["later", "x-note"]), st.integers() | ANY_TEXT, max_size=2)
REPORTS = st.lists(st.tuples(ANY_TEXT, st.integers(0, 2**53)), max_size=3).map(
    lambda pairs: [v for p in pairs for v in p]
)
CHAINS = st.builds(
    lambda extra, **known: {**known, **extra},
    EXTRA,
    tool_name=ANY_TEXT,
    key=ANY_TEXT,
    count=st.integers(1, 10**6),
    preview=st.none() | ANY_TEXT,
    updated_at=st.floats(0, 1e10),
)
AGENTS = st.builds(
    lambda extra, **known: {**known, **extra},
    EXTRA,
    chain=st.none() | CHAINS,
    recent=st.dictionaries(ANY_TEXT, REPORTS, max_size=3),
    prompt_id=ANY_TEXT,
)
SESSIONS = st.builds(
    lambda extra, **known: {"version": model.LAYOUT, **known, **extra},
    EXTRA,
    session_id=ANY_TEXT,
    updated_at=st.floats(0, 1e10),
    agents=st.dictionaries(ANY_TEXT, AGENTS, max_size=4),
)


@given(SESSIONS)
def test_a_session_is_read_and_written_without_loss(value: dict[str, Any]) -> None:
    """Fields that this version does not know are kept at every level."""
    written = model.to_json(model.from_json(value))
    assert written == value
    assert next(iter(written)) == "version"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | ANY_TEXT, lambda v: st.lists(v) | st.dictionaries(ANY_TEXT, v)
    )
)
def test_what_is_no_session_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"layout|type|object"):
        model.from_json(value)


@given(SESSIONS, st.data())
def test_a_field_of_another_type_is_refused(value: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["session_id", "updated_at", "agents"]))
    value[name] = data.draw(st.sampled_from([None, True, ["x"]]))
    with pytest.raises(ValueError, match=name):
        model.from_json(value)


@pytest.mark.parametrize(
    ("session_id", "plain"),
    [
        pytest.param("5e551011-0000-4000-8000-000000000001", True, id="a UUID names its file"),
        pytest.param("example", True, id="a short name"),
        pytest.param("a" * 80, True, id="80 characters"),
        pytest.param("a" * 81, False, id="more are too many for some file systems, with a suffix"),
        pytest.param("a" * 500, False, id="500 letters"),
        pytest.param("Example", False, id="file systems fold case"),
        pytest.param("-rf", False, id="no option"),
        pytest.param("../../x", False, id="no path"),
        pytest.param("a/b", False, id="no folder"),
        pytest.param("a.b", False, id="no suffix"),
        pytest.param("con", False, id="a Windows device"),
        pytest.param("com1", False, id="another"),
        pytest.param("é", False, id="normalised by some file systems"),
        pytest.param("\ud83d", False, id="a lone surrogate"),
        pytest.param("a\n", False, id="a control character"),
        pytest.param("a\0b", False, id="the end of a C string"),
    ],
)
def test_names_of_files(session_id: str, plain: bool, guard: Guard) -> None:
    name = store.file_name(session_id)
    assert name == (session_id if plain else f"_{digest(session_id)}")
    guard.call(session_id=session_id)
    assert guard.files() == [f"state/sessions/{name}.json", f"state/sessions/{name}.lock"]
    assert [session["session_id"] for session in guard.shown()] == [session_id]


@given(st.lists(st.text(max_size=100), unique=True, min_size=2, max_size=5))
def test_two_sessions_never_share_a_file(session_ids: list[str]) -> None:
    names = [store.file_name(session_id).casefold() for session_id in session_ids]
    assert len(set(names)) == len(names)


def test_32_agents_are_remembered_the_most_recently_used_ones(guard: Guard) -> None:
    for number in range(model.MAX_AGENTS):
        guard.call(agent_id=f"agent-{number}")
    guard.call(agent_id="agent-0")
    guard.call(agent_id="one-more")
    counts = guard.counts()
    assert len(counts) == model.MAX_AGENTS
    assert counts["agent-0"] == 2
    assert "agent-1" not in counts


def test_256_ids_are_remembered(guard: Guard) -> None:
    calls = [
        {"tool_name": "Read", "tool_input": {"file_path": f"/{number}"}, "tool_use_id": f"toolu_{number}"}
        for number in range(model.MAX_RECENT + 1)
    ]
    step = {"session_id": SESSION, "hook_event_name": "PostToolBatch", "tool_calls": calls}
    assert guard.hook("post-tool-use", step).code == 0

    def count_after(call: dict[str, Any]) -> int | None:
        assert guard.hook("post-tool-use", tool_payload("Read", call["tool_input"], call["tool_use_id"])).code == 0
        return guard.counts()[None]

    assert guard.shown()[0]["chains"][0]["arguments_preview"] == f'{{"file_path":"/{model.MAX_RECENT}"}}'
    assert count_after(calls[-1]) == 1, "known: counted once"
    assert count_after(calls[1]) == 1, "known: another call that was counted before, so the chain stays"
    assert guard.shown()[0]["chains"][0]["arguments_preview"] == f'{{"file_path":"/{model.MAX_RECENT}"}}'
    count_after(calls[0])
    assert guard.shown()[0]["chains"][0]["arguments_preview"] == '{"file_path":"/0"}', "forgotten: a new call"


def test_a_state_never_grows_beyond_128_kb(guard: Guard) -> None:
    wide = "\U0001f600"
    for number in range(model.MAX_AGENTS):
        calls = [
            {"tool_name": wide * 200, "tool_input": {"n": n, "text": wide * 3000}, "tool_use_id": f"{number}-{n}"}
            for n in range(model.MAX_RECENT)
        ]
        step = {"session_id": wide * 900, "hook_event_name": "PostToolBatch", "agent_id": f"{number}{wide * 900}"}
        assert guard.hook("post-tool-use", {**step, "tool_calls": calls}).code == 0
    (file,) = (guard.state / "sessions").glob("*.json")
    assert file.stat().st_size <= 128 * 1024
    chains = guard.shown()[0]["chains"]
    assert any(chain["agent_id"].startswith(f"{model.MAX_AGENTS - 1}") for chain in chains), "the newest is kept"


def test_an_ordinary_state_is_a_few_kb(guard: Guard) -> None:
    for number in range(40):
        guard.call("Read", {"file_path": f"/home/dev/shop/src/{number}.py"})
    (file,) = (guard.state / "sessions").glob("*.json")
    assert file.stat().st_size < 4096


def test_files_are_for_their_owner_alone(guard: Guard) -> None:
    previous = os.umask(0)
    try:
        guard.call()
    finally:
        os.umask(previous)
    for path in [guard.state, *guard.state.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_arguments_are_kept_as_a_digest_and_a_head(guard: Guard) -> None:
    secret = "x" * 600 + "s3cret"
    guard.call("Bash", {"command": secret})
    (file,) = (guard.state / "sessions").glob("*.json")
    assert "s3cret" not in file.read_text()
    assert "xxx" in file.read_text()
    config = guard.home / "quiet.toml"
    config.write_text("state_preview = false")
    quiet = tool_payload("Read", {"file_path": "hush"}, session_id="quiet")
    assert guard.hook("post-tool-use", quiet, REPEAT_GUARD_CONFIG=str(config)).code == 0
    assert "hush" not in (guard.state / "sessions" / "quiet.json").read_text()


@pytest.mark.parametrize(
    ("content", "damaged"),
    [
        pytest.param(b"", True, id="empty"),
        pytest.param(b"{", True, id="cut off"),
        pytest.param(b"\xff\x00\x80", True, id="random bytes"),
        pytest.param(b"null", True, id="no object"),
        pytest.param(b"[" * 200_000, True, id="nested"),
        pytest.param(json.dumps({"version": 0, "chains": {}}).encode(), True, id="an older layout"),
        pytest.param(json.dumps({"version": 99}).encode(), True, id="a later one under our suffix"),
        pytest.param(
            json.dumps({"version": 1, "session_id": "other", "updated_at": 0, "agents": {}}).encode(),
            True,
            id="another session's",
        ),
        pytest.param(
            json.dumps({"version": 1, "session_id": SESSION, "updated_at": 0, "agents": {}}).encode(),
            False,
            id="a healthy one",
        ),
    ],
)
def test_a_state_that_is_no_use_is_replaced_and_noted(content: bytes, damaged: bool, guard: Guard) -> None:
    (guard.state / "sessions").mkdir(parents=True)
    (guard.state / "sessions" / f"{SESSION}.json").write_bytes(content)
    guard.call()
    guard.call()
    assert guard.counts() == {None: 2}
    log = guard.state / "repeat-guard.log"
    assert (log.exists() and "is damaged and will be replaced" in log.read_text()) is damaged


def test_the_end_of_a_session_forgets_it(guard: Guard) -> None:
    guard.call()
    guard.call(session_id="other")
    end = {"session_id": SESSION, "hook_event_name": "SessionEnd"}
    assert guard.hook("session-end", end) == (0, "", "")
    assert [session["session_id"] for session in guard.shown()] == ["other"]
    assert not [name for name in guard.files() if SESSION in name]


def test_stale_sessions_are_swept_when_another_ends(guard: Guard) -> None:
    sessions = guard.state / "sessions"
    for name in ("old", "recent"):
        guard.call(session_id=name)
    for path in sessions.glob("old.*"):
        os.utime(path, (1.0, 1.0))
    foreign = sessions / "old.json2"
    foreign.write_text("another layout's")
    os.utime(foreign, (1.0, 1.0))
    guard.call(session_id="recent")
    assert (sessions / "old.json").exists(), "never by post-tool-use"
    assert guard.hook("session-end", {"session_id": "gone", "hook_event_name": "SessionEnd"}) == (0, "", "")
    assert sorted(path.name for path in sessions.iterdir()) == ["old.json2", "recent.json", "recent.lock"]


def test_prompts_sweep_once_a_day(guard: Guard) -> None:
    def stale(name: str) -> bool:
        guard.call(session_id=name)
        os.utime(guard.state / "sessions" / f"{name}.json", (1.0, 1.0))
        guard.prompt(session_id="elsewhere")
        return (guard.state / "sessions" / f"{name}.json").exists()

    assert not stale("first")
    assert stale("second"), "swept today already"
    os.utime(guard.state / "swept", (1.0, 1.0))
    assert not stale("third")
