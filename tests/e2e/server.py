"""Scripted models on loopback: Anthropic Messages for Claude Code, OpenAI Responses for Codex, both streaming.

A script is a list of steps for each conversation, and a step is a list of blocks: `{"text": ...}` or
`{"tool": name, "input": ...}`, with a `delay` in seconds if need be. Which step comes next is told from the request, by
what the model already said in it, so that repeated and concurrent requests get what they should. Past its script a
model says that it is done.
"""

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Block = dict[str, Any]
Script = list[list[Block]]
DONE: list[Block] = [{"text": "done"}]
SUBAGENT = "SUBTASK"
"""What the prompt of a subagent begins with: its conversation has a script of its own."""


class Server(ThreadingHTTPServer):
    """Answers on a port of loopback.

    Attributes:
        scripts: the steps of the conversations `main` and `sub`.
        requests: what was asked, each with its `conversation`.
    """

    daemon_threads = True

    def __init__(self, scripts: dict[str, Script]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.scripts = scripts
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        """Return the address."""
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name is inherited
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer that there is something."""
        self._reply(b"", "application/json")

    def do_GET(self) -> None:
        """Answer with nothing."""
        self._reply(b'{"models": [], "data": []}', "application/json")

    def do_POST(self) -> None:
        """Answer as the script says."""
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._reply(b'{"input_tokens": 10}', "application/json")
        elif path.endswith("/messages"):
            self._stream(self._messages(json.loads(data)), json.loads(data).get("stream", False))
        elif path.endswith("/responses"):
            self._stream(self._responses(json.loads(data)), True)
        else:
            self._reply(b"{}", "application/json")

    def _next(self, conversation: str, said: int, by_blocks: bool) -> list[Block]:
        """Return the step after what was already said: steps (Anthropic), or their blocks (OpenAI)."""
        for step in self.server.scripts.get(conversation, []):
            said -= len(step) if by_blocks else 1
            if said < 0:
                return step
        return DONE

    def _messages(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        messages, blocks, number = request["messages"], DONE, 0
        if request.get("tools"):
            conversation = "sub" if SUBAGENT in json.dumps(messages[0]) else "main"
            self.server.requests.append({**request, "conversation": conversation})
            number = sum(message["role"] == "assistant" for message in messages)
            blocks = self._next(conversation, number, by_blocks=False)
            ids = [f"toolu_{conversation}_{number}_{index}" for index in range(len(blocks))]
        else:
            ids = [""]
        time.sleep(sum(block.get("delay", 0) for block in blocks))
        usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {
            "id": f"msg_{len(self.server.requests)}_{number}",
            "type": "message",
            "role": "assistant",
            "model": request.get("model", "scripted"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield {"type": "message_start", "message": message}
        for index, block in enumerate(blocks):
            if "text" in block:
                start: Block = {"type": "text", "text": ""}
                delta = {"type": "text_delta", "text": block["text"]}
            else:
                start = {"type": "tool_use", "id": ids[index], "name": block["tool"], "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield {"type": "content_block_start", "index": index, "content_block": start}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        reason = "tool_use" if any("tool" in block for block in blocks) else "end_turn"
        yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}

    def _responses(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        items = request["input"]
        self.server.requests.append({**request, "conversation": "main"})
        kinds = [item.get("type") for item in items if item.get("role") in (None, "assistant")]
        said = sum(kind in ("function_call", "custom_tool_call", "message") for kind in kinds)
        blocks = self._next("main", said, by_blocks=True)
        response = {"id": f"resp_{said}", "object": "response", "status": "in_progress", "output": []}
        yield {"type": "response.created", "response": response}
        for index, block in enumerate(blocks):
            if "text" in block:
                content = [{"type": "output_text", "text": block["text"], "annotations": []}]
                item = {"type": "message", "id": f"m_{said}", "role": "assistant", "content": content}
            elif isinstance(block["input"], str):
                item = {"type": "custom_tool_call", "name": block["tool"], "input": block["input"]}
                item["call_id"] = f"call_{said}_{index}"
            else:
                item = {"type": "function_call", "name": block["tool"], "arguments": json.dumps(block["input"])}
                item["call_id"] = f"call_{said}_{index}"
            yield {"type": "response.output_item.done", "output_index": index, "item": {**item, "status": "completed"}}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, **details}
        yield {"type": "response.completed", "response": {**response, "status": "completed", "usage": usage}}

    def _stream(self, events: Iterator[dict[str, Any]], stream: bool) -> None:
        if stream:
            lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
            self._reply(lines.encode(), "text/event-stream")
            return
        whole: dict[str, Any] = {}
        for event in events:
            if event["type"] == "message_start":
                whole = event["message"]
            elif event["type"] == "content_block_delta":
                whole["content"].append({"type": "text", "text": event["delta"].get("text", "")})
            elif event["type"] == "message_delta":
                whole["stop_reason"] = event["delta"]["stop_reason"]
        self._reply(json.dumps(whole).encode(), "application/json")

    def _reply(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
