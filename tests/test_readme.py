"""The README promises only what is true."""

import ast
import json
import re
from typing import Any

import pytest

from repeat_guard_cli import config, model, settings, sweep
from repeat_guard_cli.agents import claude_code
from tests.conftest import ROOT
from tests.support import Guard

README = (ROOT / "README.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_session_shown_is_what_demo_prints(guard: Guard) -> None:
    printed = [line.rstrip() for line in guard.run("demo", COLUMNS="118").out.splitlines()]
    shown = next(text for _, text in BLOCKS if "told" in text).splitlines()
    start = printed.index(shown[0])
    assert printed[start : start + len(shown)] == shown


def test_hooks_to_register_by_hand_are_the_files() -> None:
    shown = [text for kind, text in BLOCKS if kind == "json"]
    batch = f"claude-code-{claude_code.version_text(claude_code.BATCH_SINCE)}.json"
    assert shown == [(ROOT / "hooks" / name).read_text() for name in ("claude-code.json", batch, "codex.json")]


def test_sets_of_events() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| ([\w, ]+) \| ([\w. ]+) \|", README, re.MULTILINE)
    since = claude_code.version_text
    versions = {"batch": since(claude_code.BATCH_SINCE), "per-call": since(claude_code.FAILURES_SINCE)}
    assert rows[1:] == [
        (name, ", ".join(each.event for each in registrations), versions.get(name, "every version"))
        for name, registrations in claude_code.SETS.items()
    ]
    assert f"below {since(claude_code.FORGIVES_UNKNOWN_EVENTS)} drops its whole settings file" in README


def test_settings_and_their_defaults() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \|", README, re.MULTILINE)
    shown: dict[str, Any] = {name: json.loads(value) for name, value in rows}
    assert shown == settings.DEFAULTS


def test_variables_that_are_named_exist() -> None:
    named = set(re.findall(r"REPEAT_GUARD_[A-Z_]+", README))
    assert named == {*settings.VARIABLES.values(), *(f"REPEAT_GUARD_{name}" for name in ("OFF", "CONFIG", "STATE_DIR"))}


def test_commands_and_options_that_are_named_exist(guard: Guard) -> None:
    lines = [line.split("#")[0] for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
    named = {
        (command, option)
        for text in (*lines, *re.findall(r"`(repeat-guard [^`]+)`", README))
        for command, rest in re.findall(r"repeat-guard ([a-z][a-z-]+)([^;&|]*)", text)
        for option in re.findall(r"--[a-z-]+", rest) or [""]
    }
    assert {command for command, _ in named} >= {"demo", "show", "reset", "config", "install", "uninstall", "doctor"}
    for command in {command for command, _ in named}:
        help_text = guard.run(command, "--help", COLUMNS="200")
        assert help_text.code == 0, command
        assert all(option in help_text.out for of, option in named if of == command), command


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+?)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_sizes_and_times() -> None:
    assert f"never over {model.MAX_BYTES // 1024} KB" in README
    assert f"for {sweep.STALE_SECONDS // 86_400} days" in README
    assert config.MAX_PROJECT_FILE_BYTES == 64 * 1024


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.md")), ids=lambda path: path.name)
def test_every_command_of_the_guide_is_one_line(path: Any) -> None:
    assert "\\\n" not in path.read_text(), "a line to paste has no continuation"


def test_the_two_commands_need_only_python() -> None:
    first, second = [text.strip() for kind, text in BLOCKS if kind == "sh"][:2]
    for command in (first, second):
        words = set(re.findall(r"(?:^|&& |\|\| |\()([\w./-]+)", command))
        assert words <= {"python3", ".venv/bin/pip", ".venv/bin/repeat-guard", ".venv/bin/python", "["}, words
    assert first.endswith("repeat-guard demo")
    assert "-m pytest" in second
    assert [line for line in README.splitlines() if "-m pytest" in line] == [second], "what .ci/run takes"


def test_python_versions_agree() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert 'requires-python = ">=3.10"' in project
    assert "Python 3.10 or later" in README
    assert ast.literal_eval(re.findall(r'^python_version = (".*")$', project, re.MULTILINE)[0]) == "3.10"
