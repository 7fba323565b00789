"""The hook commands: bytes in, bytes out, and the one place where nothing may go wrong loudly."""

import os
import select
import sys
import time

from repeat_guard_cli import config, guard, log, paths, payload, wire
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.store import SessionFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STDIN, STDOUT, STDERR = 0, 1, 2
OK, FAILED = 0, 1
"""The only exit codes. Agents read 2 as "block": on a prompt it erases what the person wrote."""

READ_SECONDS = {payload.POST_TOOL_USE: 5.0, payload.USER_PROMPT_SUBMIT: 5.0, payload.SESSION_END: 1.0}
LOCK_SECONDS = {payload.POST_TOOL_USE: 2.0, payload.USER_PROMPT_SUBMIT: 2.0, payload.SESSION_END: 1.0}
"""Codex 0.171.0 ends a session-end hook after at most 3 s."""

MAX_INPUT_BYTES = 512 << 20
"""Reading an event takes several times its size; a larger one is read to its end but not kept."""
_CHUNK = 1 << 20


def run(command: str, environment: "Mapping[str, str] | None" = None) -> int:
    """Serve one hook event on the standard streams.

    Args:
        command: one of `payload.COMMANDS`.
        environment: the process's variables by default.

    Returns:
        The exit code, `OK` or `FAILED`; with `FAILED` stdout is empty and stderr holds one line.
    """
    environment = os.environ if environment is None else environment
    state_dir = ""
    try:
        data = read_stdin(READ_SECONDS[command])
        if config.is_off(environment):
            return OK
        state_dir = paths.state_dir(environment)
        respond(command, data, environment, state_dir, time.time(), _say)
        return OK
    except GuardError as error:
        message = str(error)
        log_text = f"{command}: {message}"
    except KeyboardInterrupt:
        message = log_text = "interrupted"
    except Exception as error:  # noqa: BLE001 - the boundary: whatever it is, the agent must not notice
        import traceback

        message = f"internal error ({type(error).__name__}); this event was not counted. "
        message += f"Please report it with {paths.log_file(state_dir)}"
        # Where, and of what kind; not the exception's text, which may hold what it failed on.
        log_text = f"{command}: {type(error).__name__}\n{''.join(traceback.format_tb(error.__traceback__))}"
    complain(message)
    if state_dir:
        log.note(state_dir, log_text)
    return FAILED


def _say(reply: bytes) -> None:
    """Write a reply to standard output.

    Raises:
        GuardError: nobody can have read it.
    """
    try:
        if sys.stdout is None:  # closed: the number belongs to another file by now, such as the lock
            raise OSError(9, "Bad file descriptor")
        write_all(STDOUT, reply)
    except OSError as error:
        raise GuardError(f"can't write the reply: {error.strerror}; this event was not counted") from None


def _unheard(_reply: bytes) -> None:
    pass


def respond(
    command: str,
    data: bytes,
    environment: "Mapping[str, str]",
    state_dir: str,
    now: float,
    say: "Callable[[bytes], None]" = _unheard,
) -> None:
    """Do what an event asks for.

    Args:
        command: one of `payload.COMMANDS`.
        data: what the agent sent.
        environment: the process's variables.
        state_dir: the state directory.
        now: seconds since the epoch.
        say: takes the reply, one line of JSON, where there is one; what it raises leaves the state as it was.

    Raises:
        GuardError: the input, the settings or the state directory are wrong; nothing was changed.
    """
    event = payload.read_event(command, wire.loads(data))
    del data
    if event is None:
        return
    file = SessionFile(state_dir, event.session_id, LOCK_SECONDS[command])
    if command == payload.POST_TOOL_USE:
        _count(event, file, environment, now, say)
    elif command == payload.USER_PROMPT_SUBMIT:
        _reset(event, file, now)
    else:
        from repeat_guard_cli.sweep import sweep

        if file.exists():
            with file:
                file.remove()
        sweep(state_dir, now)


