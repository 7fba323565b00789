"""Style and types, with the same tools and settings everywhere."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["ruff", "check"], id="lint"),
        pytest.param(["ruff", "format", "--check"], id="format"),
        pytest.param(["mypy"], id="types"),
    ],
)
def test_clean(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
