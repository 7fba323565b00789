"""The hook as one would write it first: one Typer file, every import at the top, nothing that isn't needed."""

import fcntl
import sys
from pathlib import Path

import orjson
import platformdirs
import typer

THRESHOLDS = (3, 5, 8)
app = typer.Typer()


@app.command()
def post_tool_use() -> None:
    """Count a call, and say so at a threshold."""
    event = orjson.loads(sys.stdin.buffer.read())
    folder = Path(platformdirs.user_state_dir("straightforward"))
    folder.mkdir(parents=True, exist_ok=True)
    key = orjson.dumps([event["tool_name"], event["tool_input"]], option=orjson.OPT_SORT_KEYS).decode()
    with (folder / f"{event['session_id']}.json").open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        state = orjson.loads(text) if text else {"key": "", "count": 0}
        state = {"key": key, "count": state["count"] + 1 if state["key"] == key else 1}
        file.truncate(0)
        file.write(orjson.dumps(state))
    if state["count"] in THRESHOLDS:
        text = f"{event['tool_name']} was called {state['count']} times in a row with identical arguments."
        reply = {"hookEventName": event["hook_event_name"], "additionalContext": text}
        typer.echo(orjson.dumps({"hookSpecificOutput": reply}))


@app.command()
def user_prompt_submit() -> None:
    """Clear the chain."""
    event = orjson.loads(sys.stdin.buffer.read())
    Path(platformdirs.user_state_dir("straightforward"), f"{event['session_id']}.json").unlink(missing_ok=True)


if __name__ == "__main__":
    app()
