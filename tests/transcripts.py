"""Writes transcripts in the agents' own shapes, a line for each thing that happened."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

START = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def at(second: int, start: datetime = START) -> str:
    """Return a time as agents write it."""
    return (start + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Lines:
    """A transcript; every line is a second later than the one before."""

    def __init__(self, start: datetime = START) -> None:
        self.lines: list[bytes] = []
        self.start = start
        self.calls = 0

    def now(self) -> str:
        return at(len(self.lines), self.start)

    def add(self, value: Any) -> None:
        """Add a line: bytes as they are, anything else as JSON."""
        line = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
        self.lines.append(line)

    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data())
        return path


class Claude(Lines):
    """A transcript of Claude Code."""

    def __init__(
        self,
        session_id: str = "s1",
        version: str = "2.1.200",
        agent_id: str = "",
        start: datetime = START,
        **fields: Any,
    ) -> None:
        super().__init__(start)
        self.session_id = session_id
        self.fields = {"cwd": "/home/dev/shop", "sessionId": session_id, "version": version, **fields}
        self.fields["isSidechain"] = bool(agent_id) or fields.get("isSidechain", False)
        if agent_id:
            self.fields["agentId"] = agent_id
        self.agent_id = agent_id or "main"

    def line(self, kind: str, message: Any, **fields: Any) -> dict[str, Any]:
        number = len(self.lines)
        ids = {"parentUuid": f"u{number - 1}" if number else None, "uuid": f"u{number}", "timestamp": self.now()}
        return {**ids, **self.fields, "type": kind, "message": message, **fields}

    def prompt(self, text: str = "go on", **fields: Any) -> None:
        self.add(self.line("user", {"role": "user", "content": text}, **fields))

    def answer(self, *blocks: dict[str, Any], message: str = "", tokens: int = 100, **fields: Any) -> None:
        """Add a line for each block, as Claude Code does: all with the message's id and its whole usage."""
        message = message or f"msg_{len(self.lines)}"
        usage = {"input_tokens": 1, "cache_read_input_tokens": tokens - 3, "output_tokens": 2}
        for block in blocks:
            content = {"id": message, "role": "assistant", "content": [block], "usage": usage}
            self.add(self.line("assistant", content, **fields))

    def use(self, name: str, arguments: Any, call_id: str = "") -> dict[str, Any]:
        self.calls += 1
        call_id = call_id or f"toolu_{self.session_id}_{self.agent_id}_{self.calls}"
        return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}

    def result(self, call_id: str, content: Any = "ok", failed: bool = False, **fields: Any) -> None:
        block: dict[str, Any] = {"tool_use_id": call_id, "type": "tool_result", "content": content}
        if failed:
            block["is_error"] = True
        self.add(self.line("user", {"role": "user", "content": [block]}, **{"toolUseResult": content, **fields}))

    def call(
        self, name: str = "Bash", arguments: Any = None, content: Any = "ok", failed: bool = False, tokens: int = 100
    ) -> str:
        """Add a message with one call, and its result."""
        block = self.use(name, {"command": "ls"} if arguments is None else arguments)
        self.answer(block, tokens=tokens)
        self.result(block["id"], content, failed)
        return block["id"]

    def progress(self, agent_id: str, line: dict[str, Any]) -> None:
        """Add a line that repeats one of a subagent's (2.1.12 to 2.1.50)."""
        data = {"type": "agent_progress", "agentId": agent_id, "message": line, "normalizedMessages": []}
        self.add({**self.line("progress", None), "data": data, "toolUseID": "agent_msg_1"})


class Codex(Lines):
    """A transcript of Codex; `legacy` ones have no envelopes."""

    def __init__(self, own_id: str = "c1", version: str = "0.142.4", legacy: bool = False, **meta: Any) -> None:
        super().__init__()
        self.own_id = own_id
        self.legacy = legacy
        self.total = 0
        own = {"id": own_id, "timestamp": at(0), "instructions": None, "git": {}}
        self.add(own if legacy else self.wrapped("session_meta", {**own, "cli_version": version, **meta}))

    def wrapped(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": self.now(), "type": kind, "payload": payload}

    def item(self, **payload: Any) -> None:
        self.add(payload if self.legacy else self.wrapped("response_item", payload))

    def event(self, **payload: Any) -> None:
        self.add(self.wrapped("event_msg", payload))

    def prompt(self, text: str = "go on") -> None:
        content = [{"type": "input_text", "text": text}]
        self.item(type="message", role="user", content=content)
        if not self.legacy:
            self.event(type="user_message", message=text)

    def call(
        self,
        name: str = "exec_command",
        arguments: Any = None,
        output: Any = "Chunk ID: c7\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nok",
        tokens: int = 0,
    ) -> str:
        """Add a call, its output, and what the message cost."""
        self.calls += 1
        call_id = f"call_{self.own_id}_{self.calls}"
        text = json.dumps({"cmd": "git status"}) if arguments is None else arguments
        text = text if isinstance(text, str) else json.dumps(text)
        self.item(type="function_call", name=name, arguments=text, call_id=call_id)
        self.item(type="function_call_output", call_id=call_id, output=output)
        if tokens:
            self.tokens(tokens)
        return call_id

    def tokens(self, tokens: int) -> None:
        self.total += tokens
        info = {"total_token_usage": {"total_tokens": self.total}, "last_token_usage": {"total_tokens": tokens}}
        self.event(type="token_count", info=info, rate_limits={})


def runs(document: dict[str, Any]) -> list[tuple[str | None, str, int]]:
    """Return the agent, tool and length of every run of a document."""
    streams: Sequence[Any] = [stream for session in document["sessions"] for stream in session["streams"]]
    return [(stream["agent_id"], run["tool_name"], run["count"]) for stream in streams for run in stream["runs"]]
