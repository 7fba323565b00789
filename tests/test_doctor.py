"""`doctor` on setups that work, and on ones that were broken on purpose."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from repeat_guard_cli.agents import codex
from repeat_guard_cli.people import registration
from tests.support import COMMAND, Guard
from tests.test_install import claude, put, settings


def checks(guard: Guard, *arguments: str, **environment: str) -> dict[str, list[tuple[str, str]]]:
    """Return what `doctor --json` found: by check, status and message; its exit code must fit."""
    result = guard.run("doctor", *arguments, "--json", **environment)
    assert result.err == ""
    document = json.loads(result.out)
    broken = any(check["status"] == "broken" for check in document["checks"])
    assert document["ok"] is not broken
    assert result.code == int(broken)
    found: dict[str, list[tuple[str, str]]] = {}
    for check in document["checks"]:
        found.setdefault(check["check"], []).append((check["status"], check["message"]))
    return found


def broken(found: dict[str, list[tuple[str, str]]]) -> set[str]:
    return {check for check, results in found.items() if any(status == "broken" for status, _ in results)}


def change(path: Path, **fields: Any) -> None:
    put(path, json.dumps({**json.loads(path.read_text()), **fields}))


def trust(guard: Guard) -> None:
    """Write what Codex writes once /hooks was answered."""
    file = guard.home / ".codex/hooks.json"
    document = json.loads(file.read_text())
    entries = [
        f'[hooks.state."{file}:{name}:0:0"]\ntrusted_hash = "{codex.trusted_hash(entry, document)}"\n'
        for name, entry in zip(
            ("post_tool_use", "user_prompt_submit", "session_end"), registration.entries(document), strict=True
        )
    ]
    put(guard.home / ".codex/config.toml", "\n".join(entries))


@pytest.mark.parametrize("version", ["1.0.85", "2.0.60", "2.1.332"])
def test_what_install_wires_works(version: str, guard: Guard) -> None:
    claude(guard, version)
    guard.run("install", "claude-code")
    found = checks(guard)
    assert broken(found) == set()
    assert found["works"][0][0] == "ok"
    assert found["program"] == [("ok", f"Claude Code {version}")]
    assert guard.shown() == [], "the rehearsal left nothing"


def test_for_people_it_is_a_line_each(guard: Guard) -> None:
    guard.run("install", "claude-code")
    lines = guard.run("doctor", "claude-code").out.splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "note", "broken"}
    assert any(COMMAND in line for line in lines)


def test_codex_needs_trust(guard: Guard) -> None:
    guard.run("install", "codex")
    found = checks(guard, "codex")
    assert broken(found) == {"trust"}
    assert "/hooks" in found["trust"][0][1]
    trust(guard)
    assert broken(checks(guard, "codex")) == set()


def test_codex_passes_over_what_changed_since_it_was_trusted(guard: Guard) -> None:
    guard.run("install", "codex")
    trust(guard)
    file = guard.home / ".codex/hooks.json"
    put(file, file.read_text().replace('"timeout": 10', '"timeout": 11'))
    found = checks(guard, "codex")
    assert broken(found) == {"trust"}
    assert "changed since" in found["trust"][0][1]


def test_codex_hook_that_was_switched_off(guard: Guard) -> None:
    guard.run("install", "codex")
    trust(guard)
    config = guard.home / ".codex/config.toml"
    put(config, config.read_text().replace("trusted_hash", "enabled = false\ntrusted_hash", 1))
    assert broken(checks(guard, "codex")) == {"trust"}


def test_hooks_in_codex_own_config(guard: Guard) -> None:
    config = guard.home / ".codex/config.toml"
    entries = [
        f'[[hooks.{event}]]\n[[hooks.{event}.hooks]]\ntype = "command"\ncommand = "{COMMAND} {command}"\n'
        for event, command in (("PostToolUse", "post-tool-use"), ("UserPromptSubmit", "user-prompt-submit"))
    ]
    put(config, "\n".join(entries))
    found = checks(guard, "codex")
    assert broken(found) == {"trust"}
    assert "config.toml" in found["registered"][0][1]
    assert found["works"][0][0] == "ok"


def test_the_plugin_in_codex(guard: Guard) -> None:
    guard.environment["PATH"] = f"{Path(COMMAND).parent}:{guard.environment['PATH']}"
    config = '[plugins."repeat-guard@repeat-guard"]\nenabled = true\n'
    put(guard.home / ".codex/config.toml", config)
    assert broken(checks(guard, "codex")) == {"trust"}
    for name in ("post_tool_use", "user_prompt_submit", "session_end"):
        key = f"repeat-guard@repeat-guard:hooks/hooks.json:{name}:0:0"
        config += f'[hooks.state."{key}"]\ntrusted_hash = "sha256:00/sha256:00"\n'
    put(guard.home / ".codex/config.toml", config)
    found = checks(guard, "codex")
    assert broken(found) == set()
    assert "plugin" in found["registered"][0][1]


POST = "/x y/repeat-guard post-tool-use"
PROMPT = "'/x é/repeat-guard' user-prompt-submit"
END = "repeat-guard session-end"
HASHES = [
    ("PostToolUse", "*", {"command": POST, "timeout": 10}, "11a22e5db422cb58", "as install writes it"),
    ("PostToolUse", "*", {"command": POST}, "fa28099ec20e23ea", "without a timeout"),
    ("PostToolUse", None, {"command": POST, "timeout": 0}, "f43a10c7d33cf770", "no matcher; at least 1 s"),
    ("PostToolUse", "", {"command": POST, "statusMessage": "é <x>", "timeout": 7}, "9dbfedbf25eeba4a", "a status"),
    (
        "PostToolUse",
        "Bash",
        {"command": POST, "commandWindows": "x.exe post-tool-use", "additionalContextLimit": 100},
        "46f00aaa85d73c0f",
        "what is for Windows doesn't count",
    ),
    ("UserPromptSubmit", "*", {"command": PROMPT, "timeout": 10}, "0b08f3ecf9f97415", "no matcher for prompts"),
    ("SessionEnd", "*", {"command": END, "timeout": 10}, "28f5f60b735b8bf8", "at most 3 s"),
    ("SessionEnd", None, {"command": END}, "c344ba9fd58adc05", "1 s where none is named"),
]


@pytest.mark.parametrize(("event", "matcher", "fields", "start", "reason"), HASHES)
def test_the_hash_is_codex_own(
    event: str, matcher: str | None, fields: dict[str, Any], start: str, reason: str
) -> None:
    """The values are what `hooks/list` of Codex 0.146.0, 0.156.0 and 0.171.0 gave."""
    group = {} if matcher is None else {"matcher": matcher}
    document = {"hooks": {event: [{**group, "hooks": [{"type": "command", **fields}]}]}}
    (entry,) = registration.entries(document)
    assert codex.trusted_hash(entry, document).startswith(f"sha256:{start}"), reason


def test_nothing_is_there(guard: Guard) -> None:
    assert broken(checks(guard)) == {"agents"}
    found = checks(guard, "claude-code")
    assert broken(found) == {"registered"}
    assert "repeat-guard install claude-code" in found["registered"][0][1]


@pytest.mark.parametrize("text", ["{", '{"hooks": {}, // comment\n}'])
def test_a_settings_file_that_is_wrong(text: str, guard: Guard) -> None:
    put(settings(guard), text)
    assert "file" in broken(checks(guard))


BROKEN_COMMANDS = [
    ("/gone/bin/repeat-guard post-tool-use", "does not exist"),
    ("/bin/true repeat-guard post-tool-use", "no reminder"),
    ("/bin/false repeat-guard post-tool-use", "exits 1"),
    ("echo hello; exec cat >/dev/null # /x/repeat-guard post-tool-use", "too early"),
    ("REPEAT_GUARD_OFF=1 {command} post-tool-use", "no reminder"),
]


@pytest.mark.parametrize(("line", "reason"), BROKEN_COMMANDS)
def test_a_command_that_does_not_work(line: str, reason: str, guard: Guard) -> None:
    guard.run("install", "claude-code")
    document = json.loads(settings(guard).read_text())
    document["hooks"]["PostToolUse"][0]["hooks"][0]["command"] = line.format(command=COMMAND)
    put(settings(guard), json.dumps(document))
    found = checks(guard)
    assert broken(found) == {"works"}
    assert reason in found["works"][0][1]


def test_a_prompt_hook_that_does_not_work(guard: Guard) -> None:
    guard.run("install", "claude-code")
    document = json.loads(settings(guard).read_text())
    document["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"] = "/gone/repeat-guard user-prompt-submit"
    put(settings(guard), json.dumps(document))
    assert "works" in broken(checks(guard))


def test_a_prompt_hook_that_is_missing(guard: Guard) -> None:
    guard.run("install", "claude-code")
    document = json.loads(settings(guard).read_text())
    del document["hooks"]["UserPromptSubmit"]
    put(settings(guard), json.dumps(document))
    assert broken(checks(guard)) == {"events"}


@pytest.mark.parametrize("field", ["disableAllHooks", "allowManagedHooksOnly"])
def test_hooks_are_switched_off(field: str, guard: Guard) -> None:
    guard.run("install", "claude-code")
    change(settings(guard), **{field: True})
    assert broken(checks(guard)) == {"hooks-on"}


@pytest.mark.parametrize("feature", ["hooks", "codex_hooks"])
def test_hooks_are_switched_off_in_codex(feature: str, guard: Guard) -> None:
    guard.run("install", "codex")
    trust(guard)
    config = guard.home / ".codex/config.toml"
    put(config, f"[features]\n{feature} = false\n\n{config.read_text()}")
    assert broken(checks(guard, "codex")) == {"hooks-on"}


def test_codex_refuses_a_file_with_other_fields(guard: Guard) -> None:
    guard.run("install", "codex")
    trust(guard)
    change(guard.home / ".codex/hooks.json", **{"$schema": "x"})
    assert broken(checks(guard, "codex")) == {"file"}


@pytest.mark.parametrize(
    ("version", "event", "wrong"),
    [
        ("2.1.100", "PostToolBatch", True),
        ("2.1.100", "SomethingNew", True),
        ("2.0.50", "PostToolUseFailure", True),
        ("2.1.110", "PostToolBatch", True),
        ("2.1.110", "SomethingNew", False),
        ("2.1.332", "SomethingNew", False),
    ],
)
def test_events_that_the_version_does_not_know(version: str, event: str, wrong: bool, guard: Guard) -> None:
    claude(guard, version)
    guard.run("install", "claude-code")
    document = json.loads(settings(guard).read_text())
    document["hooks"][event] = [{"hooks": [{"type": "command", "command": "foreign"}]}]
    put(settings(guard), json.dumps(document))
    assert broken(checks(guard)) == ({"events"} if wrong else set())


def test_what_is_not_seen_is_a_note(guard: Guard) -> None:
    guard.run("install", "claude-code")
    claude(guard, "2.1.332")
    found = checks(guard)
    assert broken(found) == set()
    assert "failing, denied and invalid calls" in found["events"][0][1]


def test_registered_twice_is_a_note(guard: Guard) -> None:
    guard.run("install", "claude-code")
    project = guard.home / "project"
    project.mkdir()
    guard.environment["PATH"] = f"{Path(COMMAND).parent}:{guard.environment['PATH']}"
    guard.run("install", "claude-code", "--scope", "project", cwd=project)
    result = guard.run("doctor", "claude-code", cwd=project)
    assert result.code == 0, result
    assert "PostToolUse is registered 2 times" in result.out
    assert "desktop" in result.out, "what PATH finds here, it may not find there"


def test_the_plugin_alone(guard: Guard) -> None:
    put(settings(guard), json.dumps({"enabledPlugins": {"repeat-guard@repeat-guard": True}}))
    assert "works" in broken(checks(guard))
    guard.environment["PATH"] = f"{Path(COMMAND).parent}:{guard.environment['PATH']}"
    assert broken(checks(guard)) == set()


def test_the_guard_itself(guard: Guard) -> None:
    guard.run("install", "claude-code")
    assert "switched-on" in broken(checks(guard, REPEAT_GUARD_OFF="1"))
    assert "settings" in broken(checks(guard, REPEAT_GUARD_THRESHOLDS="1"))
    assert broken(checks(guard, REPEAT_GUARD_THRESHOLDS="4", REPEAT_GUARD_INCLUDE="mcp__*")) == set()
    shutil.rmtree(guard.state)
    put(guard.state, "a file")
    assert "state" in broken(checks(guard))


def test_the_last_failure_in_the_log(guard: Guard) -> None:
    guard.run("install", "claude-code")
    guard.hook("post-tool-use", b"nonsense")
    found = checks(guard)
    assert broken(found) == set()
    assert "not JSON" in found["log"][0][1]


def test_a_matcher_that_narrows_is_a_note(guard: Guard) -> None:
    guard.run("install", "claude-code")
    document = json.loads(settings(guard).read_text())
    document["hooks"]["PostToolUse"][0]["matcher"] = "Bash"
    put(settings(guard), json.dumps(document))
    assert "'Bash'" in checks(guard)["matcher"][0][1]
