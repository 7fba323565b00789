"""What `scan` found, as one page that needs nothing else: no network, no script. Pure."""

from html import escape
from typing import Any

from repeat_guard_cli import __version__
from repeat_guard_cli.people.scan_text import figures, notes
from repeat_guard_cli.people.text import clean, moment
from repeat_guard_cli.transcripts.runs import seconds

MAX_RUNS = 2_000
"""More runs than anybody reads; the longest are kept."""
COLOURS = ("#2563a8", "#c2541b", "#2b7a4b", "#8e3a8e", "#9a7b00", "#b3304a", "#24838f")
OTHERS = "#777"

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --dim: #5c6670; --paper: #fff; --line: #d8dde2; --field: #f4f6f8 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaec; --dim: #a2abb3; --paper: #16191c; --line: #3a4148; --field: #20252a }
}
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 60rem; padding: 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.4rem; margin: 0 0 .5rem } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0 }
dt { color: var(--dim) } dd { margin: 0 }
.dim { color: var(--dim) }
.half { position: relative; height: 8rem; border: 1px solid var(--line); background: var(--field) }
.half + .half { height: 5rem; border-top: 0 }
.half a { position: absolute; width: 8px; margin-left: -4px; min-height: 3px; opacity: .85; border-radius: 2px }
.half a:hover, .half a:focus { opacity: 1; outline: 2px solid var(--ink) }
.calls a { bottom: 0 } .tokens a { top: 0 }
.label { position: absolute; left: .4rem; font-size: .8rem; color: var(--dim); pointer-events: none }
.calls .label { top: .2rem } .tokens .label { bottom: .2rem }
.axis { display: flex; justify-content: space-between; font-size: .8rem; color: var(--dim); gap: .5rem }
.axis :nth-child(2) { text-align: center } .axis :last-child:not(:first-child) { text-align: right }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .4em }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
details { border: 1px solid var(--line); border-left: 5px solid var(--line); border-radius: 4px; margin: .4rem 0 }
summary { padding: .5rem .7rem; cursor: pointer } details > div { padding: 0 .7rem .7rem }
details:target { outline: 2px solid var(--ink) }
code, pre { font: .85rem/1.4 ui-monospace, monospace; background: var(--field) }
pre { white-space: pre-wrap; padding: .5rem; margin: .5rem 0 0; border-radius: 4px }
@media (max-width: 34rem) {
  dl { grid-template-columns: 1fr } dd { margin-bottom: .4rem }
  .tools thead { display: none } .tools td { display: block; border: 0; padding: 0; text-align: left }
  .tools tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0 }
  .tools td[data-label]::before { content: attr(data-label) ": "; color: var(--dim) }
}
@media print {
  body { max-width: none; padding: 0; font-size: 11pt } details { break-inside: avoid }
  details::details-content { content-visibility: visible; block-size: auto }
  .half, .half a, .swatch { print-color-adjust: exact; -webkit-print-color-adjust: exact }
}
"""
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Repeated tool calls</title>
"""


