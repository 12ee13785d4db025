"""Runs tpusmi's command line, and prints the most memory that it had.

`python measured_command.py ARGUMENT…` is `tpusmi ARGUMENT…`, with `peak MIB` as the last line of
stderr.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Measured(NamedTuple):
    """How a command has ended."""

    code: int
    out: str
    err: str
    peak_mib: float


def measured(arguments: Sequence[str], temporary: Path, limit_s: float = 60.0) -> Measured:
    """The command with a new directory for its temporary files."""
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    said, _, peak = done.stderr.rstrip().rpartition("\npeak ")
    return Measured(code=done.returncode, out=done.stdout, err=said, peak_mib=float(peak or "inf"))


def main() -> None:
    """Run it, and measure."""
    from tpusmi.cli import main as run

    code = 70
    try:
        code = int(run(sys.argv[1:]) or 0)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else code
    finally:
        sys.stdout.flush()
        # ru_maxrss would be that of the process that started this one, where that has more.
        with open("/proc/self/status", encoding="ascii") as file:
            peak = next(line for line in file if line.startswith("VmHWM:"))
        sys.stderr.write(f"\npeak {int(peak.split()[1]) / 1024:.0f}\n")
        sys.stderr.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
