"""Where files are: the short answer of the hook path is platformdirs' own."""

import itertools
import os
import sys

import platformdirs
import pytest
from platformdirs.api import PlatformDirsABC
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from repeat_guard_cli import paths

VALUES = [
    None,
    "",
    " ",
    "/srv/me",
    "/srv/me/",
    "/srv//me",
    " /srv/me",
    "/srv/me ",
    "relative/dir",
    "~",
    "~/state",
    "~nobody-here/state",
    "/srv/$HOME",
    "/srv/${HOME}/x",
    "/srv/a b",
    "/srv/é",
    "/",
    ".",
    "/srv/../me",
    "/srv/\udc80",
]


@pytest.fixture(params=list(itertools.product(VALUES, VALUES)), ids=lambda pair: "XDG={!a},HOME={!a}".format(*pair))
def _variables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    xdg, home = request.param
    for name, value in (("XDG_STATE_HOME", xdg), ("XDG_CONFIG_HOME", xdg), ("HOME", home)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("_variables")
@pytest.mark.parametrize(("platform", "answers"), [("linux", Unix), ("darwin", MacOS)])
def test_both_answers_are_the_same(
    platform: str, answers: type[PlatformDirsABC], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(platformdirs, "PlatformDirs", answers)
    state = answers("repeat-guard", appauthor=False).user_state_dir
    config = answers("repeat-guard", appauthor=False).user_config_dir
    if os.path.isabs(state):
        assert paths.state_dir(os.environ) == state
    else:  # platformdirs below 4.3 leaves a home as it is; relative to the agent's working directory it is none
        with pytest.raises(paths.GuardError, match="REPEAT_GUARD_STATE_DIR"):
            paths.state_dir(os.environ)
    expected = os.path.join(config, "config.toml") if os.path.isabs(config) else "config.toml"
    assert paths.user_config_file(os.environ) == expected


def test_the_state_can_be_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.state_dir({"REPEAT_GUARD_STATE_DIR": "/srv/x"}) == "/srv/x"
    monkeypatch.setenv("HOME", "/srv/me")
    assert paths.state_dir({"REPEAT_GUARD_STATE_DIR": "~/x"}) == "/srv/me/x"
    assert paths.state_dir({"REPEAT_GUARD_STATE_DIR": "x"}) == os.path.join(os.getcwd(), "x")
