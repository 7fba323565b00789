"""Two sizes of one suite: short within the normal run, long with `python -m tests.faults --long`."""

import os
from collections.abc import Callable

import pytest

from tests.faults.support import LONG

FIGURES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = []


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Note a figure; the long form prints them all at its end."""
    return lambda text: request.config.stash[FIGURES].append(f"{request.node.name}: {text}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if LONG and config.stash[FIGURES]:
        terminalreporter.section(f"figures, on {os.cpu_count()} cores")
        for line in config.stash[FIGURES]:
            terminalreporter.line(line)
