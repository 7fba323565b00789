"""How values from outside are written for people and their scripts."""

import json
from datetime import datetime, timezone


def moment(seconds: float) -> str | None:
    """Write seconds since the epoch as ISO 8601 in UTC, to the millisecond; `None` where that is no date."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None


def clean(text: str) -> str:
    """Make text from outside printable: lone surrogates escaped, control characters too."""
    text = text.encode(errors="backslashreplace").decode()
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text)


def to_json(document: object) -> str:
    """Write a document for scripts: every text exactly as it came, lone surrogates included, in plain ASCII."""
    return json.dumps(document, indent=2)
