"""What the model is told. Pure: no I/O, no clock, no environment.

Plain text that names its source, without markup: Codex passes it on as a bare message, Gemini CLI and Qwen Code
escape angle brackets. A factual observation and advice: agents are wary of orders from outside.
"""

from repeat_guard_cli import wire
from repeat_guard_cli.guard import preview_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from repeat_guard_cli.guard import Run
    from repeat_guard_cli.settings import Settings

SIGNATURE = "repeat-guard noticed a repeated tool call: "
"""How every reminder begins, and how it is told from a person's prompt when an agent sends it back."""

MAX_BYTES = 8_000
"""Claude Code spills more than 10,000 characters to a file, Codex more than 2,500 tokens, Cursor drops it."""
MAX_CHARS_BESIDE_PREVIEW = 999
MAX_TOOL_NAME = 100


def compose(runs: "Sequence[Run]", settings: "Settings") -> str:
    """Write the reminder for runs of identical calls that reached a threshold.

    Args:
        runs: at least one, each with a threshold.
        settings: `thresholds` tell the short form from the detailed one, `arguments_preview_chars` cuts arguments.

    Returns:
        At most `MAX_BYTES` of UTF-8 and `arguments_preview_chars + MAX_CHARS_BESIDE_PREVIEW` characters. Where more
        was to be said, the quoted arguments are cut first, then the last runs are only counted.
    """

    def write(quoted: int, told: int) -> str:
        texts = [_text(run, settings.thresholds[0], quoted) for run in runs[:told]]
        if told < len(runs):
            texts.append(f"repeat-guard: {len(runs) - told} more repeated tool calls in the same step.")
        return "\n\n".join(texts)

    def fits(text: str) -> bool:
        limit = settings.arguments_preview_chars + MAX_CHARS_BESIDE_PREVIEW
        return len(text) <= limit and len(text.encode()) <= MAX_BYTES

    quoted = min(settings.arguments_preview_chars, MAX_BYTES)
    text = write(quoted, len(runs))
    if fits(text):
        return text
    low, high = 0, quoted
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(write(middle, len(runs))) else (low, middle - 1)
    told = len(runs)
    while told > 1 and not fits(write(low, told)):
        told -= 1
    return write(low, told)


def _text(run: "Run", smallest: int, quoted: int) -> str:
    name = wire.dumps_sorted(run.tool_name)
    if len(name) > MAX_TOOL_NAME:
        name = f'{name[: MAX_TOOL_NAME - 4]}..."'
    start = f"{SIGNATURE}{name} has now been called {run.threshold} times in a row with identical arguments"
    if run.threshold == smallest:
        return (
            f"{start}. The last result already shows what this call gives; read it before going on. "
            "If the task is not complete, change the approach or the arguments."
        )
    whole = preview_text(run.arguments, None)
    shown = whole[:quoted]
    rest = f" [{len(whole) - quoted:,} more characters]" if len(whole) > quoted else ""
    arguments = f": {shown}{rest}" if whole else " (none were given)"
    return (
        f"{start}{arguments}\nRepeating it makes no progress. Choose a different action or different arguments, "
        "or finish if the evidence gathered so far is enough."
    )
