"""The plugin for Claude Code: its manifests, and its hooks where the program is missing."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from repeat_guard_cli import __version__
from repeat_guard_cli.agents import claude_code
from repeat_guard_cli.people import executable, registration
from tests.conftest import ROOT
from tests.support import COMMAND

HOOKS = json.loads((ROOT / "hooks/hooks.json").read_text())["hooks"]
PLUGIN = json.loads((ROOT / ".claude-plugin/plugin.json").read_text())
OLDEST_WITH_PLUGINS = (2, 0, 12)
LINES = [(event, group["hooks"][0]["command"]) for event, groups in HOOKS.items() for group in groups]


def test_manifests_agree() -> None:
    market = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())
    assert PLUGIN["version"] == __version__
    assert [(plugin["name"], plugin["source"]) for plugin in market["plugins"]] == [(PLUGIN["name"], "./")]
    assert market["plugins"][0]["description"] == PLUGIN["description"]


def test_every_version_that_takes_plugins_knows_the_events() -> None:
    assert {event for event in HOOKS if claude_code.SINCE[event] > OLDEST_WITH_PLUGINS} == set()


def test_hooks_are_those_of_a_shared_file() -> None:
    wanted = [*claude_code.SETS["safe"], claude_code.SETS["per-call"][-1]]
    block = registration.block(wanted, executable.on_path)["hooks"]
    assert {event: HOOKS[event] for event in HOOKS if event != "SessionStart"} == block


@pytest.mark.parametrize(("event", "line"), LINES)
def test_where_the_program_is_missing(event: str, line: str) -> None:
    """No call fails, and it is said once a session, where a person sees it."""
    done = subprocess.run(
        ["/bin/sh", "-c", line], input=b"x" * 1_000_000, capture_output=True, env={"PATH": os.defpath}, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if event == "SessionStart":
        assert "not on PATH" in json.loads(done.stdout)["systemMessage"]
        assert HOOKS[event][0]["matcher"] == "startup"
    else:
        assert done.stdout == b""


@pytest.mark.parametrize(("event", "line"), LINES)
def test_where_it_is_there(event: str, line: str, tmp_path: Path) -> None:
    search = f"{Path(COMMAND).parent}:{os.defpath}"
    environment = {"PATH": search, "HOME": str(tmp_path)}
    payload = {"session_id": "s", "hook_event_name": event, "tool_name": "Bash", "tool_input": {}, "prompt": "hi"}
    done = subprocess.run(
        ["/bin/sh", "-c", line], input=json.dumps(payload).encode(), capture_output=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / ".local/state/repeat-guard/sessions/s.json").exists() == (event == "PostToolUse")


def test_the_readme_names_the_plugin() -> None:
    assert re.search(r"repeat-guard@repeat-guard", (ROOT / "README.md").read_text())
