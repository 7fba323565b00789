"""Finds transcripts and reads them: the part that touches files. Nothing is ever written."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, cast

from repeat_guard_cli.settings import Settings
from repeat_guard_cli.transcripts import claude_code, codex, events
from repeat_guard_cli.transcripts.runs import Analysis, Format, Transcript

FORMATS: dict[str, Format] = {"claude-code": cast(Format, claude_code), "codex": cast(Format, codex)}
SUFFIX = ".jsonl"
SUBAGENT = "agent-"
"""How the names of files begin that hold one of Claude Code's subagents."""
_BUFFER = 1 << 20
_SNIFFED_LINES = 1_000


class Found(NamedTuple):
    """A file that may be a transcript.

    Attributes:
        named: whether a person named it, and not only a folder that it is in.
        size: bytes.
        written: when it was last changed, seconds since the epoch.
    """

    path: str
    named: bool
    size: int
    written: float


class Task(NamedTuple):
    """What to do with a file; see `runs.Analysis` and `runs.Format.read`.

    Attributes:
        agent: whose transcripts are wanted, `""`: any.
    """

    found: Found
    agent: str
    settings: Settings
    min_run: int
    since: float | None
    elsewhere: frozenset[str]


class Reading(NamedTuple):
    """What came of a file.

    Attributes:
        agent: whose transcript it is, `""` if it is none that is wanted.
        transcript: `None` without an agent or with a problem.
        problem: why it could not be read, `""` if it could.
    """

    found: Found
    agent: str
    transcript: Transcript | None
    problem: str


def find(paths: Iterable[str]) -> tuple[list[Found], list[str]]:
    """Find the files that paths name, and those in folders that may be transcripts.

    Returns:
        The files in the order of their paths, each once, and a line for each path that is none or can't be listed.
    """
    found: dict[str, Found] = {}
    problems: list[str] = []

    def note(error: OSError) -> None:
        problems.append(f"can't list {error.filename}: {error.strerror}")

    def add(path: str, named: bool) -> None:
        key = os.path.realpath(path)
        if key in found:
            return
        try:
            status = os.stat(path)
        except OSError as error:
            problems.append(f"can't read {path}: {error.strerror}")
            return
        if os.path.isfile(path):
            found[key] = Found(path, named, status.st_size, status.st_mtime)
        elif named:
            problems.append(f"can't read {path}: it is no regular file")

    for path in paths:
        if not os.path.isdir(path):
            add(path, True)
            continue
        for folder, _, names in os.walk(path, onerror=note):
            for name in names:
                if name.endswith(SUFFIX):
                    add(os.path.join(folder, name), False)
    return sorted(found.values(), key=lambda one: one.path), problems


def elsewhere(found: Iterable[Found]) -> Callable[[str], frozenset[str]]:
    """Return what tells of a file the ids of subagents that have files of their own beside or below it."""
    beside: dict[str, set[str]] = {}
    below: dict[str, set[str]] = {}
    for one in found:
        folder, name = os.path.split(one.path)
        if name.startswith(SUBAGENT):
            agent_id = name[len(SUBAGENT) : -len(SUFFIX)]
            beside.setdefault(folder, set()).add(agent_id)
            for _ in range(5):
                below.setdefault(folder, set()).add(agent_id)
                folder = os.path.dirname(folder)

    def of(path: str) -> frozenset[str]:
        folder, name = os.path.split(path)
        stem = name.removesuffix(SUFFIX)
        ids = beside.get(folder, set()) | below.get(os.path.join(folder, stem), set())
        return frozenset(ids - {stem.removeprefix(SUBAGENT)})

    return of


def read(task: Task, advance: Callable[[int], None] | None = None) -> Reading:
    """Read a file.

    Args:
        task: what to do.
        advance: told now and then how many bytes were read since.
    """
    found = task.found
    try:
        with open(found.path, "rb", buffering=_BUFFER) as file:
            agent = _agent(file)
            if not agent or (task.agent and task.agent != agent):
                return Reading(found, "", None, "")
            file.seek(0)
            analysis = Analysis(FORMATS[agent], task.settings, task.min_run, task.since, found.written)
            lines = _watched(file, advance) if advance else file
            transcript = analysis.take(FORMATS[agent].read(lines, analysis.wants, task.elsewhere))
    except OSError as error:
        return Reading(found, "", None, f"can't read {found.path}: {error.strerror}")
    except MemoryError:
        return Reading(found, "", None, f"can't read {found.path}: a line of it is too long for this machine's memory")
    return Reading(found, agent, transcript, "")


def _agent(lines: Iterable[bytes]) -> str:
    """Tell whose transcript a file is from the first line that tells, `""` if none does."""
    for number, line in enumerate(lines):
        fields = events.parse(line)
        if fields is not None:
            for name, form in FORMATS.items():
                if form.recognises(fields):
                    return name
        if number >= _SNIFFED_LINES:
            break
    return ""


def _watched(lines: Iterable[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    passed = 0
    for line in lines:
        passed += len(line)
        if passed > _BUFFER:
            advance(passed)
            passed = 0
        yield line
    advance(passed)
