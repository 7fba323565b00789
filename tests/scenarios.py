"""Sequences of events and where reminders come, each with the rule that it shows.

The same rows drive the pure core and the installed command. An event is `call(...)`, `batch(...)`, `prompt(...)` or
`END`; `said` names the events, from 1, that draw a reminder, with the counts that it tells.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.support import SESSION

Payload = dict[str, Any]


class Scenario(NamedTuple):
    rule: str
    events: list[Payload]
    said: dict[int, tuple[int, ...]]
    settings: Mapping[str, Any] = MappingProxyType({})


def event(name: str, agent: str | None = None, session: str = SESSION, **fields: Any) -> Payload:
    marks = {} if agent is None else {"agent_id": agent, "agent_type": "general-purpose"}
    return {"session_id": session, "cwd": "/home/dev/shop", "hook_event_name": name, **marks, **fields}


def call(
    arguments: Any = ..., name: str = "Grep", hook: str = "PostToolUse", call_id: str = "", **fields: Any
) -> Payload:
    """One call; without `arguments` always the same one."""
    arguments = {"pattern": "TODO"} if arguments is ... else arguments
    outcome = {"error": "Exit code 1"} if hook == "PostToolUseFailure" else {"tool_response": "ok"}
    ids = {"tool_use_id": call_id} if call_id else {}
    return event(hook, **{"tool_name": name, "tool_input": arguments, **outcome, **ids, **fields})


def bare(name: str = "Grep", **fields: Any) -> Payload:
    """One call reported without arguments."""
    return event("PostToolUse", tool_name=name, **fields)


def batch(*calls: Payload, **fields: Any) -> Payload:
    keys = ("tool_name", "tool_input", "tool_use_id", "tool_response")
    return event("PostToolBatch", tool_calls=[{k: c[k] for k in keys if k in c} for c in calls], **fields)


def prompt(text: str = "go on", **fields: Any) -> Payload:
    return event("UserPromptSubmit", prompt=text, **fields)


END = event("SessionEnd", reason="other")
NOTIFICATION = "<task-notification>\n<status>completed</status>\n</task-notification>"
A, B = {"q": 1}, {"q": 2}

SCENARIOS = [
    # What a chain is
    Scenario("reminders come at 3, 5 and 8 and then never again", [call()] * 12, {3: (3,), 5: (5,), 8: (8,)}),
    Scenario("another call starts anew", [call(A), call(A), call(B), call(A), call(A)], {}),
    Scenario("alternating calls repeat nothing", [call(A), call(B)] * 6, {}),
    Scenario("the same arguments of another tool are another call", [call(), call(), call(name="Glob")] * 2, {}),
    Scenario("names of tools are compared with their case", [call(), call(name="grep")] * 3, {}),
    Scenario("a result that changes changes nothing", [call(tool_response=str(n)) for n in range(3)], {3: (3,)}),
    Scenario(
        "nothing but name and arguments is compared",
        [call(call_id=f"t{n}", duration_ms=n, cwd=f"/{n}", prompt_id="p", permission_mode=str(n)) for n in range(3)],
        {3: (3,)},
    ),
    Scenario("another session is another chain", [call(), call(session="b"), call(), call(session="b")], {}),
    Scenario("however often: no more than three reminders", [call()] * 100, {3: (3,), 5: (5,), 8: (8,)}),
    # Work that looks like a loop to those who count names of tools, or compare loosely
    Scenario(
        "moving, searching and editing file after file is work",
        [
            call(arguments, name)
            for n in range(8)
            for name, arguments in (("Bash", {"command": f"git mv a{n} b"}), ("Grep", {"q": n}), ("Edit", {"f": n}))
        ],
        {},
    ),
    Scenario("reading a file block by block is work", [call({"f": "x", "offset": n * 2000}) for n in range(12)], {}),
    Scenario(
        "so is listing one directory after another", [call({"command": f"ls d{n}"}, "Bash") for n in range(12)], {}
    ),
    Scenario("numbers tell commands apart", [call({"command": f"gh pr merge {n}"}, "Bash") for n in range(6)], {}),
    Scenario("testing after every edit is work", [call({"c": "pytest"}), call({"n": 1}, "Edit")] * 5, {}),
    Scenario(
        "the same in other words is another call",
        [*[call({"command": "ls d/"}, "Bash")] * 6, *[call({"command": "ls -la d/"}, "Bash")] * 5],
        {3: (3,), 5: (5,), 9: (3,), 11: (5,)},
    ),
    Scenario(
        "polling is silent where its tool is excluded",
        [call({"chars": ""}, "write_stdin"), call(name="mcp__ci__check_status")] * 8,
        {},
        {"exclude": ["write_stdin", "mcp__*__check_*"]},
    ),
    # Canonical arguments
    Scenario(
        "the order of keys is irrelevant",
        [call({"a": 1, "b": {"c": 1, "d": 2}}), call({"b": {"d": 2, "c": 1}, "a": 1})] * 2,
        {3: (3,)},
    ),
    Scenario("the order of a list counts", [call({"x": [1, 2]}), call({"x": [2, 1]})] * 3, {}),
    Scenario("1 and 1.0 are one number", [call({"n": 1}), call({"n": 1.0}), call({"n": 1})], {3: (3,)}),
    Scenario("0 and -0.0 are one number", [call({"n": 0}), call({"n": -0.0}), call({"n": 0})], {3: (3,)}),
    Scenario("true is not 1", [call({"n": 1}), call({"n": True})] * 3, {}),
    Scenario("false is not 0, and null neither", [call({"n": 0}), call({"n": False}), call({"n": None})] * 2, {}),
    Scenario("1 is not its text", [call({"n": 1}), call({"n": "1"})] * 3, {}),
    Scenario("integers are compared exactly at any size", [call({"n": 2**70}), call({"n": 2**70 + 1})] * 3, {}),
    Scenario(
        "and are equal to the double of the same value",
        [call({"n": 10**22}), call({"n": 1e22}), call({"n": 10**22})],
        {3: (3,)},
    ),
    Scenario("malformed JSON kept as text is comparable", [call('{"command":')] * 3, {3: (3,)}),
    Scenario("text differs from the object that it spells", [call('{"a":1}'), call({"a": 1})] * 3, {}),
    Scenario("missing, null and {} differ", [bare(), call(None), call({})] * 3, {}),
    Scenario("missing arguments equal missing arguments", [bare()] * 3, {3: (3,)}),
    Scenario("white space in text counts", [call({"c": "ls"}), call({"c": "ls "})] * 3, {}),
    Scenario("long arguments are compared to their end", [call({"c": "x" * 5000 + end}) for end in "abab"], {}),
    Scenario("lone surrogates are text like any other", [call({"c": "\ud83d"})] * 3, {3: (3,)}),
    Scenario("and not the text of their escape", [call({"c": "\ud83d"}), call({"c": "\\ud83d"})] * 3, {}),
    # Labels
    Scenario(
        "the description of a shell command is left out",
        [call({"command": "pwd", "description": text}, "Bash") for text in ("Check", "Print", "Show")],
        {3: (3,)},
    ),
    Scenario(
        "with it or without it",
        [call({"command": "pwd", "description": "x"}, "Bash"), call({"command": "pwd"}, "Bash")] * 2,
        {3: (3,)},
    ),
    Scenario("for shell tools only", [call({"prompt": "p", "description": str(n)}, "Task") for n in range(4)], {}),
    Scenario("at the top level only", [call({"x": {"description": str(n)}}, "Bash") for n in range(4)], {}),
    Scenario(
        "[] gives exact matching back",
        [call({"command": "pwd", "description": str(n)}, "Bash") for n in range(4)],
        {},
        {"ignore_arguments": []},
    ),
    Scenario(
        "a star stands for any tool",
        [call({"path": "x", "why": str(n)}, "mcp__fs__read") for n in range(3)],
        {3: (3,)},
        {"ignore_arguments": ["mcp__*.why"]},
    ),
    Scenario(
        "but for no argument",
        [call({"path": "x", "why": str(n)}) for n in range(4)],
        {},
        {"ignore_arguments": ["Grep.*"]},
    ),
    Scenario(
        "the last dot ends the tool's name",
        [call({"path": "x", "why": str(n)}, "files.read") for n in range(3)],
        {3: (3,)},
        {"ignore_arguments": ["files.read.why"]},
    ),
    # The bridge that hides arguments
    Scenario("a hidden command is incomparable", [call({"command": ""}, "read")] * 5, {}),
    Scenario("Bash included", [call({"command": ""}, "Bash")] * 5, {}),
    Scenario("and it ends the chain before it", [call(), call(), call({"command": ""}, "read"), call()], {}),
    Scenario("an empty command beside other arguments is comparable", [call({"command": "", "x": 1})] * 3, {3: (3,)}),
    # Include and exclude
    Scenario(
        "excluded calls neither count nor reset",
        [call(), call(name="Todo"), call(), call(name="Todo"), call()],
        {5: (3,)},
        {"exclude": ["Todo"]},
    ),
    Scenario(
        "calls that are not included neither count nor reset",
        [call(), call(name="Todo"), call(), call(name="Todo"), call()],
        {5: (3,)},
        {"include": ["Grep"]},
    ),
    Scenario(
        "exclude wins over include",
        [call(name="mcp__x__poll")] * 5,
        {},
        {"include": ["mcp__*"], "exclude": ["*__poll"]},
    ),
    Scenario(
        "a star is the only wildcard",
        [call(name="Grep")] * 3,
        {3: (3,)},
        {"exclude": ["Gre?", "[G]rep", "rep", "Gre", "grep"]},
    ),
    Scenario("a star may stand for nothing", [call(name="Grep")] * 3, {}, {"exclude": ["*G*rep*"]}),
    # Outcomes
    Scenario("failed calls count", [call(hook="PostToolUseFailure")] * 3, {3: (3,)}),
    Scenario("failed and good calls are one chain", [call(), call(hook="PostToolUseFailure"), call()], {3: (3,)}),
    Scenario("denied calls count", [batch(call(tool_response="Permission has been denied."))] * 3, {3: (3,)}),
    # Batches
    Scenario("calls of one step count one by one", [batch(call(), call(), call())], {1: (3,)}),
    Scenario("of several thresholds in a batch the highest is said", [batch(*[call()] * 6)], {1: (5,)}),
    Scenario("a batch goes on with the chain before it", [call(), call(), batch(call(), call())], {3: (3,)}),
    Scenario("also when the batch goes on with another call", [batch(*[call(A)] * 3, call(B))], {1: (3,)}),
    Scenario("each run is said once, in order", [batch(*[call(A)] * 5, *[call(B)] * 3)], {1: (5, 3)}),
    Scenario("the same call in two runs is said twice", [batch(*[call(A)] * 3, call(B), *[call(A)] * 3)], {1: (3, 3)}),
    Scenario(
        "untracked calls in a batch are transparent",
        [batch(call(), call(name="Todo"), call(), call())],
        {1: (3,)},
        {"exclude": ["Todo"]},
    ),
    Scenario("an empty batch is nothing", [call(), call(), batch(), call()], {4: (3,)}),
    # Reported twice
    Scenario("a call reported twice counts once", [call(call_id=f"t{n // 2}") for n in range(6)], {5: (3,)}),
    Scenario(
        "by whatever events",
        [e for n in range(3) for e in (call(call_id=f"t{n}", hook="PostToolUseFailure"), batch(call(call_id=f"t{n}")))],
        {5: (3,)},
    ),
    Scenario(
        "in any order within a step",
        [
            call(A, call_id="b"),
            call(A, call_id="a"),
            batch(call(A, call_id="a"), call(A, call_id="b"), call(A, call_id="c")),
        ],
        {3: (3,)},
    ),
    Scenario(
        "the same id with other arguments is a new call",
        [call(A, call_id="t"), call(B, call_id="t"), call(A, call_id="u"), call(B, call_id="u")],
        {},
    ),
    Scenario(
        "a reused id does not hide a new call",
        [call(A, call_id="t"), call(B, call_id="t"), call(B, call_id="u"), call(B, call_id="v")],
        {4: (3,)},
    ),
    Scenario("without ids every report is a call", [call()] * 3, {3: (3,)}),
    Scenario(
        "Qwen Code: the id of the call, not of the report",
        [e for n in range(3) for e in (call(call_id=f"r{n}", tool_call_id=f"c{n}"), batch(call(call_id=f"c{n}")))],
        {5: (3,)},
    ),
    # Agents
    Scenario("each agent has its own chain", [call(), call(agent="a"), call(), call(agent="a"), call(agent="b")], {}),
    Scenario(
        "a subagent is reminded where it repeats",
        [call(), call(agent="a"), call(agent="a"), call(agent="a"), call()],
        {4: (3,)},
    ),
    Scenario(
        "null and empty mean the main agent",
        [call(), {**call(), "agent_id": None}, {**call(), "agent_id": ""}],
        {3: (3,)},
    ),
    Scenario("an agent whose mark flips is two agents", [call(agent="a"), call(agent="b")] * 2, {}),
    Scenario(
        "two agents that read the same file in turn do not add up",
        [call(agent="a"), call(agent="b"), call(agent="a"), call(agent="b"), call(agent="a")],
        {5: (3,)},
    ),
    Scenario("agent_type alone marks no subagent", [call(), {**call(), "agent_type": "x"}, call()], {3: (3,)}),
    # Prompts
    Scenario("a person's prompt resets", [call(), call(), prompt(), call(), call()], {}),
    Scenario(
        "only the chain of the agent it is submitted to",
        [call(agent="a"), call(agent="a"), prompt(), call(agent="a")],
        {4: (3,)},
    ),
    Scenario(
        "a subagent's prompt resets the subagent's",
        [call(agent="a"), call(agent="a"), prompt(agent="a"), call(agent="a")],
        {},
    ),
    Scenario("source user resets", [call(), call(), prompt(source="user"), call()], {}),
    Scenario("source sdk resets", [call(), call(), prompt(source="sdk"), call()], {}),
    *(
        Scenario(f"source {source} does not", [call(), call(), prompt(source=source), call()], {4: (3,)})
        for source in ("system", "loop_wakeup", "schedule_wakeup", "poll_event", "something-new")
    ),
    Scenario("a task notification does not", [call(), call(), prompt(f"\n {NOTIFICATION}\n"), call()], {4: (3,)}),
    Scenario("unless a person wrote more to it", [call(), call(), prompt(f"{NOTIFICATION} go on"), call()], {}),
    Scenario("or its source says so", [call(), call(), prompt(NOTIFICATION, source="user"), call()], {}),
    Scenario(
        "the prompt being worked on does not, as Qwen Code sends it",
        [*[call(prompt_id="p")] * 2, prompt("", prompt_id="p"), call(prompt_id="p")],
        {4: (3,)},
    ),
    Scenario(
        "unless it is marked as submitted",
        [*[call(prompt_id="p")] * 2, prompt("x", prompt_id="p", submitted_prompt="x"), call(prompt_id="p")],
        {},
    ),
    Scenario(
        "a prompt with another id resets", [*[call(prompt_id="p")] * 2, prompt(prompt_id="q"), call(prompt_id="q")], {}
    ),
    Scenario(
        "compaction does not reset",
        [call(), call(), event("PreCompact"), event("SessionStart", source="compact"), call()],
        {5: (3,)},
    ),
    Scenario(
        "content parts are a prompt",
        [call(), call(), {**prompt(), "prompt": [{"type": "text", "text": "go on"}]}, call()],
        {},
    ),
    # Sessions
    Scenario("a session that ended starts fresh", [call(), call(), END, call()], {}),
    Scenario(
        "events that are not listed are ignored",
        [call(), call(), call(hook="PreToolUse"), call(hook="PermissionRequest"), call()],
        {5: (3,)},
    ),
    Scenario(
        "Gemini CLI's names are the same events",
        [*[call(hook="AfterTool")] * 2, event("BeforeAgent", prompt="x"), *[call(hook="AfterTool")] * 3],
        {6: (3,)},
    ),
    # Thresholds
    Scenario("thresholds are sorted", [call()] * 5, {2: (2,), 4: (4,)}, {"thresholds": [4, 2]}),
    Scenario("one threshold is enough", [call()] * 5, {2: (2,)}, {"thresholds": [2]}),
]
