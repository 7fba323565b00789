"""Runs inside a network namespace of its own: a scripted model, and an agent that talks to it.

Reads a JSON object on standard input: `scripts` (see `server`), `runs` (each with `arguments`, and `lines` for its
standard input, each sent once the one before it was answered), `environment`, `cwd`, `seconds`. `URL` in an argument or
a variable stands for the model's address. Writes `requests` and, for each run, `code`, `out` and `err`.
"""

import fcntl
import json
import socket
import struct
import subprocess
import sys
import threading

from tests.e2e.server import Server

SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def main() -> None:
    """Do what standard input says."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loopback:
        fcntl.ioctl(loopback, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    what = json.load(sys.stdin)
    server = Server(what["scripts"])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {name: value.replace("URL", server.url) for name, value in what["environment"].items()}
    runs = []
    for run in what["runs"]:
        with subprocess.Popen(
            [argument.replace("URL", server.url) for argument in run["arguments"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=what["cwd"],
        ) as agent:
            watch = threading.Timer(what["seconds"], agent.kill)
            watch.start()
            before = "".join(_said(agent, line) for line in run.get("lines", []))
            out, err = agent.communicate()
            watch.cancel()
        runs.append({"code": agent.returncode, "out": before + out, "err": err})
    json.dump({"requests": server.requests, "runs": runs}, sys.stdout)


def _said(agent: subprocess.Popen[str], line: str) -> str:
    """Send a line as a person does, who reads the answer first, and return what came until then."""
    assert agent.stdin
    assert agent.stdout
    agent.stdin.write(line)
    agent.stdin.flush()
    said = ""
    for answer in agent.stdout:
        said += answer
        if '"type":"result"' in answer:
            break
    return said


if __name__ == "__main__":
    main()
