"""The surroundings: variables, locale, hostile modules, limits, clocks, paths."""

import json
import os
import re
import resource
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.faults.support import COMMANDS, LONG, call, count, counts_again, finish, judge, payload_of, start
from tests.support import COMMAND, SESSION, Guard, tool_payload

# Variables


def reminded_after_three(guard: Guard, **environment: str | None) -> str:
    """Make three calls in an environment; `None` unsets a variable."""
    merged = {**guard.environment, **environment}
    env = {name: value for name, value in merged.items() if value is not None}
    arguments = {"command": 'grep 表\\" naïve 🙂 \ud83d'}
    reminder = ""
    for number in range(3):
        payload = tool_payload("Бash", arguments, f"toolu_{number}")
        data = (
            json.dumps(payload, ensure_ascii=False).encode(errors="surrogatepass").replace(b"\xed\xa0\xbd", b"\\ud83d")
        )
        reminder = judge(finish(start(guard, env=env), data), 0).reminder
    return reminder


LOCALES: list[dict[str, str | None]] = [
    {"LANG": None},
    {"LANG": "C", "LC_ALL": "C"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0"},
    {"LC_ALL": "no_such_LOCALE.cp932"},
    {"LC_ALL": "ja_JP.SJIS", "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp932"},
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "ascii:strict"},
    {"PYTHONIOENCODING": "cp949"},
    {"PYTHONIOENCODING": "utf-16"},
    {"PYTHONUNBUFFERED": "1"},
    {"PYTHONOPTIMIZE": "2"},
    {"PYTHONDONTWRITEBYTECODE": "1"},
    {"PYTHONDEVMODE": "1"},
    {"PYTHONWARNINGS": "error"},
    {"PYTHONINTMAXSTRDIGITS": "640"},
    {"PYTHONHASHSEED": "0"},
    {"PYTHONMALLOC": "debug"},
    {"PYTHONINSPECT": "1"},
    {"PYTHONSAFEPATH": "1"},
    {"PATH": None},
    {"PATH": ""},
    {"TZ": "Nowhere/At all"},
    {"TZ": ":/dev/zero"},
    {"TERM": None, "NO_COLOR": "1", "FORCE_COLOR": "1"},
]


@pytest.mark.parametrize("environment", LOCALES, ids=lambda e: ",".join(f"{k}={v}" for k, v in e.items()))
def test_any_locale_and_interpreter_setting(environment: dict[str, str | None], guard: Guard) -> None:
    assert '"Бash" has now been called 3 times' in reminded_after_three(guard, **environment)
    assert count(guard) == 3


def test_no_variable_at_all(guard: Guard) -> None:
    """As from `env -i`: the home directory then is the one that the system knows, and that may be the tester's own."""
    process = start(guard, env={"REPEAT_GUARD_STATE_DIR": str(guard.state)})
    judge(finish(process, call(1)), 0)
    assert count(guard) == 1


NO_USER = 54_321
AS_SOMEBODY_UNKNOWN = f"""
import os, sys
from repeat_guard_cli import hook, prompts, reminder, sweep
import select, fcntl, traceback, platformdirs.unix, pwd
os.setgroups([]), os.setgid({NO_USER}), os.setuid({NO_USER})
os._exit(hook.run(sys.argv[1]))
"""


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """Return a directory that every user may use; those of pytest are for its own user alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("home", [None, "", "relative/home", "~"])
def test_no_home_directory(home: str | None, guard: Guard, everybodys: Path) -> None:
    """A container's user that no list of users has: nothing is written to the working directory instead."""
    if home == "" and sys.version_info < (3, 11):
        pytest.skip("CPython 3.10 takes the root directory for an empty home")
    work = everybodys
    environment = {"LANG": "C.UTF-8", **({} if home is None else {"HOME": home})}
    for command in COMMANDS:
        arguments = [sys.executable, "-c", AS_SOMEBODY_UNKNOWN, command]
        process = start(guard, command, args=arguments, env=environment, cwd=work)
        result = judge(finish(process, json.dumps(payload_of(command)).encode()), 1)
        assert "REPEAT_GUARD_STATE_DIR" in result.err
        assert list(work.rglob("*")) == []
    environment["REPEAT_GUARD_STATE_DIR"] = str(work / "state")
    settings = work / "~" / ".config" / "repeat-guard" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("thresholds = 'a repository must not decide this'")
    process = start(guard, args=[sys.executable, "-c", AS_SOMEBODY_UNKNOWN, "post-tool-use"], env=environment, cwd=work)
    judge(finish(process, call(1)), 0)


@pytest.mark.parametrize("home", ["/nowhere/at/all", "/dev/null", "/proc/self", "/\udcff\udcfe"])
def test_a_home_that_is_of_no_use(home: str, guard: Guard) -> None:
    environment = {**guard.environment, "HOME": home}
    del environment["REPEAT_GUARD_STATE_DIR"]
    if home.startswith("/nowhere") or "\udcff" in home:  # root could make it
        home = f"{guard.home}/file{home}"
        (guard.home / "file").touch()
        environment["HOME"] = home
    result = judge(finish(start(guard, env=environment), call(1)), 1)
    assert "can't use the state directory" in result.err


