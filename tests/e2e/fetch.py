"""`python -m tests.e2e.fetch FOLDER`: puts the real agents into a folder, in the versions that are tested, with npm."""

import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

MACHINE = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
PLATFORM = f"{sys.platform}-{MACHINE}"


class Program(NamedTuple):
    """A real agent.

    Attributes:
        package: what npm calls it, with its version.
        path: the program in the package; one in JavaScript is run with node.
    """

    package: str
    path: str


def _native(version: str) -> Program:
    return Program(f"@anthropic-ai/claude-code-{PLATFORM}@{version}", "claude")


PROGRAMS = {
    "claude-2.1.332": _native("2.1.332"),
    "claude-2.1.118": _native("2.1.118"),  # the first with PostToolBatch
    "claude-2.1.100": Program("@anthropic-ai/claude-code@2.1.100", "cli.js"),  # the last that drops its settings
    "codex-0.171.0": Program(f"@openai/codex@0.171.0-{PLATFORM}", "vendor/*/bin/codex"),
}


def command(folder: Path, name: str) -> list[str] | None:
    """Return the command line that starts a program, `None` where it was not fetched."""
    found = sorted((folder / name / "package").glob(PROGRAMS[name].path))
    if not found:
        return None
    return ["node", str(found[0])] if found[0].suffix == ".js" else [str(found[0])]


def fetch(folder: Path, name: str) -> None:
    """Fetch a program, unless it is there.

    Raises:
        subprocess.CalledProcessError: npm can't reach its registry, or there is no such package for this machine.
    """
    if command(folder, name):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        pack = ["npm", "pack", "--silent", PROGRAMS[name].package, "--pack-destination", scratch]
        subprocess.run(pack, check=True, stdin=subprocess.DEVNULL)
        unpacked = Path(scratch, "unpacked")
        unpacked.mkdir()
        subprocess.run(["tar", "-xzf", next(Path(scratch).glob("*.tgz")), "-C", unpacked], check=True)
        unpacked.rename(folder / name)


def main() -> None:
    """Fetch them all."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.e2e.fetch FOLDER")
    for name in PROGRAMS:
        try:
            fetch(Path(sys.argv[1]), name)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"can't fetch {name}: {error}. npm and its registry are needed for the end-to-end tests")
        print(f"{name}: {' '.join(command(Path(sys.argv[1]), name) or ['is not in its package'])}")


if __name__ == "__main__":
    main()
