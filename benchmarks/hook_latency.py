"""What a hook costs: the whole process against the bare interpreter, side by side in one run.

    python benchmarks/hook_latency.py [--rounds 40] [--sessions 10000]

Run it with the interpreter of an environment where `repeat-guard` is installed. Every payload goes through a pipe, as
agents send it. "bare" is `python -I -c pass`; "loads" also reads the payload and hands it to `orjson.loads`.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from paired import BARE, SCRIPTS, Process, machine, medians, ratio, seconds

from repeat_guard_cli import hook, payload

GUARD = str(SCRIPTS / "repeat-guard")
LOADS = (BARE[0], "-I", "-c", "import sys, orjson; orjson.loads(sys.stdin.buffer.read())")
SIZES = {"1 KB": 1_000, "100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000}
LINE = "src/app/views.py:117:    return render(request, 'orders/détail.html', {\"order\": order})\n"
MATCH = {"path": "src/app/views.py", "line": 117, "column": 12, "text": "handle_retry(order)"}
CONFIG = 'thresholds = [3, 5, 8]\nexclude = ["mcp__ci__*", "TaskOutput"]\n'


def tool_call(session_id: str, size: int, *, matches: bool = False) -> Callable[[int], bytes]:
    """Return payloads of a tool call, the same call with an id of its own in each round, about `size` bytes long.

    Args:
        session_id: the session's id.
        size: bytes.
        matches: whether the result is many small objects, the hardest to read, and not one text.
    """
    event = {
        "session_id": session_id,
        "transcript_path": f"/home/dev/.claude/projects/-home-dev-shop/{session_id}.jsonl",
        "cwd": "/home/dev/shop",
        "permission_mode": "default",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "grep -rn handle_retry src", "description": "Look for the handler"},
        "tool_response": {},
        "tool_use_id": "toolu_NUMBER",
    }
    room = max(0, size - len(json.dumps(event)))
    lines = room // len(json.dumps(MATCH if matches else LINE))
    event["tool_response"] = {"matches": [MATCH] * lines} if matches else {"stdout": LINE * lines, "stderr": ""}
    data = json.dumps(event).encode()
    return lambda number: data.replace(b"NUMBER", b"%06d" % number, 1)


def prompt(session_id: str) -> Callable[[int], bytes]:
    """Return the payload of a prompt."""
    event = {
        "session_id": session_id,
        "hook_event_name": "UserPromptSubmit",
        "cwd": "/home/dev/shop",
        "prompt": "go on",
    }
    data = json.dumps(event).encode()
    return lambda _number: data


def environment(home: Path) -> dict[str, str]:
    """Return the variables of an agent whose home is `home`."""
    return {"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8"}


def fill(home: Path, sessions: int, calls: int) -> None:
    """Make a state as hooks leave it: so many sessions, the last of them with a chain of so many calls."""
    variables = environment(home)
    state_dir = str(home / ".local/state/repeat-guard")
    for number in range(sessions):
        data = tool_call(f"session-{number}", 1_000)(0)
        hook.respond(payload.POST_TOOL_USE, data, variables, state_dir, time.time())
    call = tool_call(f"session-{sessions - 1}", 1_000)
    for number in range(1_000_000 - calls, 1_000_000):
        hook.respond(payload.POST_TOOL_USE, call(number), variables, state_dir, time.time())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--sessions", type=int, default=10_000, help="in the larger of the two state directories")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="repeat-guard-benchmark-") as folder:
        homes = {name: Path(folder, name) for name in ("few", "many", "long", "configured")}
        for home in homes.values():
            home.mkdir()
        fill(homes["few"], 1, 0)
        fill(homes["many"], options.sessions, 0)
        fill(homes["long"], 1, 10_000)
        settings = homes["configured"] / ".config/repeat-guard/config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(CONFIG)
        os.utime(settings, (time.time() - 60, time.time() - 60))
        fill(homes["configured"], 1, 0)

        print(f"{machine()}; medians of {options.rounds}\n")
        print(f"{'':44}{'ms':>8}{'/ bare':>9}{'/ loads':>9}")
        for name, size in SIZES.items():
            guard = Process((GUARD, "post-tool-use"), tool_call("session-0", size), environment(homes["few"]))
            report(f"post-tool-use, {name}", guard, options.rounds)
        guard = guard._replace(stdin=tool_call("session-0", SIZES["10 MB"], matches=True))
        report("post-tool-use, 10 MB of small objects", guard, options.rounds)
        print()
        few = Process((GUARD, "post-tool-use"), tool_call("session-0", 1_000), environment(homes["few"]))
        many = f"session-{options.sessions - 1}"
        compare(
            {
                "1 session, a chain of 1, no config file": few,
                f"{options.sessions:,} sessions": Process(
                    few.arguments, tool_call(many, 1_000), environment(homes["many"])
                ),
                "a chain of 10,000": few._replace(environment=environment(homes["long"])),
                "a config file": few._replace(environment=environment(homes["configured"])),
                "user-prompt-submit": Process(
                    (GUARD, "user-prompt-submit"), prompt("session-0"), environment(homes["few"])
                ),
            },
            options.rounds,
        )


def report(name: str, guard: Process, rounds: int) -> None:
    """Print a line: the hook, and its ratio to the bare interpreter and to one that only loads the payload."""
    taken = seconds(
        {"guard": guard, "bare": guard._replace(arguments=BARE), "loads": guard._replace(arguments=LOADS)}, rounds
    )
    print(f"{name:44}{medians(taken)['guard']:8.1f}{ratio(taken, 'guard', 'bare'):9.2f}", end="")
    print(f"{ratio(taken, 'guard', 'loads'):9.2f}")


def compare(guards: dict[str, Process], rounds: int) -> None:
    """Print a line for each, all measured in the same rounds."""
    taken = seconds({**guards, "bare": next(iter(guards.values()))._replace(arguments=BARE)}, rounds)
    for name in taken:
        print(f"{name:44}{medians(taken)[name]:8.1f}{ratio(taken, name, 'bare'):9.2f}")


if __name__ == "__main__":
    main()
