"""Runs a command as another user, who may not be able to reach our Python where it is.

`python run_as.py UID COMMAND…`, or `another_user(UID, …)`. What that user needs of our files is at
the same paths in a mount namespace that ends with the command; nothing outside of it changes. No
other program is needed, but root.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import stat
import subprocess
import sys

if __name__ == "__main__":  # where this file is, `support` is not found
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from support.mounts import RECURSIVE, empty, mount, needed

NEW_NAMESPACE = 0x20000
PRIVATE = 0x40000
_libc = ctypes.CDLL(None, use_errno=True)


def another_user(user: int, *command: str) -> list[str]:
    """That command, as that user. Skips the test where we cannot become another user, and where
    there is no such program.
    """
    import pytest

    if command and shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here")
    words = [sys.executable, os.path.abspath(__file__), str(user)]
    if not _works(*words):
        pytest.skip("needs root, and a mount namespace where other users cannot reach our Python")
    return [*words, *command]


@functools.cache
def _works(*words: str) -> bool:
    python = [sys.executable, "-c", "import tpusmi"]
    return subprocess.run([*words, *python], capture_output=True).returncode == 0


def _closed(path: str) -> str | None:
    """The first directory on the way to it, itself included, that others may not pass."""
    parts = path.split("/")
    for count in range(2, len(parts) + 1):
        above = "/".join(parts[:count])
        if not os.stat(above).st_mode & stat.S_IXOTH:
            return above
    return None


def _open_up() -> None:
    """In place of each closed directory one that leads to what is needed of it, and to no more."""
    wanted: dict[str, list[str]] = {}
    for path in needed():
        closed = _closed(path)
        if closed is not None:
            inside = [path] if path != closed else [f"{path}/{name}" for name in os.listdir(path)]
            wanted.setdefault(closed, []).extend(inside)
    for closed, paths in wanted.items():
        empty(closed, paths)


def become(user: int) -> None:
    """This process is that user's from now on, in a namespace where needed."""
    if any(map(_closed, needed())):
        if _libc.unshare(NEW_NAMESPACE):
            raise OSError(ctypes.get_errno(), "no mount namespace")
        os.umask(0o022)
        mount("", "/", "", PRIVATE | RECURSIVE)
        _open_up()
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


if __name__ == "__main__":
    del sys.path[0]  # our own
    become(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
