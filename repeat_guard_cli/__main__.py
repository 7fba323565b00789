"""Two doors: a fast one for the agents' hook commands, and the Typer application for everything else."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

HOOK_COMMANDS = ("post-tool-use", "user-prompt-submit", "session-end")


def main() -> "NoReturn":
    """Run the command line in `sys.argv` and end the process."""
    if len(sys.argv) == 2 and sys.argv[1] in HOOK_COMMANDS:
        import _signal  # type: ignore[import-not-found]  # loaded already; `signal` would import `enum`

        # Ctrl-C in the agent's terminal reaches its hooks too. They end by themselves; a traceback would be a failure.
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
        _standard_library_first()
        import gc

        from repeat_guard_cli.hook import run

        gc.disable()  # one event makes no cycles worth finding; a large one makes many objects
        # All output is written. Tearing the interpreter down would only free memory, for a fifth of the process's time.
        os._exit(run(sys.argv[1]))
    _standard_library_first()
    from repeat_guard_cli.cli import main as people_main

    sys.exit(people_main(sys.argv[1:]))


def _standard_library_first() -> None:
    """Look for modules in the script's folder and in PYTHONPATH last, so that no `json.py` there is ours."""
    suspects = sys.path[:1] if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False) else []
    if not sys.flags.ignore_environment and os.environ.get("PYTHONPATH"):
        for path in os.environ["PYTHONPATH"].split(os.pathsep):
            try:
                suspects += [path, os.path.abspath(path)]  # `site` makes them absolute
            except OSError:
                pass  # relative to a working directory that is gone
    suspects = [path for path in sys.path if path in suspects]
    sys.path[:] = [path for path in sys.path if path not in suspects] + suspects


if __name__ == "__main__":
    main()
