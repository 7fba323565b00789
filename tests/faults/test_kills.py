"""Processes killed, interrupted or stopped at any instant: the state is old or new, and the next call works."""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.support import (
    KILLS,
    LONG,
    Figure,
    below,
    call,
    count,
    counts_again,
    feed,
    finish,
    judge,
    payload_of,
    start,
)
from tests.support import COMMAND, SESSION, Guard

SWALLOWED = re.compile(
    rb"(Failed checking if argv\[0\] is an import path entry|Exception ignored in: .*KeyboardInterrupt: *\n\Z)",
    re.DOTALL,
)
"""How CPython says that an interrupt came while it looked for the program, or imported it, and that it went on."""
needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


def a_settings_file(guard: Guard) -> None:
    """What it holds is kept beside the state, which is one more file to be killed at."""
    file = guard.home / ".config/repeat-guard/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("thresholds = [1000]\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))


def fed(guard: Guard, number: int) -> "subprocess.Popen[bytes]":
    """Start a hook that has the longest way to go, without the kept settings, and send it all of its input."""
    shutil.rmtree(guard.state / "settings", ignore_errors=True)
    process = start(guard)
    feed(process, call(number))
    return process


def lifetime(guard: Guard) -> float:
    """Return the median seconds from the end of the input to that of the process."""
    seconds = []
    for number in range(9):
        process = fed(guard, -number - 1)
        begin = time.monotonic()
        judge(finish(process), 0)
        seconds.append(time.monotonic() - begin)
    return statistics.median(seconds)


def state_is_whole(guard: Guard) -> None:
    for path in (guard.state / "sessions").glob("*.json"):
        json.loads(path.read_bytes())


def no_leftovers(guard: Guard) -> None:
    """Check that after one more call and one more prompt nothing is there but what these write."""
    judge(finish(start(guard), call(10**6)), 0)
    guard.prompt()
    files = below(guard.state)
    kept = [name for name in files if name.startswith("settings/")]
    assert [name for name in files if name not in kept] == [
        f"sessions/{SESSION}.json",
        f"sessions/{SESSION}.lock",
        "swept",
    ]
    assert len(kept) == 1


