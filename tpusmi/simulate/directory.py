"""The directory of a simulated host: how it is made, found again, and swept.

It is locked for as long as its keeper lives. A keeper that is killed clears nothing away: the
kernel then releases its lock, and the next host that starts, or the command that asked for this
one, removes what no lock protects.
"""

from __future__ import annotations

import os
import sys

from tpusmi.interpreter import why_unknown
from tpusmi.model import Host
from tpusmi.simulate import description

PREFIX = "tpusmi-simulated-"
SHARED_MEMORY = "/dev/shm"
ROOM_BYTES = 32 * 1024 * 1024
TRIES = 100
"""A new directory may be swept before it is locked: then another one is made."""


def attach(directory: str) -> Host:
    """The simulated host in that directory. Raises ValueError when there is none."""
    directory = os.path.abspath(directory)
    described = description.read(directory)
    if not description.is_kept(described):
        raise ValueError(f"the simulated host in {directory} is no longer running")
    return Host(
        root=directory,
        segment_dir=f"{directory}/segments",
        metrics_ports=tuple(int(port) for port in described["ports"]),
        sdk_command=_sdk_command(directory),  # ours: the directory may be another user's
        simulated=True,
        own_proc=description.OWN_PROC,
        older_s=float(described.get("older_s", 0.0)),
    )


def _sdk_command(directory: str) -> tuple[str, ...]:
    """How to start what stands in for the SDK's child, with the least that an interpreter does
    before it runs our code. Empty where our interpreter is not known.
    """
    if why_unknown():
        return ()
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = (
        f"import sys; sys.path.append({root!r}); "
        "from tpusmi.simulate.sdk_stand_in import main; main(sys.argv[1])"
    )
    return (sys.executable, "-I", "-S", "-c", code, directory)


def is_running(directory: str) -> bool:
    """True while the host in that directory has a keeper."""
    try:
        return description.is_kept(description.read(directory))
    except ValueError:
        return False


def make() -> tuple[str, int]:
    """A new directory, empty and locked, and the descriptor that holds the lock.

    Raises OSError when none can be made.
    """
    import tempfile

    for _ in range(TRIES):
        path = tempfile.mkdtemp(prefix=PREFIX, dir=_parent())
        lock = _lock(path)
        if lock is not None and _is_at(path, lock):
            return path, lock
        if lock is not None:
            os.close(lock)
    raise FileNotFoundError("every new directory was removed at once")


def sweep() -> None:
    """Remove this user's directories that have no keeper."""
    import shutil

    for parent in _parents():
        for name in _names(parent):
            path = f"{parent}/{name}"
            lock = _lock(path)
            if lock is not None:
                if not is_running(path):  # a host of an older version has no lock
                    shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _parent() -> str | None:
    """Shared memory when it has room, where a file costs a hundredth; None is the usual place."""
    import shutil

    if os.environ.get("TMPDIR"):
        return None
    try:
        free = shutil.disk_usage(SHARED_MEMORY).free
    except OSError:
        return None
    return SHARED_MEMORY if free > ROOM_BYTES and os.access(SHARED_MEMORY, os.W_OK) else None


def _parents() -> set[str]:
    """Where directories may be."""
    import tempfile

    try:
        return {SHARED_MEMORY, tempfile.gettempdir()}
    except FileNotFoundError:  # in a container whose root is read-only
        return {SHARED_MEMORY}


def _names(parent: str) -> list[str]:
    try:
        return [name for name in os.listdir(parent) if name.startswith(PREFIX)]
    except OSError:
        return []


def _lock(path: str) -> int | None:
    """A descriptor that has locked that directory; None when it is locked, or is not ours."""
    import fcntl

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
