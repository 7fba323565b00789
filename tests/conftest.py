import signal
import sys
from pathlib import Path

import pytest

# pytest puts the checkout first, again and again; what is tested is the installed package, so it is imported before.
ROOT = Path(__file__).resolve().parent.parent
sys.path.sort(key=lambda path: Path(path or ".").resolve() == ROOT)

import repeat_guard_cli  # noqa: E402, F401
from tests.support import Guard  # noqa: E402

# What a shell starts in the background ignores interrupts, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_real_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test does in this process, it doesn't reach the home directory of whoever runs it."""
    home = tmp_path_factory.mktemp("no-home")
    for name in ("HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA"):
        monkeypatch.setenv(name, str(home))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("STATE_DIR", "CONFIG", "OFF", "THRESHOLDS", "INCLUDE", "EXCLUDE"):
        monkeypatch.delenv(f"REPEAT_GUARD_{name}", raising=False)


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    return Guard(tmp_path)