def _count(
    event: payload.Event,
    file: SessionFile,
    environment: "Mapping[str, str]",
    now: float,
    say: "Callable[[bytes], None]",
) -> None:
    settings = config.load(environment, event.cwd, file.state_dir)
    if not any(guard.is_tracked(call.tool_name, settings.include, settings.exclude) for call in event.calls):
        return
    with file:
        session = file.load()
        runs = guard.record(session.use(event.agent_id), event, settings, now)
        session.updated_at = now
        if not runs:
            file.save(session)
        else:
            from repeat_guard_cli import reminder

            text = reminder.compose(runs, settings)
            said = {"hookEventName": event.name, "additionalContext": text}
            reply = wire.dumps({"hookSpecificOutput": said}).encode() + b"\n"
            file.save(session, lambda: say(reply))


def _reset(event: payload.Event, file: SessionFile, now: float) -> None:
    from repeat_guard_cli import prompts
    from repeat_guard_cli.model import bounded_id
    from repeat_guard_cli.sweep import sweep_daily

    if file.exists():
        with file:
            session = file.load()
            agent = session.agents.get(bounded_id(event.agent_id))
            if agent and agent.chain and prompts.resets(event, agent):
                agent.chain = None
                session.updated_at = now
                file.save(session)
            elif not file.exists():
                file.remove()  # the session ended meanwhile: a lock without it would stay behind
    sweep_daily(file.state_dir, now)


def read_stdin(seconds: float) -> bytes:
    """Read standard input to its end, or what came of it within a time: some hosts never close the pipe.

    Raises:
        GuardError: standard input is a terminal, can't be read, or holds more than `MAX_INPUT_BYTES`.
    """
    if sys.stdin is None:  # closed: the number may belong to another file by now
        return b""
    if os.isatty(STDIN):
        raise GuardError(
            "this command is for agents and reads a hook event from standard input; "
            "try `repeat-guard demo`, or pipe in a file of examples/"
        )
    chunks: list[bytes] = []
    deadline = time.monotonic() + seconds
    try:
        size = (_read_in_background if os.name == "nt" else _read_until)(chunks, deadline)
    except OSError as error:
        raise GuardError(f"can't read standard input: {error.strerror}") from None
    if size > MAX_INPUT_BYTES:
        raise GuardError(f"the input holds more than {MAX_INPUT_BYTES:,} bytes; this event was not counted")
    return b"".join(chunks)


def _read_until(chunks: list[bytes], deadline: float) -> int:
    """Read what there is; after the deadline once more, because a machine that was busy is no host that was slow."""
    size, left = 0, 1.0
    while left > 0:
        left = max(0.0, deadline - time.monotonic())
        chunk = os.read(STDIN, _CHUNK) if select.select([STDIN], [], [], left)[0] else b""
        if not chunk:
            break
        size += len(chunk)
        if size <= MAX_INPUT_BYTES:
            chunks.append(chunk)
    return size


def _read_in_background(chunks: list[bytes], deadline: float) -> int:
    """Windows can't wait for a pipe with a deadline; a thread that is left behind can."""
    import _thread

    ended = _thread.allocate_lock()
    ended.acquire()
    size = 0

    def read() -> None:
        nonlocal size
        while chunk := os.read(STDIN, _CHUNK):
            size += len(chunk)
            if size <= MAX_INPUT_BYTES:
                chunks.append(chunk)
        ended.release()

    _thread.start_new_thread(read, ())
    ended.acquire(timeout=max(0.0, deadline - time.monotonic()))
    return size


def write_all(file: int, data: bytes) -> None:
    """Write to a file descriptor without a buffer that might be lost.

    Raises:
        OSError: the reader is gone or the descriptor closed.
    """
    while data:
        data = data[os.write(file, data) :]


def complain(message: str) -> None:
    """Say in one line on standard error what is wrong; if that fails, nobody is there to be told."""
    if sys.stderr is None:  # closed: the number may belong to another file by now
        return
    line = " ".join(message.split())
    try:
        write_all(STDERR, f"repeat-guard: {line[:1000]}\n".encode(errors="backslashreplace"))
    except OSError:
        pass