def page(document: dict[str, Any]) -> str:
    """Write the page; every text from a transcript is escaped."""
    runs = [
        {**run, "session": session, "agent_id": stream["agent_id"]}
        for session in document["sessions"]
        for stream in session["streams"]
        for run in stream["runs"]
    ]
    total = len(runs)
    runs = sorted(runs, key=lambda run: -run["count"])[:MAX_RUNS]
    runs.sort(key=lambda run: (run["first_at"] or "", run["session"]["path"]))
    tools = document["summary"]["tools"]
    colours = {tool["tool_name"]: colour for tool, colour in zip(tools, COLOURS, strict=False)}
    parts = [_HEAD, f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>Repeated tool calls</h1>\n"]
    parts.append(_list(figures(document["summary"])))
    parts += [f"<p>{_text(note)}</p>\n" for note in notes(document)]
    if runs:
        parts += [_timeline(runs, colours), _tools(tools, colours), "<h2>Every run</h2>\n"]
        if total > len(runs):
            parts.append(f"<p>The longest {len(runs):,} of {total:,}.</p>\n")
        parts += [_run(number, run, colours) for number, run in enumerate(runs)]
    parts.append(f'<p class="dim">repeat-guard {__version__}; times are UTC.</p>\n</body>\n</html>\n')
    return "".join(parts)


def _timeline(runs: list[dict[str, Any]], colours: dict[str, str]) -> str:
    """Draw a bar for each run: upwards how long it was, downwards what it cost."""
    timed = [(number, run, at) for number, run in enumerate(runs) if (at := seconds(run["first_at"] or "")) is not None]
    if not timed:
        return ""
    start, end = min(at for _, _, at in timed), max(at for _, _, at in timed)
    most = max(run["count"] for _, run, _ in timed)
    dearest = max(run["tokens_after_first_threshold"] for _, run, _ in timed)
    calls, tokens = [], []
    for number, run, at in timed:
        left = 2 + 96 * (at - start) / (end - start) if end > start else 50.0
        said = escape(f"{clean(run['tool_name'])}, {run['count']:,} calls, {_when(run['first_at'])}", quote=True)
        look = f"left:{left:.2f}%;background:{colours.get(run['tool_name'], OTHERS)}"
        link = f'<a href="#run-{number}" title="{said}" aria-label="{said}" style="{look};height:'
        calls.append(f'{link}{85 * run["count"] / most:.1f}%"></a>')
        if dearest and run["tokens_after_first_threshold"]:
            tokens.append(f'{link}{80 * run["tokens_after_first_threshold"] / dearest:.1f}%"></a>')
    marks = [start] if end == start else [start, (start + end) / 2, end]
    axis = "".join(f"<span>{_when(moment(mark))}</span>" for mark in marks)
    return (
        "<h2>When</h2>\n"
        f'<div class="half calls">{"".join(calls)}<span class="label">calls in a row, up to {most:,}</span></div>\n'
        f'<div class="half tokens">{"".join(tokens)}<span class="label">'
        f"tokens after the first threshold, up to {dearest:,}</span></div>\n"
        f'<div class="axis">{axis}</div>\n'
    )


def _tools(tools: list[dict[str, Any]], colours: dict[str, str]) -> str:
    rows = []
    for tool in tools:
        exclude = f"<code>{_text(tool['exclude'])}</code>" if tool["exclude"] else ""
        rows.append(
            f"<tr><td>{_swatch(colours, tool['tool_name'])}<b>{_text(tool['tool_name'])}</b></td>"
            f'<td class="number" data-label="runs">{tool["runs"]:,}</td>'
            f'<td class="number" data-label="longest">{tool["longest_run"]:,}</td>'
            f'<td class="number" data-label="tokens">{tool["tokens_after_first_threshold"]:,}</td>'
            f'<td class="number" data-label="polling">{tool["polling"]:,}</td>'
            f'<td data-label="to silence it">{exclude or "-"}</td></tr>\n'
        )
    return (
        '<h2>Which tools</h2>\n<table class="tools"><thead><tr><th>tool</th><th class="number">runs</th>'
        '<th class="number">longest</th><th class="number">tokens</th><th class="number">polling</th>'
        f"<th>what would silence it, in the settings</th></tr></thead>\n<tbody>\n{''.join(rows)}</tbody></table>\n"
    )


def _run(number: int, run: dict[str, Any], colours: dict[str, str]) -> str:
    session = run["session"]
    outcome = "every call failed" if run["all_failed"] else f"results {run['results']}"
    reminders = ", ".join(f"{one['count']} ({_when(one['at'])})" for one in run["reminders"]) or "none"
    rows = [
        ("session", f"{session['session_id'] or '-'}, {session['agent']} {session['version'] or ''}"),
        ("agent", run["agent_id"] or "main"),
        ("file", session["path"]),
        ("from", _when(run["first_at"])),
        ("to", _when(run["last_at"])),
        ("failed", f"{run['failed']:,} of {run['count']:,}"),
        ("results", f"{run['results']} ({run['kind']})"),
        ("reminders", reminders),
        ("tokens after the first", f"{run['tokens_after_first_threshold']:,}"),
        ("ended by", {"call": "another call", "prompt": "a prompt", "end": "the end of the session"}[run["ended_by"]]),
    ]
    if run["unseen_why"]:
        rows.append(("unseen by the hook", f"{run['unseen_by_hook']:,} of these calls: {run['unseen_why']}"))
    arguments = run["arguments_preview"]
    quoted = f"<pre>{_text(arguments)}</pre>" if arguments else ""
    colour = colours.get(run["tool_name"], OTHERS)
    return (
        f'<details id="run-{number}" style="border-left-color:{colour}"><summary>'
        f"<b>{run['count']:,} x {_text(run['tool_name'])}</b> "
        f'<span class="dim">{_when(run["first_at"])}, {_duration(run["seconds"])}, {outcome}, '
        f"{run['tokens_after_first_threshold']:,} tokens</span></summary>\n<div>{_list(rows)}{quoted}</div></details>\n"
    )


def _list(rows: list[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{_text(label)}</dt><dd>{_text(value)}</dd>' for label, value in rows)}</dl>\n"


def _swatch(colours: dict[str, str], tool_name: str) -> str:
    return f'<span class="swatch" style="background:{colours.get(tool_name, OTHERS)}"></span>'


def _text(text: str) -> str:
    return escape(clean(text), quote=True)


def _when(at: str | None) -> str:
    return at[:19].replace("T", " ") if at else "time unknown"


def _duration(passed: float | None) -> str:
    if passed is None:
        return "of unknown length"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if passed >= size:
            return f"{passed / size:.1f} {unit}"
    return f"{passed:.0f} s"
