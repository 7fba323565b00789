"""Which prompts were written by a person. Pure: no I/O, no clock, no environment."""

from repeat_guard_cli.model import Agent, bounded_id
from repeat_guard_cli.reminder import SIGNATURE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from repeat_guard_cli.payload import Event

WRITTEN_BY_A_PERSON = ("user", "sdk")
"""The values of `source` that Claude Code 2.1.332 declares for prompts that are not the machine's own."""


def resets(event: "Event", agent: Agent) -> bool:
    """Tell whether a prompt ends the chain of the agent that it is submitted to."""
    if event.source is not None and event.source not in WRITTEN_BY_A_PERSON:
        return False
    if event.source is None:
        text = event.prompt.strip()
        # Claude Code 2.1.332 reports the end of a background task so (seen).
        if text.startswith("<task-notification>") and text.endswith("</task-notification>"):
            return False
    # The DeepSeek harness sends injected messages back as prompts, several of them run together (seen).
    if SIGNATURE in event.prompt:
        return False
    # Qwen Code 0.24.4 reports a prompt after every tool result, with the id of the prompt being worked on (seen).
    same_prompt = bool(event.prompt_id) and bounded_id(event.prompt_id) == agent.prompt_id
    return event.submitted or not same_prompt
