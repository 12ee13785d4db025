"""The directory of a simulated host: locked for as long as its keeper lives, swept after that.

A keeper that is killed clears nothing away. The kernel then lets go of its lock, and the next host
that starts, or the command that asked for this one, removes what no lock protects.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile

from tpusmi.simulate.attached import is_running

PREFIX = "tpusmi-simulated-"
SHARED_MEMORY = "/dev/shm"
ROOM_BYTES = 32 * 1024 * 1024
TRIES = 100
"""A new directory may be swept before it is locked: then another one is made."""


def make() -> tuple[str, int]:
    """A new directory, empty and locked, and the descriptor that holds the lock.

    Raises OSError when none can be made.
    """
    for _ in range(TRIES):
        path = tempfile.mkdtemp(prefix=PREFIX, dir=_parent())
        lock = _lock(path)
        if lock is not None and _is_at(path, lock):
            return path, lock
        if lock is not None:
            os.close(lock)
    raise FileNotFoundError("a directory that was made is gone at once")


def sweep() -> None:
    """Remove this user's directories that no keeper has any more."""
    for parent in {SHARED_MEMORY, tempfile.gettempdir()}:
        for name in _names(parent):
            path = f"{parent}/{name}"
            lock = _lock(path)
            if lock is not None:
                if not is_running(path):  # one that another version keeps has no lock
                    shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _parent() -> str | None:
    """Shared memory when it has room, where a file costs a hundredth; None is the usual place."""
    if os.environ.get("TMPDIR"):
        return None
    try:
        free = shutil.disk_usage(SHARED_MEMORY).free
    except OSError:
        return None
    return SHARED_MEMORY if free > ROOM_BYTES and os.access(SHARED_MEMORY, os.W_OK) else None


def _names(parent: str) -> list[str]:
    try:
        return [name for name in os.listdir(parent) if name.startswith(PREFIX)]
    except OSError:
        return []


def _lock(path: str) -> int | None:
    """A descriptor that has locked that directory; None when another has it locked, or there is no
    directory of ours.
    """
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.fstat(directory).st_uid == os.geteuid():
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return directory
    except OSError:
        pass
    os.close(directory)
    return None


def _is_at(path: str, directory: int) -> bool:
    """True when that path still leads to that directory."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(directory))
    except FileNotFoundError:
        return False
