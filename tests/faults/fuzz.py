"""What a fuzzer that follows the coverage makes of ordinary payloads: `python -m tests.faults.fuzz RUNS`.

It needs atheris. It ends with exit code 0 after so many inputs, or with a traceback at the first that breaks a promise.
"""

import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["repeat_guard_cli"]):
    import repeat_guard_cli

    for module in pkgutil.iter_modules(repeat_guard_cli.__path__):
        if not module.ispkg and module.name not in ("__main__", "cli"):
            importlib.import_module(f"repeat_guard_cli.{module.name}")

from tests.faults import test_input
from tests.faults.support import COMMANDS, payload_of


def main(runs: str, folder: Path) -> None:
    """Never returns: the fuzzer ends the process."""
    state, seeds, words = folder / "state", folder / "seeds", folder / "words"
    state.mkdir()
    seeds.mkdir()
    for number, command in enumerate(COMMANDS):
        (seeds / command).write_bytes(bytes([number]) + test_input.dumps(payload_of(command)))
    for number, data in enumerate(test_input.HOSTILE):
        (seeds / f"{number}").write_bytes(b"\0" + data)
    words.write_text("".join(f'"\\"{word}\\""\n' for word in (*test_input.FIELDS, *test_input.EVENTS)))
    sys.addaudithook(test_input.watch)

    def feed(data: bytes) -> None:
        command = COMMANDS[data[0] % len(COMMANDS)] if data else COMMANDS[0]
        for _ in range(2):
            test_input.respond(command, data[1:], state, {"HOME": str(folder), "REPEAT_GUARD_THRESHOLDS": "2,3,4"})

    options = [f"-runs={runs}", f"-dict={words}", f"-artifact_prefix={folder}/", "-max_len=4096"]
    atheris.Setup([sys.argv[0], *options, str(seeds)], feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(tempfile.mkdtemp(prefix="repeat-guard-fuzz-")))
