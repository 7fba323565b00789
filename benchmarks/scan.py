"""How fast `repeat-guard scan` reads, against a bare loop that only parses every line on one core.

    python benchmarks/scan.py [--megabytes 500] [--rounds 3]

Transcripts of both agents are made in a temporary directory: lines as long as real ones (a median of about 1 KB, a
tenth over 10 KB, a few of 1 MB), a run of identical calls in every third file, and repeated until there is enough.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.transcripts import Claude, Codex

GUARD = str(Path(sys.executable).with_name("repeat-guard"))
LOADS = "import sys, orjson\nfor path in sys.argv[1:]:\n    for line in open(path, 'rb'):\n        orjson.loads(line)\n"
WORDS = 'the retry handler returns none when a request\n\tis cancelled before ( it [ was ] sent ) = { 0x7f } "quoted" é'


def text(draw: random.Random, median: float) -> str:
    """Return a text whose length varies as that of results does: most are short, a few very long."""
    length = min(1_000_000, int(draw.lognormvariate(0, 1.6) * median))
    words = WORDS.split(" ")
    head = " ".join(draw.choice(words) for _ in range(min(length, 600) // 5 + 1))
    return (head * (length // len(head) + 1))[:length]


def claude_code(draw: random.Random, calls: int, loop: int) -> bytes:
    """Return a session of Claude Code; `loop` calls of it are the same."""
    lines = Claude(f"s{draw.random()}", gitBranch="main", userType="external", slug="a-slug")
    for number in range(calls):
        if number % 20 == 0:
            lines.prompt(text(draw, 200))
        lines.answer({"type": "thinking", "thinking": text(draw, 300), "signature": "x" * 400})
        same = number < loop
        lines.call(
            "Bash", {"command": "pytest -x" if same else text(draw, 80)}, "failed" if same else text(draw, 1_500)
        )
        if number % 3 == 0:
            lines.add(
                {**lines.line("progress", None), "data": {"type": "bash_progress", "fullOutput": text(draw, 1_000)}}
            )
    return lines.data()


def codex(draw: random.Random, calls: int, loop: int) -> bytes:
    """Return a session of Codex; `loop` calls of it are the same."""
    lines = Codex(f"c{draw.random()}")
    for number in range(calls):
        if number % 20 == 0:
            lines.prompt(text(draw, 200))
        lines.item(type="reasoning", summary=[], encrypted_content="x" * int(draw.lognormvariate(7, 0.7)))
        same = number < loop
        lines.call("exec_command", {"cmd": "pytest -x" if same else text(draw, 80)}, text(draw, 1_500), tokens=1_000)
    return lines.data()


def make(folder: Path, megabytes: int) -> list[Path]:
    """Write transcripts of so many megabytes in all; every one stands there several times."""
    draw = random.Random(0)
    kinds = [
        make_one(draw, 400, 6 if number % 3 == 0 else 0) for make_one in (claude_code, codex) for number in range(6)
    ]
    paths, size = [], 0
    while size < megabytes * 1_000_000:
        data = kinds[len(paths) % len(kinds)] * draw.randint(1, 6)
        path = folder / f"{len(paths)}.jsonl"
        path.write_bytes(data)
        paths.append(path)
        size += len(data)
    return paths


def seconds(command: list[str], cores: int) -> float:
    """Measure a process from its start to its end, on so many cores where that can be chosen."""
    if hasattr(os, "sched_getaffinity"):
        chosen = sorted(os.sched_getaffinity(0))[:cores]
        command = ["taskset", "-c", ",".join(map(str, chosen)), *command]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="repeat-guard-benchmark-") as folder:
        paths = [str(path) for path in make(Path(folder), options.megabytes)]
        size = sum(os.path.getsize(path) for path in paths) / 1e6
        scan = [GUARD, "scan", "--json", folder]
        commands = {
            "bare loop of orjson.loads, one core": ([sys.executable, "-c", LOADS, *paths], 1),
            "scan, one core": (scan, 1),
            "scan, every core": (scan, os.cpu_count() or 1),
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, (command, cores) in commands.items():
                taken[name].append(seconds(command, cores))
        print(f"{size:,.0f} MB in {len(paths)} files, {os.cpu_count()} cores; medians of {options.rounds}\n")
        print(f"{'':40}{'s':>8}{'MB/s':>8}{'speed of the loop':>20}")
        bare = statistics.median(taken["bare loop of orjson.loads, one core"])
        for name, times in taken.items():
            middle = statistics.median(times)
            print(f"{name:40}{middle:8.2f}{size / middle:8.0f}{bare / middle:20.2f}")


if __name__ == "__main__":
    main()
