"""tpusmi as its users start it: the command that pip installs, in an environment like theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from support.leftovers import RUN
from support.run_as import another_user
from support.users import reachable

_SCRIPT = Path(sys.executable).with_name("tpusmi")
TPUSMI = [str(_SCRIPT)]
"""By its whole path. It ends otherwise than `python -m tpusmi`, which few type."""
TPUSMI = TPUSMI if _SCRIPT.exists() else [sys.executable, "-m", "tpusmi"]

USER = 41001
"""An ordinary one, who need not exist."""
_PASSED = ("PATH", "VIRTUAL_ENV", "HOME", "LD_LIBRARY_PATH", "TMPDIR", RUN)


def environment(directory: Path | str, **more: str | None) -> dict[str, str]:
    """What the command sees: our interpreter's needs, the segment directory, and `more` (None:
    unset). No variable of Python's: users have none, and some hide faults.
    """
    found = {name: os.environ[name] for name in _PASSED if name in os.environ}
    found.update(TPUSMI_DIR=str(directory), LC_ALL="C.UTF-8", TERM="xterm-256color")
    found.update({name: value for name, value in more.items() if value is not None})
    for name, value in more.items():
        if value is None:
            found.pop(name, None)
    return found


def tpusmi(
    directory: Path | str, *arguments: str, user: int | None = None, **more: str | None
) -> subprocess.CompletedProcess[str]:
    """Run it to its end with no terminal, as that user, who must be able to read the directory."""
    command = [*TPUSMI, *arguments]
    with ExitStack() as meanwhile:
        if user is not None:
            command = another_user(user, *command)
            more.setdefault("HOME", "/")
            if os.path.isdir(directory):
                meanwhile.enter_context(reachable(Path(directory)))
        return subprocess.run(
            command,
            env=environment(directory, **more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
