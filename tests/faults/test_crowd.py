"""Many hook processes at once: no count lost, no reminder doubled or missing."""

import json
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from repeat_guard_cli.store import make_private_dir
from tests.faults.support import AT_ONCE, Figure, call, count, feed, finish, judge, payload_of, start
from tests.support import SESSION, Guard, Result


def all_at_once(guard: Guard, events: list[bytes], *commands: str) -> tuple[list[Result], float]:
    """Start a process for each event, let all of them get as far as reading, then feed them; return seconds too."""
    processes = [start(guard, commands[n % len(commands)] if commands else "post-tool-use") for n in range(len(events))]
    time.sleep(0.3)
    begin = time.monotonic()
    for process, event in zip(processes, events, strict=True):
        feed(process, event)
    results = [finish(process) for process in processes]
    return results, time.monotonic() - begin


def told(results: list[Result]) -> list[int]:
    """Return the counts that reminders tell, in order."""
    return sorted(int(n) for result in results for n in re.findall(r"called (\d+) times", result.reminder))


def counted(results: list[Result]) -> int:
    """Return how many were counted: all of them, but for those that waited 2 s for the lock and said so."""
    for result in results:
        judge(result)
        assert result.code == 0 or "another process holds" in result.err
    return sum(result.code == 0 for result in results)


def test_one_session(guard: Guard, figure: Figure) -> None:
    results, seconds = all_at_once(guard, [call(number) for number in range(AT_ONCE)])
    done = counted(results)
    figure(f"{AT_ONCE} processes at once on one session in {seconds:.2f} s, {done} counted")
    assert count(guard) == done
    assert told(results) == [3, 5, 8]
    assert done == AT_ONCE
    assert guard.files() == [f"state/sessions/{SESSION}.json", f"state/sessions/{SESSION}.lock"]


def test_many_sessions_and_agents(guard: Guard, figure: Figure) -> None:
    """Twenty sessions of two agents each."""
    places = [(f"session-{n % 20}", f"agent-{n // 20 % 2}") for n in range(AT_ONCE)]
    events = [call(n, session_id=session, agent_id=agent) for n, (session, agent) in enumerate(places)]
    results, seconds = all_at_once(guard, events)
    done = counted(results)
    figure(f"{AT_ONCE} processes at once over 20 sessions and 40 agents in {seconds:.2f} s, {done} counted")
    expected = Counter(places)
    assert {place: count(guard, *place) for place in expected} == expected
    assert told(results) == sorted(t for n in expected.values() for t in (3, 5, 8) if t <= n)
    assert len(guard.files()) == 2 * 20


def test_one_call_reported_by_all(guard: Guard) -> None:
    """The same hook in user and project settings runs twice at the same moment, with identical input."""
    for number in range(4):
        results, _ = all_at_once(guard, [call(number)] * 6)
        assert counted(results) == 6
        assert count(guard) == number + 1
        assert told(results) == ([3] if number == 2 else [])


def test_directories_are_made_by_whoever_comes_first(tmp_path: Path) -> None:
    """Sixteen threads at a time; between two system calls of one, another makes the same directory."""
    with ThreadPoolExecutor(16) as pool:
        for number in range(100):
            path = str(tmp_path / str(number) / "a" / "b" / "c")
            for future in [pool.submit(make_private_dir, path) for _ in range(16)]:
                future.result()


def test_the_first_call_ever(guard: Guard) -> None:
    """Nobody has made the directories yet, and all of them try."""
    for number in range(5):
        guard.state = guard.home / f"new-{number}" / "a" / "b" / "state"
        guard.environment["REPEAT_GUARD_STATE_DIR"] = str(guard.state)
        results, _ = all_at_once(guard, [call(n) for n in range(20)])
        assert [judge(result).err for result in results if result.code] == []
        assert count(guard) == 20


def test_calls_prompts_and_ends_at_once(guard: Guard) -> None:
    """A session's end removes the lock file that others wait for. It waits 1 s for its input, so not too many start."""
    kinds = ("post-tool-use", "session-end", "user-prompt-submit", "post-tool-use")
    for _ in range(AT_ONCE // 20):
        events = [json.dumps(payload_of(kinds[n % 4], tool_use_id=f"toolu_{n}")).encode() for n in range(20)]
        results, _ = all_at_once(guard, events, *kinds)
        assert counted(results) == len(events)
    guard.run("reset", "--all")
    assert not list((guard.state / "sessions").iterdir())
