"""Where files are: the short answer of the hook path is platformdirs' own."""

import itertools
import os

import platformdirs
import pytest

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


@pytest.mark.parametrize(("xdg", "home"), list(itertools.product(VALUES, VALUES)))
def test_both_answers_are_the_same(xdg: str | None, home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("XDG_STATE_HOME", xdg), ("XDG_CONFIG_HOME", xdg), ("HOME", home)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert paths.state_dir(os.environ) == platformdirs.user_state_dir("repeat-guard", appauthor=False)
    config = platformdirs.user_config_dir("repeat-guard", appauthor=False)
    assert paths.user_config_file(os.environ) == os.path.join(config, "config.toml")


def test_the_state_can_be_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.state_dir({"REPEAT_GUARD_STATE_DIR": "/srv/x"}) == "/srv/x"
    monkeypatch.setenv("HOME", "/srv/me")
    assert paths.state_dir({"REPEAT_GUARD_STATE_DIR": "~/x"}) == "/srv/me/x"
    assert paths.state_dir({"REPEAT_GUARD_STATE_DIR": "x"}) == os.path.join(os.getcwd(), "x")
