"""The real Codex against a scripted model: what reaches the model is in its next request."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from repeat_guard_cli.agents import codex
from repeat_guard_cli.people import registration
from repeat_guard_cli.reminder import SIGNATURE
from tests.conftest import ROOT
from tests.e2e.agents import Stage, play, program
from tests.e2e.server import Block, Script
from tests.support import COMMAND, Guard

VERSION = "codex-0.171.0"
CONFIG = """\
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
"""


def shell(command: str) -> Block:
    """Return a call of the shell."""
    return {"tool": "exec_command", "input": {"cmd": command}}


SAME, OTHER = [shell("echo same")], [shell("echo other")]


def hooks_file(guard: Guard) -> Path:
    return guard.home / ".codex/hooks.json"


def run(guard: Guard, script: Script, *, prompts: Sequence[str] = ("go",), trusted: bool = True) -> Stage:
    """Run Codex without a terminal, once for each prompt, in one session."""
    config = guard.home / ".codex/config.toml"
    config.parent.mkdir(exist_ok=True)
    if not config.exists():
        config.write_text(CONFIG)
    trust = ["--dangerously-bypass-hook-trust"] if trusted else []
    model = ["-c", 'model_providers.scripted.base_url="URL/v1"']
    command = [*program(VERSION), "exec", *model, *trust, "--skip-git-repo-check"]
    runs: list[dict[str, Any]] = [{"arguments": [*command, prompts[0]]}]
    runs += [{"arguments": [*command, "resume", "--last", prompt]} for prompt in prompts[1:]]
    stage = play(guard, runs, {"main": script}, {"CODEX_HOME": str(config.parent)})
    assert [each["code"] for each in stage.runs] == [0] * len(runs), stage.runs
    return stage


def wire(guard: Guard) -> None:
    assert guard.run("install", "codex").code == 0


def test_eight_identical_calls(guard: Guard) -> None:
    hooks_file(guard).parent.mkdir()
    before = '{"hooks": {"Stop": []}}'
    hooks_file(guard).write_text(before)
    wire(guard)
    stage = run(guard, [SAME] * 9)
    assert stage.told() == [3, 5, 8]
    said = [item for item in stage.requests[-1]["input"] if SIGNATURE in json.dumps(item)]
    assert [item["role"] for item in said] == ["developer"] * 3
    counts = [re.findall(r"called (\d+) times", json.dumps(item)) for item in said]
    assert counts == [["3"], ["5"], ["8"]], "each once, and they stay"
    rollout = "".join(path.read_text() for path in (guard.home / ".codex/sessions").rglob("*.jsonl"))
    assert "called 8 times in a row" in rollout
    assert guard.shown() == [], "the end of the session removes its state"
    assert guard.run("uninstall", "codex").code == 0
    assert hooks_file(guard).read_text() == before


def test_calls_that_fail(guard: Guard) -> None:
    """Failing commands count. What Codex reports to no hook can't, and doesn't break a chain either."""
    wire(guard)
    stage = run(guard, [*[[shell("false")]] * 2, [{"tool": "no_such_tool", "input": {}}], [shell("false")], OTHER])
    assert stage.told() == [4]


def test_three_identical_calls_in_one_step(guard: Guard) -> None:
    wire(guard)
    assert run(guard, [SAME * 3, OTHER]).told() == [1]


def test_a_patch_is_a_tool_call_too(guard: Guard) -> None:
    wire(guard)
    patch = "*** Begin Patch\n*** Update File: nowhere.txt\n@@\n-a\n+b\n*** End Patch"
    stage = run(guard, [[{"tool": "apply_patch", "input": patch}]] * 3)
    assert len(stage.requests) == 4


def test_a_prompt_resets(guard: Guard) -> None:
    """Also where the end of the session removes nothing, so that it is the prompt that does it."""
    wire(guard)
    document = json.loads(hooks_file(guard).read_text())
    del document["hooks"]["SessionEnd"]
    hooks_file(guard).write_text(json.dumps(document))
    stage = run(guard, [SAME, SAME, [{"text": "so far"}], SAME, SAME], prompts=("go", "go on"))
    assert stage.told() == []
    assert [list(guard.counts(session["session_id"]).values()) for session in guard.shown()] == [[2]]


def test_hooks_that_are_not_trusted_do_not_run(guard: Guard) -> None:
    """Why `install` says so, and `doctor` looks."""
    wire(guard)
    assert run(guard, [SAME] * 4, trusted=False).told() == []
    assert guard.run("doctor", "codex").code == 1


def test_registered_twice_counts_once(guard: Guard) -> None:
    wire(guard)
    document = json.loads(hooks_file(guard).read_text())
    for groups in document["hooks"].values():
        groups.append(groups[0])
    hooks_file(guard).write_text(json.dumps(document))
    assert run(guard, [SAME] * 5).told() == [3, 5]


def test_the_same_hooks_in_two_files_count_once(guard: Guard) -> None:
    wire(guard)
    project = guard.home / "project"
    project.mkdir(exist_ok=True)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    shutil.copytree(hooks_file(guard).parent, project / ".codex")
    trust = f'\n[projects.{json.dumps(str(project))}]\ntrust_level = "trusted"\n'
    (hooks_file(guard).parent / "config.toml").write_text(CONFIG + trust)
    stage = run(guard, [SAME] * 5)
    assert stage.told() == [3, 5]
    hooks_file(guard).unlink()
    assert run(guard, [SAME] * 3).told() == [3], "and the project's file alone runs too"


BROKEN: dict[str, Any] = {
    "the command is missing": "/nowhere/repeat-guard",
    "it exits 1": "/bin/sh -c 'cat >/dev/null; echo wrong >&2; exit 1' x",
    "it is killed": "/bin/sh -c 'kill -9 $$' x",
    "it hangs": "/bin/sh -c 'exec sleep 60' x",
    "a typing mistake": f"{shlex.quote(COMMAND)} mistyped",
    "no state directory": lambda guard: (guard.home / "state").write_text("a file"),
    "wrong settings": lambda guard: guard.environment.update(REPEAT_GUARD_THRESHOLDS="none"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_guard_that_is_broken_harms_nothing(name: str, guard: Guard) -> None:
    how = BROKEN[name]
    command = how if isinstance(how, str) else shlex.quote(COMMAND)
    if not isinstance(how, str):
        how(guard)
    quick = [each._replace(timeout=1) for each in codex.REGISTRATIONS]
    hooks_file(guard).parent.mkdir()
    hooks_file(guard).write_text(json.dumps(registration.block(quick, lambda name: f"{command} {name}")))
    stage = run(guard, [SAME] * 3, prompts=["the prompt that must arrive"])
    assert stage.told() == []
    assert "the prompt that must arrive" in stage.last
    assert sum("same" in json.dumps(item.get("output", "")) for item in stage.requests[-1]["input"]) == 3


def test_the_plugin_works_in_codex_too(guard: Guard) -> None:
    """Codex 0.171.0 reads `.claude-plugin` and `hooks/hooks.json` of a plugin that was added to it."""
    assert run(guard, [SAME] * 4).told() == [], "no plugin yet"
    command = [*program(VERSION), "plugin"]
    runs = [
        {"arguments": [*command, "marketplace", "add", str(ROOT)]},
        {"arguments": [*command, "add", "repeat-guard@repeat-guard"]},
    ]
    added = play(guard, runs, {}, {"CODEX_HOME": str(guard.home / ".codex")})
    assert [each["code"] for each in added.runs] == [0, 0], added.runs
    stage = run(guard, [SAME] * 6)
    assert stage.told() == [3, 5]
    assert "clamping" not in stage.runs[0]["err"]
    assert run(guard, [SAME] * 4, trusted=False).told() == [], "its hooks need trust like all others"


def test_a_checkout_is_no_plugin(guard: Guard) -> None:
    """Codex and `hooks/hooks.json` in the working directory: nothing runs unless it was added."""
    project = guard.home / "project"
    shutil.copytree(ROOT / "hooks", project / "hooks")
    shutil.copytree(ROOT / ".claude-plugin", project / ".claude-plugin")
    assert run(guard, [SAME] * 4).told() == []
    assert guard.shown() == []
