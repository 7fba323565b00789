"""Where files are. platformdirs decides; where its answer is easy it is given here without importing it.

platformdirs costs as much as one or two starts of the interpreter. A test holds both answers equal over many
environments.
"""

import os
import sys

from repeat_guard_cli.errors import GuardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

APP = "repeat-guard"
PROJECT_FILE = ".repeat-guard.toml"


def state_dir(environment: "Mapping[str, str]") -> str:
    """Return the directory for state, which need not exist yet.

    Raises:
        GuardError: there is no absolute path to it; what is relative would end up in the agent's working directory.
    """
    chosen = environment.get("REPEAT_GUARD_STATE_DIR")
    if chosen:
        try:
            return os.path.abspath(os.path.expanduser(chosen))
        except OSError:
            raise GuardError(f"REPEAT_GUARD_STATE_DIR = {chosen!r}: the working directory is gone") from None
    found = _easy_dir(environment, "XDG_STATE_HOME", ".local/state") or _asked("user_state_dir")
    if not found:
        raise GuardError("there is no home directory to keep the state in; name a directory in REPEAT_GUARD_STATE_DIR")
    return found


def user_config_file(environment: "Mapping[str, str]") -> str:
    """Return the user's settings file, which need not exist; `REPEAT_GUARD_CONFIG` is not considered.

    Returns:
        An absolute path, or a bare name where there is no home directory, and so no such file.
    """
    found = _easy_dir(environment, "XDG_CONFIG_HOME", ".config") or _asked("user_config_dir")
    return os.path.join(found, "config.toml")


def working_dir() -> str:
    """Return the working directory, `""` where it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _asked(question: str) -> str:
    """Return platformdirs' own answer where it is an absolute path, else `""`."""
    import platformdirs

    try:
        answer: str = getattr(platformdirs, question)(APP, appauthor=False)
    except RuntimeError:  # of pathlib: no variable and no list of users tells the home directory
        return ""
    return answer if os.path.isabs(answer) else ""


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
