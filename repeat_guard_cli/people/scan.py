"""`repeat-guard scan`: what really happened in past sessions, by the rules that the hook runs."""

import errno
import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import NamedTuple

from repeat_guard_cli import agents, config, hook, paths, settings
from repeat_guard_cli.errors import GuardError, SettingsError
from repeat_guard_cli.people import scan_document, scan_html, scan_text
from repeat_guard_cli.people.text import to_json
from repeat_guard_cli.settings import Settings
from repeat_guard_cli.transcripts import files

FOLDERS = {"claude-code": "projects", "codex": "sessions"}
"""Where agents keep their transcripts, in their folders for the user."""
PARALLEL_BYTES = 32 << 20
"""Below this starting another process costs more than it saves."""
_UNITS = {"h": 3_600, "d": 86_400, "w": 7 * 86_400}
_NOWHERE = os.devnull
"""A state directory that can't be: to look at the settings writes nothing."""


class Options(NamedTuple):
    """The command line."""

    paths: list[str]
    agent: str | None
    since: str | None
    thresholds: str | None
    include: str | None
    exclude: str | None
    min_run: int
    arguments: bool
    as_json: bool
    html: str | None


def scan(options: Options) -> int:
    """Read transcripts and print what they show.

    Raises:
        GuardError: an option is wrong, or nothing could be read.
    """
    if options.agent is not None:
        agents.named(options.agent)
    if options.min_run < 2:
        raise GuardError(f"--min-run {options.min_run}: a run is at least 2 calls")
    since = None if options.since is None else time.time() - _duration(options.since)
    question = scan_document.Question(_settings(options), options.min_run, since, options.arguments)

    found, problems = files.find(options.paths or _default_folders(options.agent))
    if options.html is not None:
        _check_place(options.html, found)
    of = files.elsewhere(found)
    tasks = [
        files.Task(one, options.agent or "", question.settings, options.min_run, since, of(one.path))
        for one in found
        if since is None or one.written >= since
    ]
    readings = sorted(_read_all(tasks), key=lambda reading: reading.found.path)
    problems += [reading.problem for reading in readings if reading.problem]
    problems += [
        f"{reading.found.path} is no transcript of {_titles(options.agent)}"
        for reading in readings
        if reading.found.named and not reading.agent and not reading.problem
    ]
    if not any(reading.transcript for reading in readings) and (tasks or not found):
        where = ", ".join(options.paths) or "the agents' folders"
        nothing = f"no transcripts of {_titles(options.agent)} could be read in {where}; name a file or folder"
        if len(problems) == 1:
            raise GuardError(problems[0])
        _complain(problems)
        raise GuardError(nothing)
    _complain(problems)

    document = scan_document.document(readings, question, problems)
    if options.html is not None:
        _write(options.html, scan_html.page(document))
    if options.as_json:
        print(to_json(document))
    else:
        scan_text.show(document, options.html)
    return hook.OK


def _complain(problems: list[str]) -> None:
    for line in problems:
        hook.complain(line)


def _titles(agent: str | None) -> str:
    return agents.named(agent).TITLE if agent else " or ".join(known.TITLE for known in agents.known().values())


def _default_folders(agent: str | None) -> list[str]:
    chosen = [known for known in agents.known().values() if agent in (None, known.NAME)]
    try:
        folders = [str(known.user_folder(os.environ) / FOLDERS[known.NAME]) for known in chosen]
    except RuntimeError:  # of pathlib: there is no home directory
        raise GuardError("there is no home directory to look for transcripts in; name a file or folder") from None
    there = [folder for folder in folders if os.path.isdir(folder)]
    if not there:
        raise GuardError(f"no transcripts: there is no {' and no '.join(folders)}; name a file or folder")
    return there


def _duration(text: str) -> float:
    match = re.fullmatch(r"(\d{1,6})([hdw])", text.strip(), re.ASCII)
    if not match:
        raise GuardError(f"--since {text!r}: expected a number of hours, days or weeks, such as 12h, 30d or 8w")
    return int(match[1]) * _UNITS[match[2]]


def _settings(options: Options) -> Settings:
    """Return the settings in force here, and what options change of them.

    Raises:
        SettingsError: a wrong option, variable or user file. A wrong project file is ignored, as by the hook.
    """
    values = dict(config.user_source(os.environ, _NOWHERE).values or {})
    try:
        values.update(config.project_source(os.environ, paths.working_dir(), _NOWHERE).values or {})
    except SettingsError as error:
        hook.complain(f"ignored: {error}")
    values.update(settings.from_environment(os.environ))
    for key, text in (("thresholds", options.thresholds), ("include", options.include), ("exclude", options.exclude)):
        if text is not None:
            values[key] = settings.from_text(key, text, f"--{key}")
    return Settings(values)


def _read_all(tasks: list[files.Task]) -> Iterator[files.Reading]:
    """Read files, on every core where that pays.

    Raises:
        GuardError: a process that helped was ended from outside.
    """
    total = sum(task.found.size for task in tasks)
    cores = min(len(tasks), _cores())
    with _progress(total) as advance:
        if cores < 2 or total < PARALLEL_BYTES:
            for task in tasks:
                yield files.read(task, advance)
            return
        largest_first = sorted(tasks, key=lambda task: -task.found.size)
        pool = ProcessPoolExecutor(cores, multiprocessing.get_context("spawn"), _ignore_interrupts)
        try:
            for future in as_completed([pool.submit(files.read, task) for task in largest_first]):
                reading = future.result()
                if advance:
                    advance(reading.found.size)
                yield reading
        except BrokenProcessPool:
            raise GuardError(
                "a process that read transcripts was ended from outside, perhaps for want of memory; "
                "name fewer files, or one folder at a time"
            ) from None
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one: it ends this one too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None] | None]:
    """Show on a terminal how many bytes of so many were read."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading transcripts"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=total)

        def advance(read: int) -> None:
            progress.update(bar, advance=read)

        yield advance


def _check_place(path: str, found: list[files.Found]) -> None:
    """Refuse a place for the page before the work is done rather than after it.

    Raises:
        GuardError: a page can't be written there, or it would take a transcript's place.
    """
    if os.path.realpath(path) in {os.path.realpath(one.path) for one in found}:
        raise GuardError(f"--html {path}: that is a transcript; name a file for the page")
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        problem = errno.EISDIR
    elif not os.path.isdir(folder):
        problem = errno.ENOENT
    elif not os.access(path if os.path.exists(path) else folder, os.W_OK):
        problem = errno.EACCES
    else:
        return
    raise GuardError(f"can't write {path}: {os.strerror(problem)}")


def _write(path: str, page: str) -> None:
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(page)
    except OSError as error:
        raise GuardError(f"can't write {path}: {error.strerror}") from None