@pytest.mark.parametrize("value", ["relative/dir", "/dev/null/x", "/proc/1/nope", "~nobody-of-that-name/x"])
def test_a_state_home_that_is_of_no_use(value: str, guard: Guard) -> None:
    environment = {**guard.environment, "XDG_STATE_HOME": value}
    del environment["REPEAT_GUARD_STATE_DIR"]
    judge(finish(start(guard, env=environment), call(1)))
    assert not (guard.home / "relative").exists(), "not in the working directory"
    assert not list(guard.home.glob("~*"))


def test_a_working_directory_that_is_gone(guard: Guard) -> None:
    guard.call()
    gone = guard.home / "gone"
    for arguments in ([COMMAND, "post-tool-use"], [COMMAND, "show"], [COMMAND, "config"]):
        gone.mkdir()
        line = ["/bin/sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *arguments]
        result = finish(start(guard, args=line, cwd=gone), call(1))
        assert result.code == 0 or (arguments[1] != "post-tool-use" and result.code == 1), result
        assert "internal error" not in result.err
    gone.mkdir()
    env = {**guard.environment, "REPEAT_GUARD_STATE_DIR": "relative"}
    line = ["/bin/sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", COMMAND, "post-tool-use"]
    judge(finish(start(guard, args=line, cwd=gone, env=env), call(1)), 1)


# Modules in the way

HOSTILE = [
    *("json", "typing", "re", "select", "fcntl", "time", "string", "traceback", "hashlib", "platformdirs", "tomllib"),
    *("tomli", "_json", "_blake2", "gc", "_signal", "collections", "typer", "rich", "orjson", "difflib", "tempfile"),
    *("hook", "payload", "store", "wire", "config", "errno", "stat", "random", "logging", "enum", "dataclasses"),
]
EVIL = "import os; os.write(2, __name__.encode() + b' is hostile\\n'); os._exit(66)\n"


def preloaded() -> set[str]:
    """Return what interpreter, site packages and the installer's script load before the program's first line."""
    imported = re.findall(r"^import (\w+)$", Path(COMMAND).read_text(), re.MULTILINE)
    code = "".join(f"import {name}; " for name in imported) + "import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return set(done.stdout.decode().split())


@pytest.mark.parametrize("path", [None, "{}", "{}/", "{}/../evil", ".", "", ":/nowhere", "/nowhere:{}"])
def test_hostile_modules(path: str | None, guard: Guard) -> None:
    """Not imported by the program; what the interpreter loads before its first line is out of its reach."""
    evil = guard.home / "evil"
    evil.mkdir()
    for name in set(HOSTILE) - preloaded():
        (evil / f"{name}.py").write_text(EVIL)
    environment = {} if path is None else {"PYTHONPATH": path.format(evil)}
    (guard.home / "config.toml").write_text("thresholds = [2]")
    environment["REPEAT_GUARD_CONFIG"] = str(guard.home / "config.toml")
    for _ in range(2):
        for command in COMMANDS:
            env = {**guard.environment, **environment}
            result = judge(finish(start(guard, command, env=env, cwd=evil), json.dumps(payload_of(command)).encode()))
            assert result.code == 0
    env["XDG_CONFIG_HOME"] = "~/relative"  # platformdirs is asked
    del env["REPEAT_GUARD_CONFIG"]
    judge(finish(start(guard, env=env, cwd=evil), call(1)), 0)
    judge(finish(start(guard, env=env, cwd=evil), b"["), 1)
    for arguments in (["show"], ["config"], ["--help"], ["reset", "--all"]) if LONG else (["show"],):
        result = guard.run(*arguments, cwd=evil, **environment)
        assert (result.code, result.err) == (0, ""), arguments


# Limits


def test_sixteen_open_files(guard: Guard) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))

    for number in range(3):
        result = judge(finish(start(guard, preexec_fn=few), call(number)), 0)
    assert result.reminder
    for command in ("user-prompt-submit", "session-end"):
        judge(finish(start(guard, command, preexec_fn=few), json.dumps(payload_of(command)).encode()), 0)


@pytest.mark.parametrize("files", range(3, 10))
def test_hardly_an_open_file(files: int, guard: Guard) -> None:
    """What can't be opened is told in one line; where the interpreter itself can't start, it says so its own way."""
    guard.call()
    limit = (files, files)
    result = finish(start(guard, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit)), call(1))
    if "repeat-guard: " in result.err or result.code == 0:
        judge(result)
    assert result.code in (0, 1, 127)
    assert result.out == ""
    counts_again(guard)


@pytest.mark.parametrize("megabytes", [96, 128, 200])
def test_little_memory(megabytes: int, guard: Guard) -> None:
    guard.call()
    limit = megabytes << 20
    data = call(1, tool_response="x" * 60_000_000)
    result = finish(start(guard, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))), data)
    assert (result.code, result.out) in ((0, ""), (1, "")), result
    assert result.err.count("\n") == result.code
    assert count(guard) == 2 - result.code
    counts_again(guard)


