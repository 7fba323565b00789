"""Where files are. platformdirs decides; where its answer is easy it is given here without importing it.

platformdirs costs as much as one or two starts of the interpreter. A test holds both answers equal over many
environments.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

APP = "repeat-guard"
PROJECT_FILE = ".repeat-guard.toml"


def state_dir(environment: "Mapping[str, str]") -> str:
    """Return the directory for state, which need not exist yet."""
    chosen = environment.get("REPEAT_GUARD_STATE_DIR")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    easy = _easy_dir(environment, "XDG_STATE_HOME", ".local/state")
    if easy:
        return easy
    import platformdirs

    return platformdirs.user_state_dir(APP, appauthor=False)


def user_config_file(environment: "Mapping[str, str]") -> str:
    """Return the user's settings file, which need not exist; `REPEAT_GUARD_CONFIG` is not considered."""
    easy = _easy_dir(environment, "XDG_CONFIG_HOME", ".config")
    if not easy:
        import platformdirs

        easy = platformdirs.user_config_dir(APP, appauthor=False)
    return os.path.join(easy, "config.toml")


def _easy_dir(environment: "Mapping[str, str]", variable: str, default: str) -> str | None:
    """Return platformdirs' answer on Linux and macOS where the variables are plain absolute paths, else `None`."""
    base, home = environment.get(variable, ""), environment.get("HOME", "")
    if sys.platform == "darwin":
        # Whether XDG variables count there depends on the version of platformdirs.
        base = f"{home}/Library/Application Support" if not base and _is_plain(home) else ""
    elif sys.platform != "linux" or "ANDROID_DATA" in environment or hasattr(sys, "getandroidapilevel"):
        return None
    elif not base and _is_plain(home):
        base = f"{home}/{default}"
    return f"{base}/{APP}" if _is_plain(base) else None


def _is_plain(path: str) -> bool:
    return (
        path.startswith("/") and path == path.strip() and not path.endswith("/") and "~" not in path and "$" not in path
    )


def sessions_dir(state: str) -> str:
    """Return the directory of the session files in a state directory."""
    return os.path.join(state, "sessions")


def log_file(state: str) -> str:
    """Return the log in a state directory."""
    return os.path.join(state, "repeat-guard.log")
