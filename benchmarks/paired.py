"""Measures whole processes side by side: every round runs each of them once, in an order drawn anew."""

import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

SCRIPTS = Path(sys.executable).parent
BARE = (sys.executable, "-I", "-c", "pass")


class Process(NamedTuple):
    """What to run: a command line, its standard input by the number of the round, and its whole environment."""

    arguments: Sequence[str]
    stdin: Callable[[int], bytes]
    environment: Mapping[str, str]


def seconds(processes: Mapping[str, Process], rounds: int, warm_up: int = 3) -> dict[str, list[float]]:
    """Measure processes from their start to their end.

    Args:
        processes: by name.
        rounds: how often each is measured.
        warm_up: how often each runs before that; numbers of rounds go on.

    Returns:
        By name, the seconds of each round.

    Raises:
        RuntimeError: a process failed, and so its time means nothing.
    """
    taken: dict[str, list[float]] = {name: [] for name in processes}
    names, draw = list(processes), random.Random(0)
    for number in range(warm_up + rounds):
        draw.shuffle(names)
        for name in names:
            process = processes[name]
            data = process.stdin(number)
            start = time.perf_counter()
            done = subprocess.run(
                process.arguments, input=data, env=process.environment, capture_output=True, check=False
            )
            end = time.perf_counter()
            if done.returncode:
                raise RuntimeError(f"{name} exited {done.returncode}: {done.stderr.decode(errors='replace')}")
            if number >= warm_up:
                taken[name].append(end - start)
    return taken


def medians(taken: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median of each process in milliseconds."""
    return {name: 1000 * statistics.median(values) for name, values in taken.items()}


def ratio(taken: Mapping[str, Sequence[float]], name: str, base: str) -> float:
    """Return the median over the rounds of one process's time by another's in the same round."""
    return statistics.median(one / other for one, other in zip(taken[name], taken[base], strict=True))


def machine() -> str:
    """Say what was measured on."""
    return f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
