"""Starts the real agents, each in a network namespace with loopback alone, a fresh home and a small environment."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from repeat_guard_cli.reminder import SIGNATURE
from tests.conftest import ROOT
from tests.e2e import fetch
from tests.e2e.server import Script
from tests.support import COMMAND, Guard

SECONDS = 90
TEXT, CALL = "text", "tool"
UNSHARE = ["unshare", "-n"] if hasattr(os, "geteuid") and os.geteuid() == 0 else ["unshare", "-rn"]


def program(name: str) -> list[str]:
    """Return the command line of a real agent; a person without it skips, CI fails."""
    reason = ""
    found = None
    if sys.platform != "linux" or subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode:
        reason = "no right to make a network namespace (unshare -n)"
    else:
        folder = os.environ.get("REPEAT_GUARD_E2E_AGENTS")
        found = fetch.command(Path(folder), name) if folder else None
        if not found:
            reason = "REPEAT_GUARD_E2E_AGENTS names no folder with it; make one with `python -m tests.e2e.fetch FOLDER`"
    if found:
        return found
    if os.environ.get("CI"):
        pytest.fail(f"{name}: {reason}")
    pytest.skip(f"{name}: {reason}")


class Stage(NamedTuple):
    """What came of a run.

    Attributes:
        requests: the requests of the main conversation, in order.
        subagent: those of the subagent's.
        runs: exit code, standard output and standard error of each start of the agent.
    """

    requests: list[dict[str, Any]]
    subagent: list[dict[str, Any]]
    runs: list[dict[str, Any]]

    def told(self, requests: list[dict[str, Any]] | None = None) -> list[int]:
        """Return after which steps a new reminder was in the next request, a step for each reminder."""
        counts = [reminders(request) for request in (self.requests if requests is None else requests)]
        return [
            step
            for step, (before, after) in enumerate(itertools.pairwise(counts), start=1)
            for _ in range(after - before)
        ]

    @property
    def last(self) -> str:
        """The whole last request of the main conversation."""
        return json.dumps(self.requests[-1])


def reminders(request: dict[str, Any]) -> int:
    """Count the reminders in a request."""
    return json.dumps(request.get("messages") or request.get("input")).count(SIGNATURE)


def play(
    guard: Guard,
    runs: Sequence[dict[str, Any]],
    scripts: dict[str, Script],
    environment: dict[str, str],
) -> Stage:
    """Start an agent once or more and return what the model was asked.

    Args:
        guard: whose home the agent lives in.
        runs: `arguments` and, if need be, `lines` of standard input of each start.
        scripts: what the model says, by conversation.
        environment: variables beside the usual ones; `URL` in them and in arguments is the model's address.
    """
    project = guard.home / "project"
    project.mkdir(exist_ok=True)
    search = f"{Path(COMMAND).parent}:/usr/local/bin:/usr/bin:/bin"
    what = {
        "scripts": scripts,
        "runs": list(runs),
        "environment": {**guard.environment, "PATH": search, "TERM": "dumb", **environment},
        "cwd": str(project),
        "seconds": SECONDS,
    }
    stage = [*UNSHARE, sys.executable, "-m", "tests.e2e.stage"]
    done = subprocess.run(stage, input=json.dumps(what), capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    main = [request for request in result["requests"] if request["conversation"] == "main"]
    sub = [request for request in result["requests"] if request["conversation"] == "sub"]
    return Stage(main, sub, result["runs"])
