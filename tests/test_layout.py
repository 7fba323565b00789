"""Which module may know which: the pure core knows no I/O, and a hook loads nothing that is for people."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import repeat_guard_cli
from tests.support import COMMAND

PACKAGE = Path(repeat_guard_cli.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
PURE = ("errors", "fingerprint", "guard", "model", "patterns", "payload", "prompts", "reminder", "settings", "wire")
"""No I/O, no clock, no environment."""
HOOK_PATH = (*PURE, "__main__", "config", "hook", "log", "paths", "store", "sweep")
IMPURE = {"os", "io", "time", "datetime", "random", "pathlib", "subprocess", "socket", "tempfile", "shutil"}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def ours(names: set[str]) -> set[str]:
    """Return the modules of the package's own top folder among imported names; `cli` and `people` for those."""
    return {name.split(".")[1] for name in names if name.startswith("repeat_guard_cli.")} - {"__version__"}


@pytest.mark.parametrize("name", PURE)
def test_the_core_is_pure(name: str) -> None:
    names = imports(PACKAGE / f"{name}.py")
    assert not names & IMPURE
    known = {path.stem for path in PACKAGE.iterdir()}
    assert ours(names) & known <= set(PURE)


@pytest.mark.parametrize("name", [name for name in HOOK_PATH if name != "__main__"])
def test_a_hook_loads_nothing_for_people(name: str) -> None:
    names = imports(PACKAGE / f"{name}.py")
    known = {path.stem for path in PACKAGE.iterdir()}
    assert ours(names) & known <= set(HOOK_PATH)
    assert not {name.split(".")[0] for name in names} & {"typer", "rich", "orjson"}


def test_every_module_says_what_it_is() -> None:
    for path in MODULES:
        assert ast.get_docstring(ast.parse(path.read_text())), path


def test_what_is_installed_is_what_is_tested() -> None:
    python = Path(COMMAND).parent / Path(sys.executable).name
    code = "import repeat_guard_cli; print(repeat_guard_cli.__file__)"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == Path(repeat_guard_cli.__file__)
