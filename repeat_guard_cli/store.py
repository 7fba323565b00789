"""The state on disk: one small file for each session, replaced as a whole under a lock.

A kill at any instant leaves the old state or the new one: what is written is complete before it gets its name. It is
not forced to the disk: after a power cut a damaged file costs a chain, which is cheaper than a sync at every call.
"""

import os
import sys
import time

from repeat_guard_cli import log, model, paths, wire
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.fingerprint import digest

if sys.platform == "win32":
    import msvcrt

    def _lock_now(file: int) -> bool:
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _lock_now(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

SUFFIX = ".json"
LOCK_SUFFIX = ".lock"
TEMPORARY_SUFFIX = ".tmp"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10)))
)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_BLOCK = getattr(os, "O_NONBLOCK", 0)
_KIND, _DIRECTORY, _REGULAR = 0o170000, 0o040000, 0o100000
MAX_FILE_BYTES = 4 * model.MAX_BYTES
"""A larger file is not ours: it is damaged."""


def file_name(session_id: str) -> str:
    """Return the name for a session's files, without suffix.

    A plain id is its own name. Others become a digest: replacing characters would give two sessions one file, and so
    would upper case on file systems that fold it.
    """
    plain = 0 < len(session_id) <= 80 and session_id[0] != "-" and _PLAIN.issuperset(session_id)
    return session_id if plain and session_id not in _DEVICES else f"_{digest(session_id)}"


def make_private_dir(path: str) -> None:
    """Make a directory and those above it, for this user alone whatever the umask.

    Raises:
        OSError: it can't be made, or something else has its name.
    """
    try:
        try:
            os.mkdir(path, 0o700)
        except FileNotFoundError:
            make_private_dir(os.path.dirname(path))
            os.mkdir(path, 0o700)
    except FileExistsError:  # another process may make it at any moment
        if not os.path.isdir(path):
            raise


def make_own_dir(path: str) -> None:
    """Make a directory of the state directory, unless it is there.

    Raises:
        OSError: it can't be made, or something else has its name. A link has no business there: what it leads to is
            not the program's to write to, nor to sweep.
    """
    try:
        kind = os.lstat(path).st_mode & _KIND
    except FileNotFoundError:
        make_private_dir(path)
        return
    if kind != _DIRECTORY:
        raise NotADirectoryError(f"{path} is a link or a file, where a directory of its own should be")


def read_file(path: str, limit: int) -> bytes:
    """Read a regular file, not following a link in its last place.

    Raises:
        OSError: it can't be read.
        ValueError: it is no regular file, or larger than `limit` bytes.
    """
    file = os.open(path, os.O_RDONLY | _NO_FOLLOW | _NO_BLOCK)
    try:
        found = os.fstat(file)
        if found.st_mode & _KIND != _REGULAR:
            raise ValueError("it is no regular file")
        if found.st_size > limit:
            raise ValueError(f"it holds more than {limit:,} bytes")
        data = os.read(file, limit + 1)
        while more := os.read(file, limit + 1):
            data += more
            if len(data) > limit:  # some of the kernel's own files give no size and have no end
                raise ValueError(f"it holds more than {limit:,} bytes")
        return data
    finally:
        os.close(file)