def sweep_delays(guard: Guard, deliver: int, kills: int) -> "Counter[str]":
    """Send a signal at instants spread over the whole life of a process, over and over.

    Each sweep goes on until three outlived it: how long a life lasts changes with the load of the machine.
    """
    guard.call()
    step, seen = lifetime(guard) / min(200, kills // 3), Counter[str]()
    delay, outlived = 0.0, 0
    for number in range(kills):
        before = count(guard)
        process = fed(guard, number)
        time.sleep(delay)
        outlived += process.poll() is not None
        process.send_signal(deliver)
        out, err = process.communicate(timeout=60)
        after = count(guard)
        state_is_whole(guard)
        assert after in (before, before + 1)
        if process.returncode == 0:
            assert (after, out) == (before + 1, b"")
            assert err == b"" or SWALLOWED.match(err)
        seen[f"exit {process.returncode}, {'new' if after > before else 'old'} state"] += 1
        delay, outlived = (0.0, 0) if outlived == 3 else (delay + step, outlived)
        assert not re.search(rb"repeat_guard_cli.*, in (?!<module>)", err), err.decode()
    return seen


def test_kills_at_any_time(guard: Guard, figure: Figure) -> None:
    a_settings_file(guard)
    begin = time.monotonic()
    seen = sweep_delays(guard, signal.SIGKILL, KILLS)
    figure(f"{KILLS} kills in {time.monotonic() - begin:.1f} s: {dict(sorted(seen.items()))}")
    assert seen["exit -9, old state"]
    assert seen["exit 0, new state"]
    no_leftovers(guard)
    counts_again(guard)


def test_interrupts_at_any_time(guard: Guard, figure: Figure) -> None:
    """Ctrl-C in the agent's terminal reaches its hooks too: from the program's first line on it is ignored."""
    seen = sweep_delays(guard, signal.SIGINT, KILLS // 3)
    early = {f"exit {-signal.SIGINT}, old state", "exit 1, old state"}
    assert set(seen) <= {"exit 0, new state", *early}, seen
    assert seen["exit 0, new state"]
    assert early & set(seen), "no interrupt came before the program's first line"
    figure(f"{KILLS // 3} interrupts: {dict(sorted(seen.items()))}")
    counts_again(guard)


def traced(guard: Guard, command: str, data: bytes, trace: Path, *options: str) -> int:
    done = subprocess.run(
        ["strace", "-f", "-o", str(trace), *options, COMMAND, command],
        input=data,
        capture_output=True,
        env=guard.environment,
        check=False,
    )
    if b"ptrace" in done.stderr.lower():
        pytest.skip("this machine permits no tracing")
    return done.returncode


def instants(trace: str) -> list[tuple[str, int]]:
    """Return the system calls of a trace, each as its name and how many of that name had come, itself included.

    The long form takes all of them, from the interpreter's own first; the short form those that touch files, from the
    end of the input on.
    """
    found, ordinal = [], Counter[str]()
    input_read = False
    for line in trace.splitlines():
        name = re.match(r"\d+ +(\w+)\(", line)
        if name:
            ordinal[name[1]] += 1
            changes = name[1] in ("mkdir", "write", "rename", "unlink", "flock", "exit_group")
            if LONG or (input_read and (changes or "O_CREAT" in line)):
                found.append((name[1], ordinal[name[1]]))
            input_read = input_read or "read(0, " in line
    return found


@needs_strace
@pytest.mark.parametrize("command", ["post-tool-use", "user-prompt-submit", "session-end"])
def test_a_kill_at_every_system_call(command: str, guard: Guard, tmp_path: Path, figure: Figure) -> None:
    a_settings_file(guard)
    trace = tmp_path / "trace"

    def prepare() -> tuple[int, bytes]:
        """Bring about what makes the command write everything that it may write."""
        (guard.state / "swept").unlink(missing_ok=True)
        guard.call()
        guard.call()
        shutil.rmtree(guard.state / "settings", ignore_errors=True)
        return count(guard), json.dumps(payload_of(command)).encode()

    prepare()
    traced(guard, command, prepare()[1], trace)
    steps = instants(trace.read_text(errors="replace"))
    seen = Counter[str]()
    for name, ordinal in steps:
        before, data = prepare()
        code = traced(guard, command, data, trace, "-e", f"inject={name}:signal=SIGKILL:when={ordinal}")
        state_is_whole(guard)
        after = count(guard)
        assert after in {"post-tool-use": (before, before + 1)}.get(command, (before, 0)), (name, ordinal)
        seen[f"{'killed' if code else 'ended'}, {'old' if after == before else 'new'} state"] += 1
        assert len(below(guard.state)) <= 6, (name, ordinal, below(guard.state))
    figure(f"{len(steps)} kills, one at each system call: {dict(sorted(seen.items()))}")
    assert seen["killed, old state"]
    assert seen["killed, new state"]
    no_leftovers(guard)
    counts_again(guard)


def test_a_lock_held_by_a_stopped_process(guard: Guard) -> None:
    """A kernel's lock ends with its process: stopped it still holds, killed it doesn't."""
    guard.call()
    lock = guard.state / "sessions" / f"{SESSION}.lock"
    holder = subprocess.Popen(
        ["/bin/sh", "-c", f'exec 9<>"{lock}"; flock 9; echo held; kill -STOP $$'], stdout=subprocess.PIPE
    )
    assert holder.stdout
    assert holder.stdout.readline() == b"held\n"
    try:
        for command, wait in (("post-tool-use", 2.0), ("user-prompt-submit", 2.0), ("session-end", 1.0)):
            before = time.monotonic()
            result = judge(finish(start(guard, command), json.dumps(payload_of(command)).encode()), 1)
            assert "another process holds" in result.err
            assert str(lock) in result.err
            assert wait <= time.monotonic() - before < wait + 1.5
            assert count(guard) == 1
        other = finish(start(guard), call(1, session_id="other"))
        assert judge(other, 0), "other sessions are not held up"
    finally:
        holder.kill()
        holder.communicate()
    counts_again(guard)


def test_a_hook_stopped_at_work(guard: Guard) -> None:
    """Stopped anywhere, it holds others up for 2 s at most; continued, it does what it was to do."""
    guard.call()
    life = lifetime(guard)
    for number in range(12 if LONG else 4):
        before = count(guard)
        process = fed(guard, 2 * number)
        time.sleep(life * (0.5 + number / (24 if LONG else 8)))
        process.send_signal(signal.SIGSTOP)
        other = judge(finish(start(guard), call(2 * number + 1)))
        process.send_signal(signal.SIGCONT)
        judge(finish(process))
        assert count(guard) == before + (other.code == 0) + (process.returncode == 0)
    counts_again(guard)
