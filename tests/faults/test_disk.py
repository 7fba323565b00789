"""What is wrong on the disk: full, read-only, another's, damaged, or with something else in a file's place."""

import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from repeat_guard_cli import model, store
from repeat_guard_cli.config import MAX_USER_FILE_BYTES
from tests.faults.support import COMMANDS, LONG, below, call, count, counts_again, finish, judge, payload_of, start
from tests.support import SESSION, Guard, Result

NOBODY = 65_534
root_only = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can do this")


def mount(target: Path, *arguments: str) -> None:
    done = subprocess.run(["mount", *arguments, str(target)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine permits no mount: {done.stderr.strip()}")


@pytest.fixture
def small_disk(guard: Guard) -> Iterator[Guard]:
    """A state directory on a file system of 64 KB."""
    guard.state.mkdir()
    mount(guard.state, "-t", "tmpfs", "-o", "size=64k,nr_inodes=40,mode=700", "tmpfs")
    yield guard
    subprocess.run(["umount", str(guard.state)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 512)
        except OSError:
            pass


def hook(guard: Guard, command: str = "post-tool-use", **options: Any) -> Result:
    return judge(finish(start(guard, command, **options), json.dumps(payload_of(command)).encode()))


# Space


@root_only
def test_a_full_disk(small_disk: Guard) -> None:
    guard = small_disk
    guard.call()
    fill(guard.state / "ballast")
    before = below(guard.state)
    for session in (SESSION, "another"):
        result = judge(guard.hook("post-tool-use", call(1, session_id=session)), 1)
        assert "No space left on device" in result.err
        assert str(guard.state) in result.err
    assert count(guard) == 1
    assert [n for n in below(guard.state) if n not in before and ".log" not in n] == ["sessions/another.lock"]
    hook(guard, "user-prompt-submit")
    (guard.state / "ballast").unlink()
    counts_again(guard)
    fill(guard.state / "ballast")
    assert hook(guard, "session-end").code == 0, "forgetting needs no space"


@root_only
def test_no_inode_left(small_disk: Guard) -> None:
    guard = small_disk
    guard.call()
    for number in range(40):
        try:
            (guard.state / f"ballast-{number}").touch()
        except OSError:
            break
    assert "No space left" in judge(guard.hook("post-tool-use", call(1)), 1).err
    for path in guard.state.glob("ballast-*"):
        path.unlink()
    counts_again(guard)


@pytest.mark.parametrize("limit", [0, 1, 100])
def test_a_limit_on_the_size_of_files(limit: int, guard: Guard) -> None:
    guard.call()
    before = below(guard.state)
    result = hook(guard, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert result.code == 1
    assert "File too large" in result.err
    assert count(guard) == 1
    assert [name for name in below(guard.state) if name != "repeat-guard.log"] == before
    counts_again(guard)


# Permission


@pytest.mark.parametrize("existing", ["nothing", "state", "session"])
def test_a_read_only_directory(existing: str, guard: Guard) -> None:
    guard.state.mkdir(mode=0o700)
    if existing == "state":
        guard.call(session_id="other")
    elif existing == "session":
        guard.call()
    is_root = os.geteuid() == 0  # whom permission bits don't bind
    if is_root:
        mount(guard.state, "--bind", str(guard.state))
        subprocess.run(["mount", "-o", "remount,ro,bind", str(guard.state)], check=True)
    else:
        for path in [*guard.state.rglob("*"), guard.state]:
            path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        for command in COMMANDS:
            result = hook(guard, command)
            if command == "post-tool-use" or existing == "session":
                assert result.code == 1
                assert str(guard.state) in result.err
                assert "Read-only" in result.err or "Permission denied" in result.err
        assert guard.run("show").code == 0
    finally:
        if is_root:
            subprocess.run(["umount", str(guard.state)], check=True)
        else:
            guard.state.chmod(0o700)
            for path in guard.state.rglob("*"):
                path.chmod(0o700 if path.is_dir() else 0o600)
    counts_again(guard)


AS_NOBODY = f"""
import os, sys
from repeat_guard_cli import hook, prompts, reminder, sweep  # another user may not reach the interpreter's files
import select, fcntl, traceback
os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
os._exit(hook.run(sys.argv[1]))
"""


@root_only
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
def test_a_directory_of_another_owner(mode: int, guard: Guard) -> None:
    """Root's, found by another user: what permission bits forbid fails, what they permit works."""
    for path in [guard.home, *guard.home.parents][:4]:
        if path.owner() == "root" and path != Path("/tmp"):
            path.chmod(path.stat().st_mode | 0o011)
    guard.state.mkdir()
    guard.state.chmod(mode)
    for command in COMMANDS:
        process = start(guard, command, args=[sys.executable, "-c", AS_NOBODY, command])
        result = judge(finish(process, json.dumps(payload_of(command)).encode()))
        if command == "post-tool-use":
            assert result.code == (0 if mode == 0o777 else 1), result
            assert mode == 0o777 or "Permission denied" in result.err
    guard.state.chmod(0o700)
    counts_again(guard)


@root_only
def test_a_directory_that_belongs_to_nobody(guard: Guard) -> None:
    guard.call()
    for path in [guard.state, *guard.state.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    counts_again(guard)


# Something else in its place


def a_directory(path: Path, _outside: Path) -> None:
    path.mkdir()
    (path / "inside").touch()


def a_pipe(path: Path, _outside: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path, _outside: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is at most 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def a_link_to_a_file(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "file")


def a_link_to_nothing(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "new")


def a_link_to_a_directory(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def a_link_to_a_device(path: Path, _outside: Path) -> None:
    path.symlink_to("/dev/zero")


def a_link_to_itself(path: Path, _outside: Path) -> None:
    path.symlink_to(path.name)


PLANTED = [
    a_directory,
    a_pipe,
    a_socket,
    a_link_to_a_file,
    a_link_to_nothing,
    a_link_to_a_directory,
    a_link_to_a_device,
    a_link_to_itself,
]
PLACES = [
    f"sessions/{SESSION}.json",
    f"sessions/{SESSION}.lock",
    f"sessions/{SESSION}.tmp",
    "repeat-guard.log",
    "swept",
    "swept.tmp",
    "sessions",
    "settings",
]


@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.parametrize("place", PLACES)
def test_something_else_in_a_files_place(place: str, plant: Callable[[Path, Path], None], guard: Guard) -> None:
    """Links are not followed out of the directory; what is outside stays as it is."""
    outside = guard.home / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"precious")
    for name in ("old.json", "old.lock", "old.tmp", "notes.txt"):
        (outside / name).write_bytes(b"precious")
    for path in outside.iterdir():
        os.utime(path, (1.0, 1.0))
    os.utime(outside, (1.0, 1.0))
    before = {path.name: path.stat() for path in outside.iterdir()}
    config = guard.home / "config.toml"
    config.write_text("thresholds = [1000]")
    os.utime(config, (1_700_000_000, 1_700_000_000))
    guard.environment["REPEAT_GUARD_CONFIG"] = str(config)
    guard.call()
    path = guard.state / place
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    plant(path, outside)
    for command in COMMANDS:
        hook(guard, command)
    people = (["show"], ["show", "--json"], ["config"], ["reset", "--all"])
    for arguments in people if LONG else people[3:]:
        result = guard.run(*arguments)
        assert result.code in (0, 1)
        assert all(line.startswith("repeat-guard: ") for line in result.err.splitlines())
        assert "internal error" not in result.err
    after = {path.name: path.stat() for path in outside.iterdir()}
    assert {name: (s.st_mtime, s.st_size, s.st_ino, s.st_mode) for name, s in after.items()} == {
        name: (s.st_mtime, s.st_size, s.st_ino, s.st_mode) for name, s in before.items()
    }
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    counts_again(guard)


@pytest.mark.parametrize("place", ["state", "state/sessions", "above"])
def test_a_file_where_a_directory_should_be(place: str, guard: Guard) -> None:
    if place == "above":
        guard.environment["REPEAT_GUARD_STATE_DIR"] = str(guard.home / "above" / "state")
    path = guard.home / place
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"precious")
    for command in COMMANDS:
        result = hook(guard, command)
        if command == "post-tool-use":
            assert result.code == 1
            assert "REPEAT_GUARD_STATE_DIR" in result.err
    assert path.read_bytes() == b"precious"
    path.unlink()
    guard.call()


def test_the_state_directory_may_be_a_link(guard: Guard) -> None:
    """It is the person's to place; only what is inside is the program's."""
    elsewhere = guard.home / "big disk"
    elsewhere.mkdir()
    guard.state.symlink_to(elsewhere)
    counts_again(guard)
    assert (elsewhere / "sessions" / f"{SESSION}.json").exists()


# Damaged files


def healthy_state(guard: Guard) -> bytes:
    guard.call(agent_id="a")
    guard.call()
    guard.call()
    return (guard.state / "sessions" / f"{SESSION}.json").read_bytes()


def test_a_state_cut_at_every_length(guard: Guard) -> None:
    """Each is a fresh chain and a line in the log; through the process at some lengths, in the long form at each."""
    data = healthy_state(guard)
    path = guard.state / "sessions" / f"{SESSION}.json"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        assert store.SessionFile(str(guard.state), SESSION, 1).load().agents == {}, length
    for length in range(0, len(data), 1 if LONG else 101):
        path.write_bytes(data[:length])
        guard.call()
        assert count(guard) == 1
    log = sum(path.stat().st_size for path in guard.state.glob("repeat-guard.log*"))
    assert 0 < log <= 2 * 128 * 1024
    counts_again(guard)


def test_a_state_with_any_byte_changed(guard: Guard) -> None:
    data = healthy_state(guard)
    path = guard.state / "sessions" / f"{SESSION}.json"
    chance = random.Random(1)
    for number in range(2_000 if LONG else 30):
        changed = bytearray(data)
        for _ in range(chance.choice([1, 1, 1, 20])):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        path.write_bytes(changed)
        judge(guard.hook("post-tool-use", call(number)), 0)
        assert guard.run("show").code == 0 if LONG and number % 20 == 0 else True
    path.write_bytes(chance.randbytes(5_000))
    counts_again(guard)


def test_a_state_of_50_mb(guard: Guard) -> None:
    healthy_state(guard)
    path = guard.state / "sessions" / f"{SESSION}.json"
    for content in (b"\0" * 50_000_000, b" " * 50_000_000, b'"' + b"x" * 50_000_000 + b'"'):
        path.write_bytes(content)
        counts_again(guard)
        assert path.stat().st_size < 10_000


WHOLE = {"version": 1, "session_id": SESSION, "updated_at": 1.0}
CHAIN = {"tool_name": "Bash", "key": "k", "count": 2, "preview": "{}", "updated_at": 1.0}
STRANGE = {
    "a time beyond all doubles": {**WHOLE, "updated_at": 10**400, "agents": {}},
    "an infinite time": json.dumps({**WHOLE, "agents": {}}).replace("1.0", "1e400"),
    "a chain's time infinite": json.dumps(
        {**WHOLE, "updated_at": 1, "agents": {"": {"chain": CHAIN, "recent": {}, "prompt_id": ""}}}
    ).replace("1.0", "-1e999"),
    "a time that no calendar has": {
        **WHOLE,
        "updated_at": 1e300,
        "agents": {"": {"chain": {**CHAIN, "updated_at": -1e300}, "recent": {}, "prompt_id": ""}},
    },
    "an unknown field that is infinite": json.dumps({**WHOLE, "agents": {}, "later": 0.5}).replace("0.5", "1e400"),
    "a count of 5,000 digits": json.dumps(
        {**WHOLE, "agents": {"": {"chain": CHAIN, "recent": {}, "prompt_id": ""}}}
    ).replace('"count": 2', '"count": ' + "9" * 5_000),
    "a negative count": {
        **WHOLE,
        "agents": {"": {"chain": {**CHAIN, "count": -5}, "recent": {}, "prompt_id": ""}},
    },
    "a time of 5,000 digits": json.dumps({**WHOLE, "agents": {}}).replace("1.0", "9" * 5_000),
    "a preview of 200 KB": {
        **WHOLE,
        "agents": {"": {"chain": {**CHAIN, "preview": "x" * 200_000}, "recent": {}, "prompt_id": ""}},
    },
    "a prompt's id of 200 KB": {**WHOLE, "agents": {"": {"chain": None, "recent": {}, "prompt_id": "x" * 200_000}}},
    "reports of strange events": json.dumps(
        {**WHOLE, "agents": {"": {"chain": None, "recent": {"a": [0.5, 1]}, "prompt_id": ""}}}
    ).replace("0.5", "1e400"),
    "a report of 200 KB": {
        **WHOLE,
        "agents": {"": {"chain": None, "recent": {"a": ["x" * 200_000, 1]}, "prompt_id": ""}},
    },
    "nothing but agents": {
        **WHOLE,
        "agents": {f"{n}": {"chain": None, "recent": {}, "prompt_id": ""} for n in range(5_000)},
    },
    **{
        f"an unknown field nested {depth} deep": json.dumps({**WHOLE, "agents": {}})[:-1]
        + f', "later": {"[" * depth}{"]" * depth}}}'
        for depth in (100, 500, 900, 950, 980, 990, 995, 1_000, 1_500, 3_000, 9_000)
    },
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_state_that_no_version_writes(name: str, guard: Guard) -> None:
    """JSON in our layout, with values that it never has: kept, cut or dropped, but never in the way."""
    content = STRANGE[name]
    path = guard.state / "sessions" / f"{SESSION}.json"
    path.parent.mkdir(parents=True)
    for command in COMMANDS:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        for arguments in (["show"], ["show", "--json"], ["show", SESSION]) if LONG or command == COMMANDS[0] else ():
            shown = guard.run(*arguments)
            assert "internal error" not in shown.err, (arguments, shown.err)
            assert shown.code == (1 if arguments == ["show", SESSION] and "skipped" in shown.err else 0)
        assert hook(guard, command).code == 0
        if command == "post-tool-use":
            assert path.stat().st_size <= model.MAX_BYTES
            counts_again(guard)


def test_kept_settings_that_are_damaged(guard: Guard) -> None:
    """What a settings file held is kept beside the state; damaged it is read anew from the file."""
    file = guard.home / ".config/repeat-guard/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("thresholds = [2]\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    guard.call()
    guard.call()
    (kept,) = (guard.state / "settings").iterdir()
    data = kept.read_bytes()
    mark = json.loads(data)["mark"]
    wrong: list[bytes] = [data[:length] for length in range(0, len(data), 1 if LONG else 23)]
    wrong += [json.dumps({"mark": mark, "values": values}).encode() for values in (None, [1], "x", 7, [["thresholds"]])]
    wrong += [b"\0" * (2 * MAX_USER_FILE_BYTES + 1), os.urandom(100), b"[" * 100_000]
    for content in wrong:
        kept.write_bytes(content)
        guard.run("reset", "--all")
        assert [bool(guard.call().reminder) for _ in range(3)] == [False, True, False], content[:200]


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/stdin", "/proc/self/pagemap", "/proc/kmsg", "/proc/kcore", "/"])
def test_a_project_file_without_end(target: str, guard: Guard) -> None:
    """A repository can hold a link to anything; no hook reads more of it than a settings file may hold."""
    if not os.path.lexists(target):
        pytest.skip("this machine has no such file")
    project = guard.home / "project"
    project.mkdir()
    (project / ".repeat-guard.toml").symlink_to(target)
    guard.call(cwd=str(project))
    guard.call(cwd=str(project))
    assert count(guard) == 2
    assert ".repeat-guard.toml" in (guard.state / "repeat-guard.log").read_text()


def test_a_file_that_gives_no_size_and_has_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As some of the kernel's own files; which of them can be read depends on the machine."""
    path = tmp_path / "file"
    path.touch()
    asked: list[int] = []

    def endless(_file: int, size: int) -> bytes:
        asked.append(size)
        assert len(asked) < 100
        return b"x" * 1_000

    monkeypatch.setattr(os, "read", endless)
    with pytest.raises(ValueError, match="more than 5,000 bytes"):
        store.read_file(str(path), 5_000)