@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o027])
def test_permissions_whatever_the_umask(mask: int, guard: Guard) -> None:
    config = guard.home / "config.toml"
    config.write_text("thresholds = [2]")
    os.utime(config, (1_700_000_000, 1_700_000_000))
    (guard.home / ".repeat-guard.toml").write_text("wrong")
    guard.environment |= {"REPEAT_GUARD_CONFIG": str(config), "REPEAT_GUARD_STATE_DIR": str(guard.home / "a/b/state")}
    for command in ("post-tool-use", "post-tool-use", "user-prompt-submit"):
        payload = {**payload_of(command), "cwd": str(guard.home)}
        judge(finish(start(guard, command, umask=mask), json.dumps(payload).encode()), 0)
    made = [guard.home / "a", *(guard.home / "a").rglob("*")]
    names = {path.name for path in made}
    assert names >= {"b", "state", "sessions", "settings", "swept", "repeat-guard.log", f"{SESSION}.json"}
    for path in made:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize(
    "name", ["with space", "naïve 表 🙂", "new\nline", "-rf", "%s{}$HOME`id`", b"\xff\xfe bytes", "x" * 200]
)
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_a_path_of_any_letters(name: str | bytes, locale: str, guard: Guard) -> None:
    guard.home = guard.home / (os.fsdecode(name) if isinstance(name, bytes) else name)
    guard.home.mkdir()
    guard.state = guard.home / "state" / guard.home.name
    environment = {"HOME": str(guard.home), "REPEAT_GUARD_STATE_DIR": str(guard.state), "LC_ALL": locale}
    guard.environment |= {**environment, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    config = guard.home / ".config/repeat-guard/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("thresholds = [2]")
    os.utime(config, (1_700_000_000, 1_700_000_000))
    assert [bool(guard.call(cwd=str(guard.home)).reminder) for _ in range(3)] == [False, True, False]
    config.write_text("wrong")
    judge(finish(start(guard), call(1)), 1)
    for arguments in (["show"], ["config"]) if LONG else (["config"],):
        result = guard.run(*arguments)
        assert (result.code, result.err.count("\n")) == (1, 1), result


# Clocks

DAY = 86_400.0


def test_clocks_that_disagree(guard: Guard) -> None:
    """Another host's clock, or this one set back and forth: states written in the future and long ago count on."""
    path = guard.state / "sessions" / f"{SESSION}.json"
    guard.call()
    expected = 1
    for offset in (-4000 * DAY, -DAY, -3600.0, 3600.0, DAY, 400 * DAY, 20_000 * DAY):
        state = json.loads(path.read_bytes())
        then = max(0.0, time.time() + offset)
        agent = state["agents"][""]
        state["updated_at"] = agent["chain"]["updated_at"] = then
        for reports in agent["recent"].values():
            reports[1::2] = [int(then * 1000) for _ in reports[1::2]]
        path.write_text(json.dumps(state))
        for file in path.parent.iterdir():
            os.utime(file, (then, then))
        guard.call()
        guard.prompt(source="system")
        expected += 1
        assert count(guard) == expected
        for arguments in (["show"], ["show", "--json"], ["show", SESSION]) if LONG else (["show"],):
            assert guard.run(*arguments).code == 0
        assert sorted(p.name for p in path.parent.iterdir()) == [f"{SESSION}.json", f"{SESSION}.lock"]


def test_a_sweep_dated_in_the_future(guard: Guard) -> None:
    guard.call()
    guard.prompt()
    os.utime(guard.state / "swept", (4e9, 4e9))
    old = guard.state / "sessions" / "old.json"
    old.write_bytes((guard.state / "sessions" / f"{SESSION}.json").read_bytes())
    os.utime(old, (1.0, 1.0))
    guard.prompt()
    assert not old.exists()


FAKE_CLOCK = """
import sys, time
shift = float(sys.argv.pop(1))
now = time.time
time.time = lambda: now() + shift
time.time_ns = lambda: int((now() + shift) * 1e9)
from repeat_guard_cli.__main__ import main
main()
"""


def test_a_clock_set_back_and_forth_between_calls(guard: Guard) -> None:
    """The process's own clock, from 1970 to 2100."""

    def at(shift: float, number: int, **fields: Any) -> None:
        arguments = [sys.executable, "-c", FAKE_CLOCK, str(shift), "post-tool-use"]
        judge(finish(start(guard, args=arguments), call(number, **fields)), 0)

    shifts = [0.0, 400 * DAY, -400 * DAY, 27_000 * DAY, -time.time() + 1, 0.0, -3600.0, 3600.0]
    for number, shift in enumerate(shifts, 1):
        at(shift, number)
        assert count(guard) == number
    at(0.0, 100)
    at(0.5, 100)
    assert count(guard) == len(shifts) + 1, "the same report within 2 s"
    at(-60.0, 100)
    assert count(guard) == len(shifts) + 2, "beyond 2 s, in whichever direction"


def test_this_suite_runs_the_installed_program() -> None:
    assert Path(COMMAND).is_absolute()
    assert ROOT.joinpath("pyproject.toml").exists()
