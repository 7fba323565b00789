"""`uninstall` where things have changed since `install`."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repeat_guard_cli.agents import claude_code
from repeat_guard_cli.people import registration
from tests.support import Guard
from tests.test_install import FILES, FOREIGN, claude, done, put, settings

CODEX_FILE = ".codex/hooks.json"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_every_byte_comes_back_without_the_state_directory(agent: str, name: str, guard: Guard) -> None:
    """The README says: to delete everything, delete the directory. So it may be gone by then."""
    path = settings(guard) if agent == "claude-code" else guard.home / CODEX_FILE
    if name != "nothing":
        put(path, FILES[name])
    claude(guard, "2.0.60")
    before = guard.files()
    for version in ("2.0.60", "2.1.332"):  # the second changes what the first wrote
        claude(guard, version)
        done(guard.run("install", agent))
        shutil.rmtree(guard.state, ignore_errors=True)
    done(guard.run("uninstall", agent))
    assert guard.files() == before
    if name != "nothing":
        assert path.read_bytes() == FILES[name].encode()


def test_what_a_person_wrote_is_not_taken_for_a_file_that_install_made(guard: Guard) -> None:
    put(settings(guard), '{"hooks": {"PostToolUse": [{"hooks": [{"command": "repeat-guard post-tool-use"}]}]}}\n')
    done(guard.run("uninstall", "claude-code"))
    assert json.loads(settings(guard).read_text()) == {}


def test_without_the_state_directory_what_others_changed_stays(guard: Guard) -> None:
    put(settings(guard), FILES["two spaces"])
    done(guard.run("install", "claude-code"))
    shutil.rmtree(guard.state)
    put(settings(guard), settings(guard).read_text().replace("opus", "sonnet"))
    assert "before-repeat-guard" in done(guard.run("uninstall", "claude-code"))
    assert settings(guard).read_text() == FILES["two spaces"].replace("opus", "sonnet")


def test_the_backup_is_as_private_as_the_file(guard: Guard) -> None:
    put(settings(guard), FILES["tabs"])
    settings(guard).chmod(0o600)
    done(guard.run("install", "claude-code"))
    assert {path.stat().st_mode & 0o777 for path in Path(settings(guard).parent).iterdir()} == {0o600}
    assert len(list(settings(guard).parent.iterdir())) == 2


def spaced(value: Any, chance: random.Random, blanks: str) -> str:
    """Write JSON with blanks wherever they may stand."""

    def gap() -> str:
        return "".join(chance.choice(blanks) for _ in range(chance.choice([0, 0, 1, 1, 2, 4])))

    if isinstance(value, dict):
        members = [
            f"{gap()}{json.dumps(key)}{gap()}:{gap()}{spaced(item, chance, blanks)}{gap()}"
            for key, item in value.items()
        ]
        return f"{{{gap()}{','.join(members)}{gap()}}}"
    if isinstance(value, list):
        return f"[{gap()}{','.join(gap() + spaced(item, chance, blanks) + gap() for item in value)}{gap()}]"
    return json.dumps(value, ensure_ascii=chance.random() < 0.5)


others = st.lists(st.fixed_dictionaries({"matcher": st.just("é"), "hooks": st.just([FOREIGN, FOREIGN])}), min_size=1)
odd_documents = st.fixed_dictionaries(
    {"model": st.just("opus")},
    optional={
        "env": st.just({"A": "1", "B": [1, 2.5e3, None]}),
        "permissions": st.just({"deny": ["Bash(rm:*)"], "allow": []}),
        "hooks": st.dictionaries(st.sampled_from(["PostToolUse", "UserPromptSubmit", "Stop"]), others, min_size=1),
    },
)


@given(
    document=odd_documents,
    chance=st.randoms(use_true_random=False),
    blanks=st.sampled_from([" ", "\t \n", " \n", "\n", " \r\n\t"]),
    mark=st.sampled_from(["", "\ufeff"]),
    sets=st.tuples(*[st.sampled_from(sorted(claude_code.SETS))] * 2),
)
def test_any_spacing(document: Any, chance: random.Random, blanks: str, mark: str, sets: tuple[str, str]) -> None:
    """Without backup or record: taking out after two installs gives the text from before, whatever its spacing."""
    text = mark + spaced(document, chance, blanks)
    once = registration.put_in(text, claude_code.SETS[sets[0]], lambda command: f"'/x é/repeat-guard' {command}")
    twice = registration.put_in(once, claude_code.SETS[sets[1]], lambda command: f"/y/repeat-guard {command}")
    assert registration.take_out(once, document) == text
    assert registration.take_out(twice, document) == text
