"""tpusmi as a command of its own, with a clean environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TPUSMI = [sys.executable, "-m", "tpusmi"]
_PASSED = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "HOME", "LD_LIBRARY_PATH")


def environment(directory: Path | str, **more: str | None) -> dict[str, str]:
    """What the command sees: our interpreter's needs, the segment directory, and `more` (None:
    unset).
    """
    found = {name: os.environ[name] for name in _PASSED if name in os.environ}
    found.update(TPUSMI_DIR=str(directory), LC_ALL="C.UTF-8", TERM="xterm-256color")
    found.update({name: value for name, value in more.items() if value is not None})
    for name, value in more.items():
        if value is None:
            found.pop(name, None)
    return found


def tpusmi(
    directory: Path | str, *arguments: str, **more: str | None
) -> subprocess.CompletedProcess[str]:
    """Run it to its end with no terminal."""
    return subprocess.run(
        [*TPUSMI, *arguments],
        env=environment(directory, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
    )
