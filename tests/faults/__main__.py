"""`python -m tests.faults [--long]`: injects faults and says what was done; exit 0 where every promise held, else 1."""

import os
import subprocess
import sys
from pathlib import Path

options = sys.argv[1:]
if options not in ([], ["--long"]):
    sys.exit("usage: python -m tests.faults [--long]")
here = Path(__file__).parent
# A process of its own: what is tested is the installed package, so the checkout must not come first.
done = subprocess.run(
    [sys.executable, "-P", "-m", "pytest", "-v", "-p", "no:cacheprovider", str(here)]
    if sys.version_info >= (3, 11)
    else [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", str(here)],
    cwd=here.parent.parent,
    env={**os.environ, "REPEAT_GUARD_FAULTS": "long" if options else "short"},
    check=False,
)
sys.exit(0 if done.returncode == 0 else 1)
