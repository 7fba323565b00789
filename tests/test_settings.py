"""The settings: which are in force, and how wrong ones are refused."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from repeat_guard_cli import settings
from tests.support import Guard, Result, tool_payload


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def in_force(guard: Guard, **environment: str) -> dict[str, Any]:
    result = guard.run("config", "--json", **environment)
    assert (result.code, result.err) == (0, ""), result
    rows = json.loads(result.out)["settings"]
    return {key: row["value"] for key, row in rows.items()}


def reminded_at(guard: Guard, calls: int = 8, cwd: str = "/home/dev/shop", **environment: str) -> list[int]:
    told = []
    for number in range(1, calls + 1):
        result = guard.hook("post-tool-use", tool_payload("Bash", {"command": "ls"}, cwd=cwd), **environment)
        assert (result.code, result.err) == (0, "")
        if result.out:
            told.append(number)
    return told


WRONG_FILES = [
    pytest.param("thresholds = []", "thresholds = []", id="no threshold"),
    pytest.param("thresholds = 3", "thresholds = 3", id="no list"),
    pytest.param("thresholds = [true]", "thresholds = [True]", id="true is no number"),
    pytest.param("thresholds = [3.0]", "thresholds = [3.0]", id="3.0 is no whole number"),
    pytest.param('thresholds = ["3"]', "thresholds = ['3']", id="text"),
    pytest.param("thresholds = [1, 3]", "thresholds = [1, 3]", id="below 2"),
    pytest.param("thresholds = [-3]", "thresholds = [-3]", id="negative"),
    pytest.param("thresholds = [3, 5, 3]", "thresholds = [3, 5, 3]", id="twice"),
    pytest.param("thresholds = [[3]]", "thresholds = [[3]]", id="nested"),
    pytest.param('include = "Bash"', "include = 'Bash'", id="a pattern alone"),
    pytest.param("include = [1]", "include = [1]", id="a number as pattern"),
    pytest.param('exclude = [""]', "exclude = ['']", id="an empty pattern"),
    pytest.param("exclude = {}", "exclude = {}", id="a table"),
    pytest.param("arguments_preview_chars = 0", "arguments_preview_chars = 0", id="too small"),
    pytest.param("arguments_preview_chars = -1", "arguments_preview_chars = -1", id="negative size"),
    pytest.param("arguments_preview_chars = 1.5", "arguments_preview_chars = 1.5", id="a fraction"),
    pytest.param("arguments_preview_chars = true", "arguments_preview_chars = True", id="true as size"),
    pytest.param("state_preview = 1", "state_preview = 1", id="1 is not true"),
    pytest.param('state_preview = "no"', "state_preview = 'no'", id="a word is not false"),
    pytest.param('ignore_arguments = ["description"]', "ignore_arguments = ['description']", id="no tool"),
    pytest.param('ignore_arguments = [".description"]', "ignore_arguments = ['.description']", id="empty tool"),
    pytest.param('ignore_arguments = ["Bash."]', "ignore_arguments = ['Bash.']", id="empty argument"),
    pytest.param('ignore_arguments = "Bash.description"', "ignore_arguments = 'Bash.", id="a label alone"),
    pytest.param("thresholds = 2020-01-01", "thresholds = datetime.date", id="a date"),
    pytest.param("threshold = [3]", "unknown setting 'threshold'; did you mean 'thresholds'?", id="a near miss"),
    pytest.param("zzz = 1", "unknown setting 'zzz'; known are thresholds, include", id="nothing near"),
    pytest.param("[thresholds]\nx = 1", "thresholds = {'x': 1}", id="a table of that name"),
    pytest.param("thresholds = [3", "is wrong: ", id="not TOML"),
    pytest.param("thresholds = [3]\nthresholds = [4]", "is wrong: ", id="a key twice"),
    pytest.param('{"thresholds": [3]}', "is wrong: ", id="JSON"),
    pytest.param(b"# \xff", "is wrong: ", id="not UTF-8"),
    pytest.param("x = " + "[" * 20_000, "nested too deeply", id="nested"),
    pytest.param("#" * 1_100_000, "holds more than", id="over 1 MB"),
]


def is_one_line(result: Result, *parts: str) -> bool:
    line = result.err
    return (
        (result.code, result.out, line.count("\n")) == (1, "", 1)
        and line.startswith("repeat-guard: ")
        and all(part in line for part in parts)
    )


@pytest.mark.parametrize(("text", "said"), WRONG_FILES)
def test_a_wrong_user_file_fails_loud(text: str | bytes, said: str, guard: Guard) -> None:
    path = guard.home / ".config" / "repeat-guard" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert is_one_line(guard.run("config"), str(path), said)
    assert is_one_line(guard.hook("post-tool-use", tool_payload("Bash", {"command": "ls"})), str(path), said)
    assert not (guard.state / "sessions").exists()


@pytest.mark.parametrize(("text", "said"), WRONG_FILES)
def test_a_wrong_project_file_never_fails_a_hook(text: str | bytes, said: str, guard: Guard) -> None:
    project = guard.home / "shop"
    project.mkdir()
    path = project / ".repeat-guard.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    guard.state.mkdir()
    assert reminded_at(guard, 3, str(project)) == [3]
    assert str(path) in (guard.state / "repeat-guard.log").read_text()
    assert is_one_line(guard.run("config", cwd=project), str(path), said)


def test_a_project_file_larger_than_64_kb_is_wrong(guard: Guard) -> None:
    path = write(guard.home / "shop" / ".repeat-guard.toml", "#" * 65_537)
    assert is_one_line(guard.run("config", cwd=path.parent), str(path), "holds more than 65,536 bytes")
    path.write_text("#" * 65_536)
    assert guard.run("config", cwd=path.parent).code == 0


@pytest.mark.parametrize("kind", ["directory", "pipe", "dangling link"])
def test_a_project_file_that_is_no_file(kind: str, guard: Guard) -> None:
    path = guard.home / "shop" / ".repeat-guard.toml"
    path.parent.mkdir()
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")
    assert reminded_at(guard, 3, str(path.parent)) == [3]


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("THRESHOLDS", ""),
        ("THRESHOLDS", " "),
        ("THRESHOLDS", "3,x"),
        ("THRESHOLDS", "3.0"),
        ("THRESHOLDS", "1"),
        ("THRESHOLDS", "-3"),
        ("THRESHOLDS", "3,3"),
        ("THRESHOLDS", "3,,5"),
        ("THRESHOLDS", "[3, 5]"),
        ("THRESHOLDS", "٣"),
        ("THRESHOLDS", "9" * 5000),
        ("INCLUDE", "Bash,,Read"),
        ("EXCLUDE", ","),
    ],
)
def test_a_wrong_variable_fails_loud(variable: str, text: str, guard: Guard) -> None:
    environment = {f"REPEAT_GUARD_{variable}": text}
    for result in (
        guard.run("config", **environment),
        guard.hook("post-tool-use", tool_payload("Bash", {}), **environment),
    ):
        assert is_one_line(result, f"REPEAT_GUARD_{variable} = ")


def test_defaults_serve_without_a_file(guard: Guard) -> None:
    assert in_force(guard) == settings.DEFAULTS
    assert not guard.state.exists(), "looking writes nothing"


def test_environment_over_project_over_user_over_defaults_key_by_key(guard: Guard) -> None:
    user = write(
        guard.home / ".config/repeat-guard/config.toml",
        'thresholds = [4]\ninclude = ["U"]\nexclude = ["U"]\narguments_preview_chars = 40',
    )
    project = write(guard.home / ".repeat-guard.toml", 'thresholds = [6]\ninclude = ["P"]')
    result = guard.run("config", "--json", REPEAT_GUARD_THRESHOLDS="9, 7")
    document = json.loads(result.out)
    assert document["settings"] == {
        "thresholds": {"value": [7, 9], "source": "REPEAT_GUARD_THRESHOLDS"},
        "include": {"value": ["P"], "source": str(project)},
        "exclude": {"value": ["U"], "source": str(user)},
        "arguments_preview_chars": {"value": 40, "source": str(user)},
        "state_preview": {"value": True, "source": "default"},
        "ignore_arguments": {"value": settings.DEFAULTS["ignore_arguments"], "source": "default"},
    }
    assert document["user_file"] == {"path": str(user), "exists": True}
    assert document["project_file"] == {"path": str(project), "exists": True}
    assert document["state_dir"] == str(guard.state)
    assert document["off"] is False


def test_an_empty_list_from_the_environment_is_an_empty_list(guard: Guard) -> None:
    write(guard.home / ".config/repeat-guard/config.toml", 'include = ["U"]\nexclude = ["U"]')
    values = in_force(guard, REPEAT_GUARD_INCLUDE="", REPEAT_GUARD_EXCLUDE=" ")
    assert (values["include"], values["exclude"]) == ([], [])


def test_the_project_is_claude_codes_else_the_payloads_directory(guard: Guard) -> None:
    here, there = guard.home / "here", guard.home / "there"
    write(here / ".repeat-guard.toml", "thresholds = [2]")
    write(there / ".repeat-guard.toml", "thresholds = [4]")
    (here / "src").mkdir()
    assert reminded_at(guard, 5, str(here)) == [2]
    guard.run("reset", "--all")
    assert reminded_at(guard, 5, str(here), CLAUDE_PROJECT_DIR=str(there)) == [4]
    guard.run("reset", "--all")
    assert reminded_at(guard, 5, str(here / "src")) == [3, 5], "that one directory, none above it"
    guard.run("reset", "--all")
    assert reminded_at(guard, 5, "here") == [3, 5], "a relative directory says nothing"


def test_another_user_file_can_be_named(guard: Guard) -> None:
    path = write(guard.home / "mine.toml", "thresholds = [2]")
    assert reminded_at(guard, 3, REPEAT_GUARD_CONFIG=str(path)) == [2]
    assert reminded_at(guard, 0, REPEAT_GUARD_CONFIG="~/mine.toml") == []
    missing = guard.hook("post-tool-use", tool_payload("Bash", {}), REPEAT_GUARD_CONFIG=str(guard.home / "no.toml"))
    assert is_one_line(missing, "REPEAT_GUARD_CONFIG", "no.toml", "does not exist")
    assert is_one_line(guard.run("config", REPEAT_GUARD_CONFIG="no.toml"), "no.toml")


@pytest.mark.parametrize(
    ("value", "off"),
    [("1", True), ("yes", True), ("x", True), ("", False), ("0", False), ("false", False), ("NO", False)],
)
def test_the_off_switch(value: str, off: bool, guard: Guard) -> None:
    assert reminded_at(guard, 3, REPEAT_GUARD_OFF=value) == ([] if off else [3])
    assert guard.state.exists() is not off
    assert json.loads(guard.run("config", "--json", REPEAT_GUARD_OFF=value).out)["off"] is off


def test_off_reads_what_comes_and_looks_at_nothing(guard: Guard) -> None:
    big = b"not json " * 1_000_000
    wrong = str(write(guard.home / "wrong.toml", "thresholds = []"))
    for command in ("post-tool-use", "user-prompt-submit", "session-end"):
        assert guard.hook(command, big, REPEAT_GUARD_OFF="1", REPEAT_GUARD_CONFIG=wrong) == (0, "", "")


def test_a_changed_file_is_read_anew(guard: Guard) -> None:
    """What a file held is kept beside the state, until it changes."""
    path = write(guard.home / ".config/repeat-guard/config.toml", "thresholds = [2]")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    assert reminded_at(guard, 3) == [2]
    guard.run("reset", "--all")
    assert reminded_at(guard, 3) == [2]
    (kept,) = (guard.state / "settings").glob("*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    guard.run("reset", "--all")
    path.write_text("thresholds = [4]")
    assert reminded_at(guard, 4) == [4]
    guard.run("reset", "--all")
    kept.write_text("damaged")
    assert reminded_at(guard, 4) == [4]
    path.write_text("thresholds = []")
    assert is_one_line(guard.run("config"), str(path))


def test_the_example_is_every_setting_with_its_default(guard: Guard) -> None:
    example = Path(__file__).parent.parent / "examples" / "config.toml"
    result = json.loads(guard.run("config", "--json", REPEAT_GUARD_CONFIG=str(example)).out)["settings"]
    assert {key: row["value"] for key, row in result.items()} == settings.DEFAULTS
    assert {row["source"] for row in result.values()} == {str(example)}
