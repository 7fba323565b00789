"""What hooks of this kind cost when written in other ways, as whole processes, side by side in one run.

    python benchmarks/peers.py [--rounds 40] [--picture benchmarks/peers.svg]

Run it with the interpreter of an environment where `repeat-guard` is installed. What this machine lacks is left out,
and said. `unwedge` (PyPI) is another loop guard with a hook command; it does more than count, so its time is not for
the same work. It is installed into a temporary environment and runs without a provider, that is without a network.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from hook_latency import tool_call
from paired import BARE, SCRIPTS, Process, machine, medians, ratio, seconds

PEERS = Path(__file__).parent / "peers"
UNWEDGE = "unwedge==0.2.0"
GUARD, INTERPRETER = "repeat-guard", "python -I -c pass"


def main() -> None:
    """Measure, print a table, and draw it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--picture", type=Path, help="an SVG file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="repeat-guard-benchmark-") as folder:
        commands, missing = found(Path(folder, "unwedge"))
        data = tool_call("5e551011-0000-4000-8000-000000000001", 1_000)
        processes = {name: process(command, data, Path(folder)) for name, command in commands.items()}
        taken = seconds(processes, options.rounds)
    rows = sorted(
        ((name, medians(taken)[name], ratio(taken, name, INTERPRETER)) for name in taken), key=lambda row: row[2]
    )
    title = f"{machine()}; a 1 KB payload, medians of {options.rounds}"
    print(f"{title}\n\n{'':44}{'ms':>8}{'/ bare':>9}")
    for name, milliseconds, times in rows:
        print(f"{name:44}{milliseconds:8.1f}{times:9.2f}")
    for name, reason in missing.items():
        print(f"{name:44}left out: {reason}")
    if options.picture:
        options.picture.write_text(picture(rows, title))


def found(scratch: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the command lines that this machine can run, by name, and why it lacks the others."""
    bash, jq, flock, node = (shutil.which(name) for name in ("bash", "jq", "flock", "node"))
    commands = {
        INTERPRETER: list(BARE),
        GUARD: [str(SCRIPTS / "repeat-guard"), "post-tool-use"],
        "one file with typer, orjson, platformdirs": [
            sys.executable,
            str(PEERS / "straightforward.py"),
            "post-tool-use",
        ],
    }
    missing = {}
    if bash and jq and flock:
        commands["bash and jq"] = [bash, str(PEERS / "guard.sh")]
    else:
        missing["bash and jq"] = "bash, jq or flock is not installed"
    if node:
        commands["node -e 0"] = [node, "-e", "0"]
        commands["node"] = [node, str(PEERS / "guard.mjs")]
    else:
        missing["node"] = "node is not installed"
    try:
        subprocess.run([sys.executable, "-m", "venv", scratch], check=True, capture_output=True)
        pip = [scratch / "bin" / "python", "-m", "pip", "install", "--quiet", UNWEDGE]
        subprocess.run(pip, check=True, capture_output=True)
        commands[UNWEDGE.replace("==", " ")] = [str(scratch / "bin" / "unwedge"), "hook"]
    except (subprocess.CalledProcessError, OSError):
        missing[UNWEDGE] = "can't be installed here"
    return commands, missing


def process(command: list[str], data: Callable[[int], bytes], home: Path) -> Process:
    """Return a command with a home of its own that all of them share."""
    search = os.pathsep.join(
        dict.fromkeys(os.path.dirname(shutil.which(name) or "") for name in ("jq", "flock", "cat"))
    )
    environment = {"HOME": str(home), "PATH": f"{search}:{os.defpath}", "LANG": "C.UTF-8", "UNWEDGE_PROVIDER": "none"}
    return Process(command, data, environment)


def picture(rows: list[tuple[str, float, float]], title: str) -> str:
    """Draw the ratios as bars, readable on white and on black."""
    width, line, labels, top = 760, 30, 300, 44
    scale = (width - labels - 110) / rows[-1][2]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + line * len(rows) + 8}" role="img" '
        'font-family="system-ui, sans-serif" font-size="14">',
        f"<title>Time of a hook process as a multiple of the bare interpreter's. {title}</title>",
        "<style>text { fill: #24292f } .faint { fill: #6e7781 } rect { fill: #8c959f } .ours { fill: #1a7f37 }"
        " @media (prefers-color-scheme: dark)"
        " { text { fill: #e6edf3 } .faint { fill: #8d96a0 } .ours { fill: #3fb950 } }</style>",
        f'<text class="faint" x="8" y="22" font-size="12">{title}; 1 = the bare interpreter</text>',
    ]
    for number, (name, milliseconds, times) in enumerate(rows):
        y = top + line * number
        kind = ' class="ours"' if name == GUARD else ""
        weight = ' font-weight="bold"' if name == GUARD else ""
        out += [
            f'<text x="{labels - 12}" y="{y + 15}" text-anchor="end"{weight}>{name}</text>',
            f'<rect{kind} x="{labels}" y="{y}" width="{times * scale:.1f}" height="20" rx="2"/>',
            f'<text x="{labels + times * scale + 8:.1f}" y="{y + 15}"{weight}>{times:.2f}'
            f'<tspan class="faint" font-weight="normal" font-size="12">  {milliseconds:.0f} ms</tspan></text>',
        ]
    return "\n".join([*out, "</svg>\n"])


if __name__ == "__main__":
    main()
