"""Claude Code's transcripts, `<session>.jsonl` (1.0.0 to 2.1.220 seen). Pure: no I/O, no clock, no environment.

Subagents appear in four layouts: lines with `isSidechain` and no `agentId` in the session's own file (1.0), files
`agent-<id>.jsonl` beside it (2.0.28), files in `<session>/subagents/` (2.1), and `progress` lines in the session's own
file (2.1.12 to 2.1.50) that repeat what stands in those files.
"""

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any

from repeat_guard_cli import wire
from repeat_guard_cli.agents import version_text
from repeat_guard_cli.agents.claude_code import BATCH_SINCE, CONTEXT_SINCE, FAILURES_SINCE
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.fingerprint import MISSING
from repeat_guard_cli.payload import Event
from repeat_guard_cli.transcripts.events import (
    HEAD,
    MAIN,
    SMALL_LINE,
    Branch,
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

SIDECHAIN = "sidechain"
"""The agent id of lines whose subagent the transcript doesn't name: several share one stream (1.0)."""

NOT_PROMPTS = (
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "Caveat: ",
    "[Request interrupted",
    "This session is being continued from a previous conversation",
)
"""How `user` lines begin that no hook sees as a prompt."""
SOURCES = {"typed": "user", "human": "user", "task-notification": "system"}
"""What transcripts from 2.1.179 on say of who wrote a prompt, in the words of the hook's `source`."""
REFUSED = (
    "<tool_use_error>",
    "The user doesn't want to",
    "Permission to use ",
    "Claude requested permissions to",
    "[Request interrupted",
)
"""How results of calls begin that never ran."""
_CALL_ID = re.compile(rb'"tool_use_id" ?: ?"([\x20\x21\x23-\x5b\x5d-\x7e]*)"')
_VOLATILE = re.compile(r"<(system-reminder|timestamp)>.*?</\1>", re.DOTALL)
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_USAGE = (*_INPUT, "output_tokens")


def recognises(line: dict[str, Any]) -> bool:
    """Tell whether a line is one that only Claude Code writes."""
    if isinstance(line.get("sessionId"), str) and "type" in line:
        return True
    return (line.get("type") == "summary" and "leafUuid" in line) or line.get("type") == "file-history-snapshot"


def read(lines: Iterable[bytes], wants: Wants, elsewhere: Collection[str] = ()) -> Iterator[Happening]:
    """Tell what happened.

    Args:
        lines: of one file.
        wants: looked at before each line.
        elsewhere: ids of subagents whose own files are read too, so that what this one repeats of them is left out.
    """
    session_id = version = ""
    for line in lines:
        if len(line) > SMALL_LINE and session_id and version:
            told = _tell_unparsed(line, wants)
            if told is not None:
                yield from told
                continue
        fields = parse(line)
        if fields is None:
            if line.strip():
                yield Broken()
            continue
        if not session_id or fields.get("version", version) != version:
            session_id = session_id or string(fields, "sessionId")
            version = string(fields, "version") or version
            if session_id:
                yield Session(session_id, version)
        if fields.get("type") in ("assistant", "user", "progress"):
            yield from _read_line(fields, line, elsewhere, wants)


def _tell_unparsed(line: bytes, wants: Wants) -> Sequence[Happening] | None:
    """Tell what a line holds without parsing it; `None` where that takes parsing."""
    if is_cut(line):
        return [Broken()]
    at = line.find(b'"tool_')
    if at < 0:
        return None if _may_matter_without_tool(line, wants) else ()
    if at < HEAD and line[at + 6 : at + 10] in (b"use_", b"resu") and b'"user"' in line[:HEAD]:
        call_id = _only_call_id(line, at)
        return [Result(call_id, line)] if call_id else None
    return None


def _may_matter_without_tool(line: bytes, wants: Wants) -> bool:
    """Tell whether a line without a call or result may hold a prompt, or a count of tokens that is wanted."""
    if wants.usage and b'"usage"' in line:
        return True
    head = line[:HEAD]
    return b'"role":"assistant"' not in head and (b'"user"' in head or b'"user"' in line[-HEAD:])


def _only_call_id(line: bytes, at: int) -> str:
    """Return the id of the one call that a line holds the result of, `""` where that takes parsing."""
    at = line.find(b'"tool_use_id"', at)
    found = _CALL_ID.match(line, at) if at >= 0 else None
    return found[1].decode() if found and line.find(b'"tool_use_id"', found.end()) < 0 else ""


def _read_line(fields: dict[str, Any], line: bytes, elsewhere: Collection[str], wants: Wants) -> list[Happening]:
    agent_id = string(fields, "agentId") or (SIDECHAIN if fields.get("isSidechain") is True else MAIN)
    kind, message, at = fields.get("type"), fields.get("message"), string(fields, "timestamp")
    if kind == "progress":
        data = fields.get("data")
        inner = data.get("message") if isinstance(data, dict) and data.get("type") == "agent_progress" else None
        if not isinstance(data, dict) or not isinstance(inner, dict):
            return []
        agent_id = string(data, "agentId") or SIDECHAIN
        kind, message = inner.get("type"), inner.get("message")
    if not isinstance(message, dict) or agent_id in elsewhere:
        return []
    if kind == "assistant":
        return _read_answer(message, agent_id, at, line, wants)
    if kind == "user":
        content = message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        results = [string(block, "tool_use_id") for block in blocks if block.get("type") == "tool_result"]
        if results:
            return [Result(call_id, line) for call_id in results]
        if agent_id == SIDECHAIN and fields.get("parentUuid") is None:
            return [Branch(agent_id)]
        if agent_id == MAIN and _is_prompt(fields, text_of(content)):
            return [Prompt(_prompt(fields, text_of(content)), at)]
    return []


def _read_answer(message: dict[str, Any], agent_id: str, at: str, line: bytes, wants: Wants) -> list[Happening]:
    happenings: list[Happening] = []
    usage = message.get("usage")
    if isinstance(usage, dict):
        tokens = sum(number(usage, name) for name in _USAGE) if wants.usage else 0
        happenings.append(Usage(agent_id, _message(message, usage), tokens, follows=False))
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    exact: list[Any] = []
    for place, block in enumerate(blocks):
        if not isinstance(block, dict) or block.get("type") != "tool_use":
            continue
        arguments = block.get("input", MISSING)
        if holds_inexact(arguments):
            exact = exact or _exact_blocks(line)
            if place < len(exact) and isinstance(exact[place], dict):
                arguments = exact[place].get("input", MISSING)
        happenings.append(Call(agent_id, string(block, "id"), string(block, "name"), arguments, at))
    return happenings


def _message(message: dict[str, Any], usage: dict[str, Any]) -> Hashable | None:
    """Return what is equal on every line of a message; some gateways give all of a session's messages one id."""
    message_id = string(message, "id")
    return (message_id, *(number(usage, name) for name in _INPUT)) if message_id else None


def _exact_blocks(line: bytes) -> list[Any]:
    try:
        fields = wire.loads(line)
    except GuardError:
        return []
    if fields.get("type") == "progress":
        fields = fields["data"]["message"]
    content: list[Any] = fields["message"]["content"]
    return content


def _is_prompt(fields: dict[str, Any], text: str) -> bool:
    if any(fields.get(flag) is True for flag in ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")):
        return False
    return not text.lstrip().startswith(NOT_PROMPTS)


def _prompt(fields: dict[str, Any], text: str) -> Event:
    event = Event("UserPromptSubmit", string(fields, "sessionId"))
    event.prompt = text
    origin = fields.get("origin")
    said = string(origin, "kind") if isinstance(origin, dict) else ""
    said = said if said in SOURCES else string(fields, "promptSource") or said
    event.source = SOURCES.get(said, said) or None
    return event


def hook_name(tool_name: str) -> str:
    """Return the name that hooks are told: the same."""
    return tool_name


def unseen(tool_name: str, version: str, *, failed: bool, refused: bool) -> str:
    """Say why the live hook would not have been told of a call; see `runs.Format`."""
    del tool_name
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if not number:
        return ""
    if number < CONTEXT_SINCE:
        return f"before {version_text(CONTEXT_SINCE)} Claude Code passes no reminder on"
    if refused and number < BATCH_SINCE:
        return f"before {version_text(BATCH_SINCE)} Claude Code tells hooks of no denied or invalid calls"
    if failed and number < FAILURES_SINCE:
        return f"before {version_text(FAILURES_SINCE)} Claude Code tells hooks of no failing calls"
    return ""


def outcomes(line: bytes) -> Iterator[Outcome]:
    """Read the results that a line holds."""
    fields = parse(line) or {}
    if fields.get("type") == "progress":
        fields = fields["data"]["message"]
    message = fields.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else []:
        if not isinstance(block, dict) or block.get("type") != "tool_result":
            continue
        failed = block.get("is_error") is True
        said = block.get("content")
        text = text_of(said)
        refused = failed and (bool(fields.get("toolDenialKind")) or text.startswith(REFUSED))
        is_text = isinstance(said, str) or all(isinstance(part, dict) and "text" in part for part in said or [])
        compared = [failed, _VOLATILE.sub("", text).strip() if is_text else said]
        yield Outcome(string(block, "tool_use_id"), failed, refused, compared)
