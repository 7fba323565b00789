"""`install` and `uninstall`, through the command, on settings files as people have them."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repeat_guard_cli.agents import claude_code, codex
from repeat_guard_cli.people import executable, json_text, registration
from tests.support import COMMAND, Guard, Result

FOREIGN = {"type": "command", "command": "~/bin/log.sh", "timeout": 5}
CODEX_EVENTS = ["PostToolUse", "UserPromptSubmit", "SessionEnd"]

FILES = {
    "nothing": "",
    "blank": "\n",
    "empty": "{}",
    "empty, a line end": "{}\n",
    "empty, spread out": "{\n}\n",
    "empty, odd": "{ \n\t }",
    "two spaces": '{\n  "model": "opus",\n  "permissions": {\n    "deny": ["Bash(rm:*)"]\n  }\n}\n',
    "four spaces, no line end": '{\n    "permissions": {\n        "allow": [\n            "Read"\n        ]\n    }\n}',
    "tabs": '{\n\t"env": {\n\t\t"A": "1"\n\t}\n}\n',
    "one line": '{"model": "opus", "env": {"A": "1"}}',
    "minified": '{"model":"opus","hooks":{"Stop":[{"hooks":[{"type":"command","command":"say"}]}]}}',
    "windows lines": '{\r\n  "model": "opus",\r\n  "hooks": {\r\n  }\r\n}\r\n',
    "byte-order mark": '\ufeff{\n  "model": "opus"\n}\n',
    "escapes and letters": '{\n  "note": "caf\\u00e9 \\/ é 🙂",\n  "n": 1.0e2\n}\n',
    "a key twice": '{\n  "model": "a",\n  "model": "b"\n}\n',
    "hooks of others": json.dumps({"hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": [FOREIGN]}]}}, indent=3),
    "our event, empty": '{\n  "hooks": {\n    "PostToolUse": [],\n    "Stop": []\n  }\n}\n',
    "hooks first": '{\n  "hooks": {"PreToolUse": [{"hooks": []}]},\n\n  "model": "opus"\n}\n',
    "inline groups": '{\n  "hooks": {\n    "UserPromptSubmit": [{"hooks": [{"command": "x"}]}]\n  }\n}\n',
}


def settings(guard: Guard) -> Path:
    return guard.home / ".claude/settings.json"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def ours(path: Path) -> list[registration.Entry]:
    return registration.entries(json_text.load(path.read_bytes().decode()))


def done(result: Result) -> str:
    assert (result.code, result.err) == (0, ""), result
    return result.out


def claude(guard: Guard, version: str, exit_code: int = 0) -> None:
    """Put a `claude` on PATH that has a version."""
    folder = guard.home / "programs"
    folder.mkdir(exist_ok=True)
    program = folder / "claude"
    program.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\nexit {exit_code}\n")
    program.chmod(0o755)
    guard.environment["PATH"] = f"{folder}:{os.defpath}"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_install_and_uninstall_give_back_every_byte(agent: str, name: str, guard: Guard) -> None:
    path = settings(guard) if agent == "claude-code" else guard.home / ".codex/hooks.json"
    if name != "nothing":
        put(path, FILES[name])
    before = guard.files()
    preview = done(guard.run("install", agent, "--dry-run"))
    assert guard.files() == before
    said = done(guard.run("install", agent))
    assert said.startswith(preview)
    assert {entry.event for entry in ours(path)} >= {"PostToolUse", "UserPromptSubmit"}
    kept = json_text.load(FILES[name]) if FILES[name].strip() else {}
    written = json_text.load(path.read_bytes().decode())
    assert list(written)[: len(kept)] == list(kept)
    assert {key: value for key, value in written.items() if key != "hooks"} == {
        key: value for key, value in kept.items() if key != "hooks"
    }
    again = path.read_bytes()
    assert "nothing to do" in done(guard.run("install", agent))
    assert path.read_bytes() == again
    done(guard.run("uninstall", agent))
    assert path.exists() == (name != "nothing")
    if path.exists():
        assert path.read_bytes() == FILES[name].encode()
    assert guard.files() == before


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("nothing", "blank")])
def test_without_a_record_only_our_entries_go(name: str, guard: Guard) -> None:
    put(settings(guard), FILES[name])
    done(guard.run("install", "claude-code"))
    shutil.rmtree(guard.state)
    done(guard.run("uninstall", "claude-code"))
    assert json_text.load(settings(guard).read_bytes().decode()) == json_text.load(FILES[name])


def test_what_others_changed_meanwhile_stays(guard: Guard) -> None:
    put(settings(guard), FILES["hooks of others"])
    done(guard.run("install", "claude-code"))
    document = json.loads(settings(guard).read_text())
    document["model"] = "new"
    document["hooks"]["PostToolUse"][1]["hooks"].append({"type": "command", "command": "second"})
    put(settings(guard), json.dumps(document))
    said = done(guard.run("uninstall", "claude-code"))
    assert "before-repeat-guard" in said
    left = json.loads(settings(guard).read_text())
    assert left["model"] == "new"
    assert [group["hooks"] for group in left["hooks"]["PostToolUse"]] == [
        [FOREIGN],
        [{"type": "command", "command": "second"}],
    ]
    assert list(left["hooks"]) == ["PostToolUse"]


def test_a_later_install_keeps_the_first_backup(guard: Guard) -> None:
    put(settings(guard), FILES["two spaces"])
    claude(guard, "2.0.60")
    done(guard.run("install", "claude-code"))
    claude(guard, "2.1.332")
    done(guard.run("install", "claude-code"))
    assert {entry.event for entry in ours(settings(guard))} == {"PostToolBatch", "UserPromptSubmit", "SessionEnd"}
    done(guard.run("uninstall", "claude-code"))
    assert settings(guard).read_text() == FILES["two spaces"]


SAFE = {"PostToolUse", "UserPromptSubmit"}
PER_CALL = SAFE | {"PostToolUseFailure", "SessionEnd"}
BATCH = {"PostToolBatch", "UserPromptSubmit", "SessionEnd"}
UNKNOWN = claude_code.BATCH_SINCE
BY_VERSION = [
    (None, [], SAFE, "no version to ask"),
    ("1.0.60", [], SAFE, "knows no SessionEnd"),
    ("1.0.85", [], SAFE | {"SessionEnd"}, "knows SessionEnd"),
    ("2.0.55", [], SAFE | {"SessionEnd"}, "the last without PostToolUseFailure"),
    ("2.0.56", [], PER_CALL, "the first with it"),
    ("2.1.100", [], PER_CALL, "still drops its file for an unknown event"),
    ("2.1.117", [], PER_CALL, "the last without PostToolBatch"),
    ("2.1.332", [], BATCH, "current"),
    ("2.1.332", ["--events", "safe"], SAFE, "as asked"),
    ("2.1.332", ["--events", "per-call"], PER_CALL, "as asked"),
    ("2.1.332", ["--scope", "local"], BATCH, "not shared"),
    ("2.1.332", ["--scope", "project"], SAFE, "others share it, and may have any version"),
    ("2.1.332", ["--scope", "project", "--events", "batch"], BATCH, "as asked"),
    (None, ["--events", "batch"], BATCH, "as asked, with a warning"),
]


@pytest.mark.parametrize(("version", "options", "events", "reason"), BY_VERSION)
def test_events_by_version(
    version: str | None, options: list[str], events: set[str], reason: str, guard: Guard, tmp_path: Path
) -> None:
    if version:
        claude(guard, version)
    project = tmp_path / "project"
    project.mkdir()
    said = done(guard.run("install", "claude-code", *options, cwd=project))
    names = {"project": ".claude/settings.json", "local": ".claude/settings.local.json"}
    path = project / names[options[1]] if "--scope" in options else settings(guard)
    assert {entry.event for entry in ours(path)} == events, reason
    assert ("not seen" in said) == (events != BATCH)
    if not version and options:
        assert "2.1.101" in said


@pytest.mark.parametrize(
    ("version", "events"), [("1.0.60", "per-call"), ("2.0.55", "per-call"), ("2.0.60", "batch"), ("2.1.110", "batch")]
)
def test_events_that_a_version_lacks_are_refused(version: str, events: str, guard: Guard) -> None:
    claude(guard, version)
    result = guard.run("install", "claude-code", "--events", events)
    assert result.code == 1
    assert version in result.err
    assert not settings(guard).exists()


def test_events_that_the_version_lacks_are_taken_out(guard: Guard) -> None:
    claude(guard, "2.1.332")
    done(guard.run("install", "claude-code"))
    claude(guard, "2.1.0")
    done(guard.run("install", "claude-code"))
    assert {entry.event for entry in ours(settings(guard))} == PER_CALL


@pytest.mark.parametrize("version", ["nonsense", "2.1.332"])
def test_a_program_without_a_version(version: str, guard: Guard) -> None:
    claude(guard, version, exit_code=1)
    done(guard.run("install", "claude-code"))
    assert {entry.event for entry in ours(settings(guard))} == SAFE


def test_a_program_that_hangs_is_not_waited_for(guard: Guard) -> None:
    claude(guard, "2.1.332")
    left = guard.home / "left"
    (guard.home / "programs/claude").write_text(f"#!/bin/sh\n(sleep 8; touch {left}) &\nsleep 60\n")
    started = time.monotonic()
    done(guard.run("install", "claude-code"))
    assert {entry.event for entry in ours(settings(guard))} == SAFE
    assert time.monotonic() - started < 15
    time.sleep(max(0.0, 8.5 - (time.monotonic() - started)))
    assert not left.exists(), "what it started is gone too"


def test_without_a_place_for_the_record_nothing_is_changed(guard: Guard) -> None:
    put(guard.state, "a file")
    result = guard.run("install", "claude-code")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert not settings(guard).exists()


OWN_FORMS = [
    ("/old/place/bin/repeat-guard post-tool-use", True, "another install path"),
    ("'/with space/bin/repeat-guard' post-tool-use", True, "quoted"),
    ('"/with space/bin/repeat-guard" post-tool-use', True, "quoted otherwise"),
    (r'"C:\Program Files\py\Scripts\repeat-guard.exe" post-tool-use', True, "Windows"),
    ("repeat-guard post-tool-use", True, "by hand"),
    ("repeat-guard  post-tool-use  2>/dev/null || true", True, "by hand, silenced"),
    ("/usr/bin/python3 -m repeat_guard_cli post-tool-use", True, "as a module"),
    (executable.on_path("post-tool-use"), True, "the form for projects"),
    ("REPEAT_GUARD_THRESHOLDS=4 repeat-guard post-tool-use", False, "a person's own: left as it is"),
    ("timeout 5 repeat-guard post-tool-use", False, "a person's own: left as it is"),
]


@pytest.mark.parametrize(("line", "updated", "reason"), OWN_FORMS)
def test_own_entries_are_recognised(line: str, updated: bool, reason: str, guard: Guard) -> None:
    old = {"matcher": "*", "hooks": [FOREIGN, {"type": "command", "command": line, "statusMessage": "mine"}]}
    put(settings(guard), json.dumps({"hooks": {"PostToolUse": [old]}}, indent=2))
    done(guard.run("install", "claude-code"))
    tool = [entry for entry in ours(settings(guard)) if entry.event == "PostToolUse"]
    assert len(tool) == 1, reason
    assert tool[0].fields["statusMessage"] == "mine"
    assert (tool[0].fields["command"] == f"{COMMAND} post-tool-use") == updated, reason
    done(guard.run("uninstall", "claude-code"))
    assert json.loads(settings(guard).read_text()) == {"hooks": {"PostToolUse": [{"matcher": "*", "hooks": [FOREIGN]}]}}


FOREIGN_FORMS = [
    "my-repeat-guard post-tool-use",
    "/opt/not-repeat-guard post-tool-use",
    "repeat-guard show",
    "repeat-guard-sync post-tool-use",
    "~/bin/log.sh",
]


@pytest.mark.parametrize("line", FOREIGN_FORMS)
def test_foreign_entries_are_not_taken_for_ours(line: str, guard: Guard) -> None:
    group = {"hooks": [{"type": "command", "command": line}]}
    put(settings(guard), json.dumps({"hooks": {"PostToolUse": [group]}}))
    done(guard.run("install", "claude-code"))
    done(guard.run("uninstall", "claude-code"))
    assert json.loads(settings(guard).read_text()) == {"hooks": {"PostToolUse": [group]}}


def test_the_form_without_a_shell_is_recognised(guard: Guard) -> None:
    entry = {"type": "command", "command": "/old/repeat-guard", "args": ["post-tool-use"], "timeout": 3}
    put(settings(guard), json.dumps({"hooks": {"PostToolUse": [{"hooks": [entry]}]}}))
    done(guard.run("install", "claude-code"))
    tool = next(entry for entry in ours(settings(guard)) if entry.event == "PostToolUse")
    assert tool.fields == {"type": "command", "command": f"{COMMAND} post-tool-use", "timeout": 10}


def test_own_entries_that_stand_twice_become_one(guard: Guard) -> None:
    entry = {"type": "command", "command": "/old/repeat-guard post-tool-use"}
    groups = [{"hooks": [entry, entry]}, {"matcher": "Bash", "hooks": [entry]}]
    put(settings(guard), json.dumps({"hooks": {"PostToolUse": groups, "PreToolUse": groups}}))
    done(guard.run("install", "claude-code"))
    assert sorted(entry.event for entry in ours(settings(guard))) == ["PostToolUse", "UserPromptSubmit"]


WRONG = [
    ('{\n  // a comment\n  "model": "opus"\n}', "not valid JSON"),
    ('{"model": "opus",}', "not valid JSON"),
    ('{"a": NaN}', "not valid JSON"),
    ("[]", "no JSON object"),
    ('{"hooks": []}', "`hooks` is no object"),
    ('{"hooks": {"PostToolUse": {}}}', "`hooks.PostToolUse` is no list"),
    ("{" + '"a":[' * 100_000, "not valid JSON"),
]


@pytest.mark.parametrize(("text", "reason"), WRONG)
def test_a_file_of_another_shape_is_left_with_a_block_to_paste(text: str, reason: str, guard: Guard) -> None:
    put(settings(guard), text)
    result = guard.run("install", "claude-code")
    assert result.code == 1
    assert reason in result.err
    assert len(result.err.splitlines()) == 1
    assert {entry.event for entry in registration.entries(json.loads(result.out))} == SAFE
    assert settings(guard).read_text() == text
    assert not guard.state.exists()


def test_a_file_that_is_not_utf8(guard: Guard) -> None:
    settings(guard).parent.mkdir()
    settings(guard).write_bytes(b'{"a": "\xff"}')
    for command in ("install", "uninstall"):
        result = guard.run(command, "claude-code")
        assert result.code == 1
        assert "UTF-8" in result.err


def test_links_are_followed_and_modes_kept(guard: Guard) -> None:
    target = guard.home / "dotfiles/claude.json"
    put(target, FILES["tabs"])
    target.chmod(0o640)
    settings(guard).parent.mkdir()
    settings(guard).symlink_to(target)
    done(guard.run("install", "claude-code"))
    assert settings(guard).is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert ours(target)
    done(guard.run("uninstall", "claude-code"))
    assert settings(guard).is_symlink()
    assert target.read_text() == FILES["tabs"]


def test_a_file_that_cannot_be_written(guard: Guard) -> None:
    settings(guard).mkdir(parents=True)
    result = guard.run("install", "claude-code")
    assert result.code == 1
    assert str(settings(guard)) in result.err
    assert len(result.err.splitlines()) == 1


def test_folders_that_the_agents_move(guard: Guard) -> None:
    moved = str(guard.home / "elsewhere")
    done(guard.run("install", "claude-code", CLAUDE_CONFIG_DIR=moved))
    assert ours(Path(moved, "settings.json"))
    done(guard.run("install", "codex", CODEX_HOME=moved))
    assert [entry.event for entry in ours(Path(moved, "hooks.json"))] == CODEX_EVENTS
    assert not settings(guard).exists()


def test_codex_says_what_trust_needs(guard: Guard) -> None:
    assert "/hooks" in done(guard.run("install", "codex"))
    timeouts = {entry.event: entry.fields["timeout"] for entry in ours(guard.home / ".codex/hooks.json")}
    assert timeouts == {"PostToolUse": 10, "UserPromptSubmit": 10, "SessionEnd": 3}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["install", "cursor"], "claude-code, codex"),
        (["uninstall", "cursor"], "claude-code, codex"),
        (["install", "codex", "--scope", "local"], "user or project"),
        (["install", "claude-code", "--scope", "global"], "user or project or local"),
        (["install", "claude-code", "--events", "all"], "batch, per-call, safe"),
        (["install", "codex", "--events", "safe"], "Claude Code"),
    ],
)
def test_mistakes_are_told(arguments: list[str], reason: str, guard: Guard) -> None:
    result = guard.run(*arguments)
    assert (result.code, result.out) == (1, "")
    assert reason in result.err


@pytest.mark.parametrize(
    ("place", "stays"),
    [
        (".cache/uv/archive-v0/ab12/bin", False),
        (".local/share/pipx/.cache/ab12/bin", False),
        (".cache/pipx/ab12/bin", False),
        (".local/share/pipx/venvs/repeat-guard-cli/bin", True),
        (".local/share/uv/tools/repeat-guard-cli/bin", True),
        ("with a space/bin", True),
    ],
)
def test_where_the_program_may_lie(place: str, stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / place / "repeat-guard"
    put(script, "")
    monkeypatch.setattr("sys.argv", [str(script)])
    if stays:
        line = executable.absolute()("session-end")
        assert str(script) in line
        assert line.endswith(" session-end")
        assert ("'" in line) == (" " in place)
    else:
        with pytest.raises(executable.GuardError, match="pipx install"):
            executable.absolute()


def test_the_form_for_projects(guard: Guard) -> None:
    """Where repeat-guard is not on PATH the hook reads its input and says nothing."""
    line = executable.on_path("post-tool-use")
    for folder, says in ((str(Path(COMMAND).parent), True), ("/nowhere", False)):
        environment = {
            **guard.environment,
            "PATH": f"{folder}:{os.defpath}",
        }
        event = (Path(__file__).parent.parent / "examples/tool-call.json").read_bytes()
        shell = ["/bin/sh", "-c", line]
        assert subprocess.run(shell, input=event, capture_output=True, env=environment, check=True).stderr == b""
        assert bool(guard.counts("example")) == says
        guard.run("reset", "--all")


def test_hooks_to_copy_are_what_install_writes() -> None:
    root = Path(__file__).parent.parent / "hooks"
    sets = {
        "claude-code.json": claude_code.SETS["safe"],
        "claude-code-2.0.56.json": claude_code.SETS["per-call"],
        f"claude-code-{claude_code.version_text(claude_code.BATCH_SINCE)}.json": claude_code.SETS["batch"],
        "codex.json": codex.REGISTRATIONS,
    }
    assert {path.name for path in root.glob("*.json")} == {*sets, "hooks.json"}
    for name, registrations in sets.items():
        wanted = registration.block(registrations, lambda command: f"repeat-guard {command}")
        assert json.loads((root / name).read_text()) == wanted, name


blanks = st.text(" \t\n", max_size=3)
texts = st.one_of(st.text(max_size=5), st.sampled_from(["hooks", "PostToolUse", "Stop"]))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
groups = st.lists(st.fixed_dictionaries({"hooks": st.lists(st.just(FOREIGN), min_size=1, max_size=2)}), max_size=2)
documents = st.builds(
    lambda others, hooks: {**others, **({} if hooks is None else {"hooks": hooks})},
    st.dictionaries(texts.filter(lambda text: text != "hooks"), values, max_size=3),
    st.none() | st.dictionaries(st.sampled_from(["PostToolUse", "UserPromptSubmit", "Stop"]), groups, max_size=3),
)


@given(
    document=documents, indent=st.sampled_from([None, 1, 2, 4, "\t"]), tight=st.booleans(), end=blanks, data=st.data()
)
def test_any_document(document: Any, indent: Any, tight: bool, end: str, data: st.DataObject) -> None:
    """What is put in can be taken out, and nothing else changes."""
    text = data.draw(blanks) + json.dumps(document, indent=indent, separators=(",", ":") if tight else None) + end
    added = registration.put_in(text, claude_code.SETS["per-call"], lambda command: f"repeat-guard {command}")
    assert {entry.event for entry in registration.entries(json_text.load(added))} == PER_CALL
    again = registration.put_in(added, claude_code.SETS["per-call"], lambda command: f"repeat-guard {command}")
    assert again == added
    left = registration.take_out(added, document)
    assert json_text.load(left) == document
    if all(json_text.load(text).get("hooks", {"x": 1}).values()) and document:
        assert left == text