def write_file(path: str, data: bytes, temporary: str, before: "Callable[[], None] | None" = None) -> None:
    """Replace a file as a whole.

    Args:
        path: the file; a link in its place is replaced, not followed.
        data: what it is to hold.
        temporary: a name in the same directory, always the same, so that killed processes leave one file at most; what
            is there is removed. Without a lock, writers of one name may leave one another's file, or a part of it.
        before: called when all is written but the old file still in place; what it raises leaves the old file.

    Raises:
        OSError: it can't be written; the old file is as it was.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW
    try:
        file = os.open(temporary, flags, 0o600)
    except FileExistsError:
        os.unlink(temporary)
        file = os.open(temporary, flags, 0o600)
    try:
        try:
            while data:
                data = data[os.write(file, data) :]
        finally:
            os.close(file)
        if before:
            before()
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class SessionFile:
    """A session's state under its lock; use it in a `with` statement.

    Args:
        state_dir: the state directory; made when the session's first call comes.
        session_id: any text.
        wait: seconds to wait for the lock.

    Raises:
        GuardError: from `with`, where the directory can't be used or the lock is held for too long.
    """

    __slots__ = ("_lock", "base", "session_id", "state_dir", "wait")

    def __init__(self, state_dir: str, session_id: str, wait: float) -> None:
        self.state_dir = state_dir
        self.session_id = session_id
        self.wait = wait
        self.base = os.path.join(paths.sessions_dir(state_dir), file_name(session_id))
        self._lock = -1

    def __enter__(self) -> "SessionFile":
        path = self.base + LOCK_SUFFIX
        deadline = time.monotonic() + self.wait
        pause = 0.0005
        try:
            while not self._try_lock(path):
                if time.monotonic() > deadline:
                    raise GuardError(
                        f"another process holds {path} for more than {self.wait:g} s; this event was not counted. "
                        "Look for a stopped repeat-guard process"
                    )
                time.sleep(pause)
                pause = min(2 * pause, 0.01)
        except OSError as error:
            raise GuardError(
                f"can't use the state directory {self.state_dir}: {_reason(error)}. Make it writable, "
                "or name another in REPEAT_GUARD_STATE_DIR"
            ) from None
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        self._unlock()

    def _unlock(self) -> None:
        os.close(self._lock)
        self._lock = -1

    def _try_lock(self, path: str) -> bool:
        """Lock the lock file, unless another process has it or takes it away meanwhile."""
        self._lock = _open_lock(path)
        try:
            if _lock_now(self._lock):
                # A session's end removes the lock file: whoever opened it before that holds a lock on nothing.
                held, named = os.fstat(self._lock), os.stat(path, follow_symlinks=False)
                if (held.st_ino, held.st_dev) == (named.st_ino, named.st_dev):
                    return True
        except FileNotFoundError:
            pass
        except OSError:
            self._unlock()
            raise
        self._unlock()
        return False

    def load(self) -> model.Session:
        """Return what is remembered of the session; nothing, and a line in the log, where the file is damaged."""
        path = self.base + SUFFIX
        try:
            session = read_session(path)
            if session.session_id != model.bounded_id(self.session_id):
                raise ValueError("it belongs to another session")
            return session
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            log.note(self.state_dir, f"{path} is damaged and will be replaced: {error}")
        return model.Session(model.bounded_id(self.session_id))

    def exists(self) -> bool:
        """Tell whether anything is remembered of the session; needs no lock."""
        return os.path.lexists(self.base + SUFFIX)

    def save(self, session: model.Session, before: "Callable[[], None] | None" = None) -> None:
        """Replace what is remembered of the session.

        Args:
            session: what to remember from now on.
            before: called when nothing but the file's new name is missing; what it raises leaves the old state.

        Raises:
            GuardError: it can't be written; the old state is as it was.
        """
        try:
            data = wire.dumps(model.to_json(session)).encode()
        except (ValueError, RecursionError):  # in a field of another version: 1e400, or nested to the limit
            model.forget_unknown(session)
            data = wire.dumps(model.to_json(session)).encode()
        while len(data) > model.MAX_BYTES and model.shrink(session):
            data = wire.dumps(model.to_json(session)).encode()
        path = self.base + SUFFIX
        try:
            write_file(path, data, self.base + TEMPORARY_SUFFIX, before)
        except OSError as error:
            raise GuardError(f"can't write {path}: {_reason(error)}. Free some space or make it writable") from None

    def remove(self) -> bool:
        """Forget the session, its lock file included.

        Returns:
            Whether there was anything to forget.

        Raises:
            GuardError: the file can't be removed.
        """
        existed = self.exists()
        # The lock file goes last: while it has its name, no other process gets past it.
        for suffix in (SUFFIX, TEMPORARY_SUFFIX, LOCK_SUFFIX):
            try:
                os.unlink(self.base + suffix)
            except FileNotFoundError:
                continue
            except OSError as error:
                if suffix == LOCK_SUFFIX:
                    break  # Windows can't remove a file that is open; a later sweep does
                raise GuardError(f"can't remove {self.base + suffix}: {_reason(error)}. Remove it by hand") from None
        return existed


def read_session(path: str) -> model.Session:
    """Read a session file.

    Raises:
        OSError: it can't be read.
        ValueError: it holds no session of this layout.
    """
    data = read_file(path, MAX_FILE_BYTES)
    try:
        value = wire.loads(data)
    except GuardError as error:
        raise ValueError(str(error).replace("the input", "it")) from None
    return model.from_json(value)


def _open_lock(path: str) -> int:
    make_own_dir(os.path.dirname(path))
    flags = os.O_RDWR | os.O_CREAT | _NO_FOLLOW
    try:
        return os.open(path, flags, 0o600)
    except OSError:
        if not os.path.islink(path):
            raise
        os.unlink(path)
    return os.open(path, flags, 0o600)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
