"""What `scan` found, as tables for a terminal."""

import os
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from repeat_guard_cli.people.text import clean


def show(document: dict[str, Any], html: str | None) -> None:
    """Print the summary, the worst runs, the tools, and what to know about them."""
    console = Console(highlight=False)
    summary = document["summary"]
    console.print(_figures(summary))
    console.print()
    if summary["runs"]:
        console.print(_worst(summary["worst_runs"]))
        console.print()
        console.print(_tools(summary["tools"]))
        console.print()
        silencing = [tool for tool in summary["tools"] if tool["exclude"]]
        if silencing:
            console.print("to silence a tool that polls (and its real loops too), in the settings:")
        for tool in silencing:
            console.print(Text(f"{clean(tool['exclude'])}  # {clean(tool['tool_name'])}"), soft_wrap=True)
        if silencing:
            console.print()
    for note in notes(document):
        console.print(Text(f"- {clean(note)}"), soft_wrap=True)
    if html is not None:
        console.print(Text(f"- The page is in {clean(html)}"), soft_wrap=True)


def _figures(summary: dict[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold")
    for label, value in figures(summary):
        table.add_row(label, Text(clean(value)))
    return table


def figures(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines that a person wants first: a label and what to say."""
    settings = summary["settings"]
    thresholds = ", ".join(str(threshold) for threshold in settings["thresholds"])
    period = f", {summary['first_at'][:10]} to {summary['last_at'][:10]}" if summary["first_at"] else ""
    lines = [
        ("sessions", f"{summary['sessions']:,}{period}"),
        ("tool calls", f"{summary['calls']:,}"),
        (
            "repeated calls",
            f"{summary['repeated_calls']:,} ({percent(summary['repeated_share'])}): same as the one before",
        ),
        (
            f"runs of {settings['min_run']} or more",
            f"{summary['runs']:,}"
            + (f" (the longest of {summary['longest_run']:,})" if summary["runs"] else "")
            + (f": {kinds(summary)}" if summary["runs"] else ""),
        ),
        ("reminders", f"{summary['reminders']:,} would have come, at {thresholds} in a row"),
        ("tokens", f"{summary['tokens_after_first_threshold']:,} spent after a first threshold, cached ones included"),
    ]
    lines += [(name, ", ".join(settings[name])) for name in ("include", "exclude") if settings[name]]
    if settings["since"]:
        lines.append(("since", settings["since"][:16].replace("T", " ") + " UTC"))
    return lines


def kinds(summary: dict[str, Any]) -> str:
    """Tell loops from polling."""
    words = {
        "loops": "with equal results each time",
        "polling": "with changing results (polling)",
        "unclear": "with results that the transcript doesn't tell",
    }
    return ", ".join(f"{summary[name]:,} {words[name]}" for name in words if summary[name])


def percent(share: float) -> str:
    """Write a share for people; a small one is not none."""
    return "under 0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


def _worst(runs: list[dict[str, Any]]) -> Table:
    table = Table(
        title="the worst runs", title_justify="left", title_style="bold", box=None, pad_edge=False, expand=True
    )
    table.add_column("calls", justify="right", no_wrap=True)
    table.add_column("results", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("when, session", overflow="ellipsis", no_wrap=True, max_width=16)
    table.add_column("tool, arguments", overflow="ellipsis", no_wrap=True, ratio=1)
    for run in runs:
        results = "all failed" if run["all_failed"] else run["results"]
        when = (run["first_at"] or "")[:16].replace("T", " ")
        session = clean(run["session_id"] or os.path.basename(run["path"]))
        table.add_row(
            f"{run['count']:,}",
            Text(results, "red" if run["kind"] == "loop" else ""),
            f"{run['tokens_after_first_threshold']:,}",
            Text.assemble(when, "\n", (session, "dim")),
            Text.assemble(clean(run["tool_name"]), "\n", (clean(run["arguments_preview"] or ""), "dim")),
        )
    return table


def _tools(tools: list[dict[str, Any]]) -> Table:
    table = Table(title="by tool", title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("tool", overflow="ellipsis", no_wrap=True, max_width=40)
    for name in ("runs", "longest", "loops", "polling", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    for tool in tools:
        figures = ("runs", "longest_run", "loops", "polling", "tokens_after_first_threshold")
        table.add_row(Text(clean(tool["tool_name"])), *(f"{tool[name]:,}" for name in figures))
    return table


def notes(document: dict[str, Any]) -> list[str]:
    """Return what a person should know about the figures, a sentence each."""
    summary = document["summary"]
    found = []
    if not summary["sessions"]:
        found.append("There is no session of that time.")
    elif not summary["calls"]:
        found.append("These sessions hold no tool calls.")
    elif not summary["runs"]:
        found.append(
            f"Nothing to see: no call came {summary['settings']['min_run']} times in a row. "
            + ("A guard would have said nothing." if not summary["reminders"] else "")
        )
    elif not summary["loops"] and summary["polling"]:
        found.append(
            "No loop is among them for certain: where results change, the agent may have been waiting for something."
        )
    whys: dict[str, int] = {}
    for session in document["sessions"]:
        for stream in session["streams"]:
            for run in stream["runs"]:
                if run["unseen_why"]:
                    whys[run["unseen_why"]] = whys.get(run["unseen_why"], 0) + run["unseen_by_hook"]
    found += [f"The live hook would have been blind to {count:,} of these calls: {why}." for why, count in whys.items()]
    if summary["looks_redacted"]:
        found.append(
            f"The commands or file paths of {_several(summary['redacted_calls'], 'call')} look redacted: "
            "different calls may look the same here, so don't trust the runs."
        )
    if summary["broken_lines"]:
        found.append(f"Left out: {_several(summary['broken_lines'], 'broken line')}.")
    if summary["unreadable"]:
        found.append(f"Not read: {_several(len(summary['unreadable']), 'path')}.")
    return [" ".join(note.split()) for note in found]


def _several(count: int, thing: str) -> str:
    return f"{count:,} {thing}" + ("" if count == 1 else "s")
