"""The command line that agents are to run, and the agents' own programs."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from repeat_guard_cli.agents import Agent, Version
from repeat_guard_cli.errors import GuardError

VERSION_SECONDS = 5.0
ON_PATH = "command -v repeat-guard"
"""What tells a command line that looks for the program on PATH."""
_THROW_AWAY = re.compile(
    r"[/\\](?:archive-v\d+|builds-v\d+|environments-v\d+)[/\\]|[/\\]pipx[/\\]\.cache[/\\]|\.cache[/\\]pipx[/\\]"
)
"""Where `uvx` and `pipx run` put what they will delete again."""


def absolute() -> Callable[[str], str]:
    """Return what makes the command line of a hook command from this installation's console script.

    Raises:
        GuardError: there is no such script, or it will not stay.
    """
    path = _console_script()
    for place in {str(path), str(path.resolve())}:
        cache = os.environ.get("UV_CACHE_DIR")
        if _THROW_AWAY.search(place) or (cache and place.startswith(os.path.join(cache, ""))):
            raise GuardError(
                f"{place} is in a cache that is cleared some day, and the hooks would be gone without a word; "
                "install it to stay first, with `pipx install` or `uv tool install`"
            )
    quoted = f'"{path}"' if os.name == "nt" else shlex.quote(str(path))
    return lambda command: f"{quoted} {command}"


def on_path(command: str) -> str:
    """Return a command line for files that others share: it does nothing where repeat-guard isn't on PATH."""
    return f"sh -c '{ON_PATH} >/dev/null 2>&1 && exec repeat-guard {command}; cat >/dev/null'"


def _console_script() -> Path:
    started = Path(sys.argv[0])
    if started.stem == "repeat-guard" and os.sep in sys.argv[0] and started.is_file():
        return started.absolute()  # not resolved: pipx and uv keep the link when they update what it leads to
    names = ("repeat-guard.exe", "repeat-guard") if os.name == "nt" else ("repeat-guard",)
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        for name in names:
            if (folder / name).is_file():
                return (folder / name).absolute()
    raise GuardError("the console script repeat-guard is not installed; install the package with pip, pipx or uv")


def version(agent: Agent) -> Version | None:
    """Ask an agent's program on PATH for its version; `None` where there is none, or none that can be understood."""
    program = shutil.which(agent.PROGRAM)
    if program is None:
        return None
    try:
        process = subprocess.Popen(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    with process:
        try:
            said, _ = process.communicate(timeout=VERSION_SECONDS)
        except subprocess.TimeoutExpired:
            _end(process)
            return None
    found = re.search(rb"(\d+)\.(\d+)\.(\d+)", said)
    return tuple(int(part) for part in found.groups()) if found and not process.returncode else None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and what it started: the program may be a script around the real one."""
    if os.name == "nt":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
