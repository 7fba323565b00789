"""Runs the real command in a world of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = shutil.which("repeat-guard", path=str(Path(sys.executable).parent)) or "repeat-guard-is-not-installed"
SESSION = "5e551011-0000-4000-8000-000000000001"


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def reminder(self) -> str:
        """What the model is told; "" where nothing was said."""
        return json.loads(self.out)["hookSpecificOutput"]["additionalContext"] if self.out else ""


class Guard:
    """The console script with a home, a state directory and an environment of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.state = home / "state"
        self.environment = {
            "HOME": str(home),
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "REPEAT_GUARD_STATE_DIR": str(self.state),
        }
        self._calls = 0

    def run(self, *arguments: str, stdin: bytes = b"", cwd: Path | None = None, **environment: str) -> Result:
        """Run a command line; the process has to end by itself."""
        done = subprocess.run(
            [COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            env={**self.environment, **environment},
            cwd=cwd or self.home,
            timeout=60,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def hook(self, command: str, payload: Any, **environment: str) -> Result:
        """Send one payload: bytes as they are, anything else as JSON."""
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        return self.run(command, stdin=data, **environment)

    def call(self, name: str = "Bash", arguments: Any = None, **fields: Any) -> Result:
        """Report a tool call that succeeded, with an id of its own."""
        self._calls += 1
        payload = tool_payload(name, {"command": "ls"} if arguments is None else arguments, f"toolu_{self._calls}")
        result = self.hook("post-tool-use", {**payload, **fields})
        assert (result.code, result.err) == (0, ""), result
        return result

    def prompt(self, text: str = "go on", **fields: Any) -> None:
        """Report a prompt."""
        payload = {"session_id": SESSION, "hook_event_name": "UserPromptSubmit", "prompt": text}
        assert self.hook("user-prompt-submit", {**payload, **fields}) == (0, "", "")

    def shown(self) -> list[dict[str, Any]]:
        """Return the sessions that `show --json` prints."""
        result = self.run("show", "--json")
        assert (result.code, result.err) == (0, ""), result
        return json.loads(result.out)["sessions"]

    def counts(self, session_id: str = SESSION) -> dict[str | None, int]:
        """Return the count of each agent's chain in a session."""
        chains = [s["chains"] for s in self.shown() if s["session_id"] == session_id]
        return {chain["agent_id"]: chain["count"] for chain in chains[0]} if chains else {}

    def files(self) -> list[str]:
        """Return every file in the home directory, the state directory included."""
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*") if not path.is_dir())


def tool_payload(name: str, arguments: Any, call_id: str = "", **fields: Any) -> dict[str, Any]:
    """Return a PostToolUse payload in Claude Code's shape."""
    payload: dict[str, Any] = {
        "session_id": SESSION,
        "transcript_path": f"/home/dev/.claude/projects/-home-dev-shop/{SESSION}.jsonl",
        "cwd": "/home/dev/shop",
        "permission_mode": "default",
        "hook_event_name": "PostToolUse",
        "tool_name": name,
        "tool_input": arguments,
        "tool_response": {"stdout": "", "stderr": "", "interrupted": False},
    }
    if call_id:
        payload["tool_use_id"] = call_id
    return {**payload, **fields}
