"""`uninstall` where things have changed since `install`."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support import Guard
from tests.test_install import FILES, claude, done, put, settings

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
