"""Which settings are in force: environment, project file, user file, defaults, key by key.

Parsing TOML costs almost a start of the interpreter, so what a file held is kept beside the state until it changes.
"""

import os
import sys
import time

from repeat_guard_cli import __version__, log, paths, settings, store, wire
from repeat_guard_cli.errors import GuardError, SettingsError
from repeat_guard_cli.fingerprint import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_PROJECT_FILE_BYTES = 64 * 1024
MAX_USER_FILE_BYTES = 1024 * 1024
_SETTLED_NS = 2_000_000_000
"""A file changed within this time may change again without its time stamp showing it."""


class Source:
    """A settings file: where it is, and what it holds (`None`: there is no file)."""

    __slots__ = ("path", "values")

    def __init__(self, path: str, values: "dict[str, Any] | None") -> None:
        self.path = path
        self.values = values


def is_off(environment: "Mapping[str, str]") -> bool:
    """Tell whether `REPEAT_GUARD_OFF` switches everything off."""
    return environment.get("REPEAT_GUARD_OFF", "").strip().lower() not in ("", "0", "false", "no")


def load(environment: "Mapping[str, str]", cwd: str, state_dir: str) -> settings.Settings:
    """Return the settings in force for a hook.

    Args:
        environment: the process's variables.
        cwd: the agent's working directory, `""` if unknown.
        state_dir: the state directory, for the log and for what files held.

    Raises:
        SettingsError: a wrong variable or user file. A wrong project file is ignored and noted in the log: no
            repository must be able to break a person's agent.
    """
    chosen = settings.from_environment(environment)
    values = dict(user_source(environment, state_dir).values or {})
    try:
        values.update(project_source(environment, cwd, state_dir).values or {})
    except SettingsError as error:
        log.note(state_dir, f"ignored: {error}")
    return settings.Settings({**values, **chosen})


def user_source(environment: "Mapping[str, str]", state_dir: str) -> Source:
    """Read the user's settings file.

    Raises:
        SettingsError: it is wrong, or `REPEAT_GUARD_CONFIG` names none.
    """
    named = environment.get("REPEAT_GUARD_CONFIG")
    path = os.path.expanduser(named) if named else paths.user_config_file(environment)
    source = Source(path, _read(path, MAX_USER_FILE_BYTES, state_dir) if named or os.path.isabs(path) else None)
    if named and source.values is None:
        raise SettingsError(f"REPEAT_GUARD_CONFIG names {path}, which does not exist; create it or unset the variable")
    return source


def project_source(environment: "Mapping[str, str]", cwd: str, state_dir: str) -> Source:
    """Read the project's settings file.

    Raises:
        SettingsError: it is wrong.
    """
    directory = environment.get("CLAUDE_PROJECT_DIR") or cwd
    path = os.path.join(directory, paths.PROJECT_FILE)
    return Source(path, _read(path, MAX_PROJECT_FILE_BYTES, state_dir) if os.path.isabs(directory) else None)


def _read(path: str, limit: int, state_dir: str) -> "dict[str, Any] | None":
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise SettingsError(f"can't read {path}: {getattr(error, 'strerror', error)}") from None
    mark = [__version__, path, found.st_mtime_ns, found.st_size, found.st_ino]
    kept = os.path.join(state_dir, "settings", f"{digest(path)}.json")
    try:
        remembered = wire.loads(store.read_file(kept, 2 * limit))
        if remembered["mark"] == mark:
            return settings.validated(remembered["values"], kept)
    except (OSError, ValueError, GuardError, TypeError, KeyError, AttributeError):
        pass  # none yet, or damaged
    values = _parse(path, limit)
    if time.time_ns() - found.st_mtime_ns > _SETTLED_NS and os.path.isdir(state_dir):
        try:
            store.make_own_dir(os.path.dirname(kept))
            store.write_file(kept, wire.dumps({"mark": mark, "values": values}).encode(), kept + store.TEMPORARY_SUFFIX)
        except OSError:
            pass  # it is parsed again next time
    return values


def _parse(path: str, limit: int) -> "dict[str, Any]":
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        text = store.read_file(os.path.realpath(path), limit).decode()
        return settings.validated(tomllib.loads(text), path)
    except OSError as error:
        raise SettingsError(f"can't read {path}: {error.strerror}") from None
    except RecursionError:
        raise SettingsError(f"{path} is nested too deeply") from None
    except ValueError as error:  # not TOML, not UTF-8, not a regular file, too large
        raise SettingsError(f"{path} is wrong: {error}") from None
