"""An agent's settings file on disk: read whole, replaced whole, with what was there before kept beside it."""

import difflib
import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from repeat_guard_cli import store
from repeat_guard_cli.errors import GuardError
from repeat_guard_cli.fingerprint import digest
from repeat_guard_cli.people import json_text, registration

BACKUP = ".before-repeat-guard"


class Content(NamedTuple):
    """What a file holds; `existed` tells an empty one from none."""

    text: str
    existed: bool


class Record(NamedTuple):
    """What `install` did to a file, for `uninstall` to give back every byte.

    Attributes:
        written: a digest of what it wrote last.
        existed: whether there was a file before.
        folders: how many folders it made for it.
    """

    written: str
    existed: bool
    folders: int


def read(path: Path) -> Content:
    """Read a settings file.

    Raises:
        GuardError: it is there but can't be read as text.
    """
    try:
        return Content(path.read_bytes().decode(), True)
    except (FileNotFoundError, NotADirectoryError):
        return Content("", False)
    except OSError as error:
        raise GuardError(f"can't read {path}: {error.strerror}; nothing was changed") from None
    except UnicodeDecodeError:
        raise GuardError(f"{path} is not UTF-8; nothing was changed. Save it as UTF-8") from None


def write(path: Path, text: str, like: Path | None = None) -> int:
    """Replace a file as a whole, through links to it, its mode kept; folders are made.

    Args:
        path: the file.
        text: all of what it is to hold.
        like: whose mode a new file takes, `None`: as the umask says.

    Returns:
        How many folders were made.

    Raises:
        GuardError: it can't be written; the old file is as it was.
    """
    target = path.resolve()
    try:
        made = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        model = target if target.exists() else like
        mode = model.stat().st_mode & 0o7777 if model else 0o666 & ~_umask()
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(13, "it is read-only")
        temporary = target.with_name(f"{target.name}.repeat-guard-{os.getpid()}")
        store.write_file(str(target), text.encode(), str(temporary))
        target.chmod(mode)
    except OSError as error:
        raise GuardError(f"can't write {path}: {error.strerror}; nothing was changed. Make it writable") from None
    return len(made)


def _umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def changes(path: Path, before: str, after: str) -> str:
    """Return what changes in a file as a unified diff."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"{path} (before)", f"{path} (after)"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in lines)


def backup_path(path: Path) -> Path:
    """Return where what was in a file before us is kept."""
    return path.with_name(path.name + BACKUP)


def remember(state_dir: str, path: Path, content: Content, written: str, folders: int) -> None:
    """Keep what a file held before us beside it, and what we wrote in the state directory.

    What we wrote ourselves is never taken for what was there before: after a second `install` the first one's backup
    stays, unless someone else changed the file meanwhile.

    Raises:
        GuardError: it can't be kept.
    """
    earlier = recall(state_dir, path)
    if earlier and earlier.written == fingerprint(content.text):
        record = earlier._replace(written=fingerprint(written))
    else:
        before = content
        if not json_text.is_blank(content.text) and registration.entries(json_text.load(content.text)):
            before = guess(content.text, read(backup_path(path)))
        if before.existed:
            write(backup_path(path), before.text, like=path)  # settings may hold secrets
        record = Record(fingerprint(written), before.existed, folders)
    file = _record_file(state_dir, path)
    try:
        store.make_private_dir(os.path.dirname(file))
        store.write_file(file, json.dumps(record._asdict()).encode(), f"{file}.{os.getpid()}")
    except OSError as error:
        raise GuardError(f"can't write {file}: {error.strerror}; make the state directory writable") from None


def guess(text: str, backup: Content) -> Content:
    """Tell what a file held before us when the state directory doesn't say: it may have been deleted.

    Args:
        text: what it holds now, our hooks among it.
        backup: what is beside it.
    """
    left = registration.take_out(text, document(backup))
    if backup.existed and _sorted(json_text.load(left)) == _sorted(document(backup) or {}):
        return backup
    if not backup.existed and json_text.load(left) == {} and text == registration.new_file(text):
        return Content("", False)
    return Content(left, True)


def document(content: Content) -> Any:
    """Return what a file holds, `None` if it holds nothing, or no JSON."""
    try:
        return None if json_text.is_blank(content.text) else json_text.load(content.text)
    except ValueError:
        return None


def _sorted(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def recall(state_dir: str, path: Path) -> Record | None:
    """Return what `install` did to a file, `None` if that is not known (any more)."""
    try:
        return Record(**json.loads(Path(_record_file(state_dir, path)).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def forget(state_dir: str, path: Path) -> None:
    """Forget what `install` did to a file."""
    Path(_record_file(state_dir, path)).unlink(missing_ok=True)


def _record_file(state_dir: str, path: Path) -> str:
    return os.path.join(state_dir, "installed", f"{digest(str(path.absolute()))}.json")


def fingerprint(text: str) -> str:
    """Digest a file's text."""
    return hashlib.sha256(text.encode()).hexdigest()
