"""Codex' transcripts, `rollout-*.jsonl` (August 2025 to 0.142 seen). Pure: no I/O, no clock, no environment.

Older ones hold bare items, later ones wrap each in `{timestamp, type, payload}`. Events mirror what items say, so calls
are read from items alone.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import orjson

from repeat_guard_cli import wire
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.fingerprint import MISSING
from repeat_guard_cli.payload import Event
from repeat_guard_cli.transcripts.events import (
    HEAD,
    MAIN,
    SMALL_LINE,
    Broken,
    Call,
    Happening,
    Outcome,
    Prompt,
    Result,
    Session,
    Usage,
    Wants,
    holds_inexact,
    is_cut,
    number,
    parse,
    string,
    text_of,
)

ENVELOPES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "web_search_call": "action",
    "tool_search_call": "arguments",
}
"""The items that are calls, and which field holds the arguments."""
NAMES = {"local_shell_call": "local_shell", "web_search_call": "web_search", "tool_search_call": "tool_search"}
"""The tools of items that name none."""
SHELLS = ("shell", "shell_command", "exec_command", "local_shell")
UNSEEN = ("update_plan", "write_stdin", "web_search", "tool_search", "spawn_agent")
"""The tools whose calls reach no hook (0.171.0)."""
REFUSED = (
    "exec command rejected",
    "rejected by user",
    "patch rejected",
    "unsupported call",
    "failed to parse function",
)
"""How outputs of calls begin that never ran."""
_WANTED = {name.encode() for name in (*CALLS, "user_message", "token_count")}
"""The types of items that tell anything, besides outputs."""
_MARKERS = (b'_call"', b'_call_output"', b'"user_message"', b'"token_count"', b'"message"')
_START = re.compile(
    rb'\{"timestamp": ?"[^"]*", ?(?:"ordinal": ?\d+, ?)?"type": ?"[a-z_]+", ?"payload": ?\{'
    rb'(?:"id": ?"[^"]*", ?)?"type": ?"([a-z_]+)"'
)
_CALL_ID = re.compile(rb'"call_id" ?: ?"([\x20\x21\x23-\x5b\x5d-\x7e]*)"')
_HEADER = re.compile(r"^(?:Chunk ID|Wall time|Original token count)\b.*\n?", re.MULTILINE)
_EXIT = re.compile(r"\b(?:exited with code|[Ee]xit code:?|exit status:?) (-?\d+)")


def recognises(line: dict[str, Any]) -> bool:
    """Tell whether a line is one that only Codex writes."""
    kind = line.get("type")
    if kind in ENVELOPES:
        return isinstance(line.get("payload"), dict)
    if "record_type" in line or (kind is None and {"id", "timestamp"} <= line.keys()):
        return True
    return kind in (*CALLS, "function_call_output") or (kind == "message" and "role" in line and "content" in line)


def read(lines: Iterable[bytes], wants: Wants, elsewhere: Collection[str] = ()) -> Iterator[Happening]:
    """Tell what happened; see `claude_code.read`. What a fork repeats of its parent is told as its own."""
    del elsewhere
    session = Session("", "")
    tokens = _Tokens()
    for line in lines:
        if session.session_id:
            told = _tell_unparsed(line, wants, tokens)
            if told is not None:
                yield from told
                continue
        fields = parse(line)
        if fields is None:
            if line.strip():
                yield Broken()
            continue
        payload = fields.get("payload")
        wrapped = fields.get("type") in ENVELOPES and isinstance(payload, dict)
        item: dict[str, Any] = payload if wrapped and isinstance(payload, dict) else fields
        at = string(fields, "timestamp")
        if not session.session_id and (found := _session(fields, item, wrapped)):
            session = found
            yield session
        elif item.get("type") == "token_count" and fields.get("type") == "event_msg":
            yield Usage(session.agent_id, None, tokens.of(item), follows=True)
        else:
            yield from _read_item(fields, item, wrapped, session.agent_id, at, line)


def _tell_unparsed(line: bytes, wants: Wants, tokens: "_Tokens") -> Sequence[Happening] | None:
    """Tell what a line holds without parsing it; `None` where that takes parsing."""
    start = _START.match(line)
    if start and not is_cut(line):
        kind = start[1]
        if kind == b"token_count" and not wants.usage:
            tokens.skipped = line
            return ()
        if kind.endswith(b"_call_output"):
            call_id = _call_id(line)
            return [Result(call_id, line)] if call_id else None
        return None if kind in _WANTED else ()
    if len(line) <= SMALL_LINE:
        return None
    if is_cut(line):
        return [Broken()]
    return None if any(marker in line for marker in _MARKERS) else ()


def _call_id(line: bytes) -> str:
    """Return the id of the call that a line holds the output of, `""` where that takes parsing."""
    found = _CALL_ID.search(line, 0, HEAD)
    return "" if not found or line.find(b'"output"', 0, found.start()) >= 0 else found[1].decode()


def _session(fields: dict[str, Any], item: dict[str, Any], wrapped: bool) -> Session | None:
    if wrapped and fields["type"] != "session_meta":
        return None
    if not wrapped and (fields.get("type") is not None or not {"id", "timestamp"} <= fields.keys()):
        return None
    own = string(item, "id")
    is_subagent = item.get("thread_source") == "subagent" or (
        isinstance(item.get("source"), dict) and "subagent" in item["source"]
    )
    return Session(string(item, "session_id") or own, string(item, "cli_version"), own if is_subagent else MAIN)


def _read_item(
    fields: dict[str, Any], item: dict[str, Any], wrapped: bool, agent_id: str, at: str, line: bytes
) -> Iterator[Happening]:
    kind = string(item, "type")
    if wrapped and fields["type"] == "event_msg":
        if kind == "user_message" and agent_id == MAIN:
            yield Prompt(_prompt(string(item, "message")), at)
    elif wrapped and fields["type"] != "response_item":
        return
    elif kind in CALLS:
        name = string(item, "name") or NAMES.get(kind, "")
        yield Call(agent_id, string(item, "call_id"), name, _arguments(item.get(CALLS[kind], MISSING), line), at)
    elif kind.endswith("_call_output"):
        yield Result(string(item, "call_id"), line)
    elif kind == "message" and not wrapped and item.get("role") == "user":
        text = text_of(item.get("content"))
        if not text.lstrip().startswith("<"):  # instructions and the environment come so too
            yield Prompt(_prompt(text), at)


def _arguments(value: Any, line: bytes) -> Any:
    """Return arguments as the hook sees them: the object, not the text in which it is written."""
    if not isinstance(value, str):
        if holds_inexact(value):
            item = _exact(line)
            return item.get("arguments", item.get("action", value))
        return value
    try:
        parsed = orjson.loads(value)
    except ValueError:
        return _exactly(value, value)
    if not isinstance(parsed, (dict, list)):
        return value
    return _exactly(value, parsed) if holds_inexact(parsed) else parsed


def _exactly(text: str, otherwise: Any) -> Any:
    try:
        value = wire.loads(text.encode(errors="surrogatepass"))
    except GuardError:
        return otherwise
    return value if isinstance(value, (dict, list)) else otherwise


def _exact(line: bytes) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = wire.loads(line)
    except GuardError:
        return {}
    payload = fields.get("payload")
    return payload if isinstance(payload, dict) else fields


def _payload(line: bytes) -> dict[str, Any]:
    payload = (parse(line) or {}).get("payload")
    return payload if isinstance(payload, dict) else {}


def _prompt(text: str) -> Event:
    event = Event("UserPromptSubmit", "codex")
    event.prompt = text
    return event


class _Tokens:
    """Tells what each message cost from counts that are, for the most part, of all so far.

    Attributes:
        skipped: the last line that nobody wanted; what comes next is what it has more.
    """

    def __init__(self) -> None:
        self.skipped = b""
        self._total = 0

    def of(self, item: dict[str, Any]) -> int:
        """Return the tokens of the latest message; 0 where the same count is reported again."""
        if self.skipped:
            _, self._total = self._read(_payload(self.skipped))
            self.skipped = b""
        tokens, self._total = self._read(item)
        return tokens

    def _read(self, item: dict[str, Any]) -> tuple[int, int]:
        info = item.get("info", item)
        if not isinstance(info, dict):
            return 0, self._total
        total, last = _sum(info.get("total_token_usage", info)), info.get("last_token_usage")
        latest = _sum(last) if isinstance(last, dict) else total
        if not total:
            return latest, self._total
        return (total - self._total if 0 < self._total <= total else latest), total


def _sum(usage: Any) -> int:
    if not isinstance(usage, dict):
        return 0
    return number(usage, "total_tokens") or number(usage, "input_tokens") + number(usage, "output_tokens")


def hook_name(tool_name: str) -> str:
    """Return the name that hooks are told (0.171.0): one for every kind of shell."""
    return "Bash" if tool_name in SHELLS else tool_name


def unseen(tool_name: str, version: str, *, failed: bool, refused: bool) -> str:
    """Say why the live hook would not have been told of a call; see `runs.Format`."""
    del version, failed
    if tool_name in UNSEEN:
        return f"Codex tells hooks of no {tool_name} calls"
    return "Codex tells hooks of no denied, invalid or unknown calls" if refused else ""


def outcomes(line: bytes) -> Iterator[Outcome]:
    """Read the results that a line holds."""
    fields = parse(line) or {}
    payload = fields.get("payload")
    item = payload if isinstance(payload, dict) else fields
    output = item.get("output")
    code: int | None = None
    success: Any = None
    if isinstance(output, str) and output.startswith("{"):
        try:
            inner = orjson.loads(output)
        except ValueError:
            inner = None
        if isinstance(inner, dict) and "output" in inner:
            metadata = inner.get("metadata")
            exit_code = metadata.get("exit_code") if isinstance(metadata, dict) else None
            code = exit_code if type(exit_code) is int else None
            output = inner["output"]
    if isinstance(output, dict):
        success = output.get("success")
        output = output.get("content")
    text = text_of(output)
    if code is None and (said := _EXIT.search(text[:400])):
        code = int(said[1])
    refused = text.lstrip().startswith(REFUSED)
    failed: bool | None = True if refused else code != 0 if code is not None else None
    if isinstance(success, bool) and code is None:
        failed = not success
    head, marker, body = text.partition("Output:\n")
    compared = f"{_HEADER.sub('', head)}{marker}{body}" if marker else _HEADER.sub("", text)
    yield Outcome(string(item, "call_id"), failed, refused, [code, compared if text else output])
