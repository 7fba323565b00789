"""`repeat-guard config`: the settings in force and where each came from."""

import os
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from repeat_guard_cli import config, hook, paths, settings, wire
from repeat_guard_cli.people.text import clean, to_json


def show(*, as_json: bool) -> int:
    """Print the settings; a wrong variable or file is an error, the project's file included."""
    state_dir = paths.state_dir(os.environ)
    chosen = settings.from_environment(os.environ)
    user = config.user_source(os.environ, state_dir)
    project = config.project_source(os.environ, paths.working_dir(), state_dir)

    rows: dict[str, dict[str, Any]] = {}
    for key, default in settings.DEFAULTS.items():
        value, source = default, "default"
        for file in (user, project):
            if file.values and key in file.values:
                value, source = file.values[key], file.path
        if key in chosen:
            value, source = chosen[key], settings.VARIABLES[key]
        rows[key] = {"value": sorted(value) if key == "thresholds" else value, "source": source}

    if as_json:
        document = {
            "settings": rows,
            "off": config.is_off(os.environ),
            "user_file": {"path": user.path, "exists": user.values is not None},
            "project_file": {"path": project.path, "exists": project.values is not None},
            "state_dir": state_dir,
        }
        print(to_json(document))
        return hook.OK

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("setting", "value", "source"):
        table.add_column(name, overflow="fold")
    for key, row in rows.items():
        table.add_row(key, Text(clean(wire.dumps_sorted(row["value"]))), Text(clean(row["source"])))
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    console.print()
    for label, file in (("user file", user), ("project file", project)):
        console.print(Text(f"{label:13}{file.path}{'' if file.values is not None else ' (none)'}"))
    console.print(Text(f"{'state':13}{state_dir}"))
    if config.is_off(os.environ):
        console.print(Text("REPEAT_GUARD_OFF is set: the guard is switched off", "bold red"))
    return hook.OK
