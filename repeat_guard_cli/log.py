"""The log: what hook commands can't say to anyone else. Never more than two files of `MAX_BYTES`."""

import os
import time

from repeat_guard_cli import paths

MAX_BYTES = 128 * 1024


def note(state_dir: str, text: str) -> None:
    """Append an entry to the log; whatever goes wrong, nothing happens."""
    path = paths.log_file(state_dir)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        file = os.open(path, flags, 0o600)
        try:
            if os.fstat(file).st_size > MAX_BYTES:
                os.replace(path, path + ".1")
            os.write(file, f"{stamp} {text[:8000]}\n".encode(errors="backslashreplace"))
        finally:
            os.close(file)
    except OSError:
        pass
