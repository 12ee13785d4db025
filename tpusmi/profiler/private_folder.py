"""A private directory for traces, removed on every way out; a later run removes one that a killed
run has left.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Container, Iterator
from contextlib import contextmanager
from itertools import islice

from tpusmi.trace.troubles import CaptureError, Trouble
from tpusmi.wire import mountinfo
from tpusmi.wire.capture_files import is_safe_place

PREFIX = "tpusmi-profile-"
ENTRIES_MOST = 65_536
"""Names of the temporary directory that are looked at: any user may fill it."""
OTHERS = ("/tmp", "/var/tmp", "/dev/shm")
"""Where it is made when the usual place cannot be used. Shared memory comes last, since it is part
of the memory of jobs; a container with a read-only root has nothing else.
"""
TRIES = 20
"""A new directory may be swept before it is locked: then another one is made."""


@contextmanager
def private_folder() -> Iterator[str]:
    """A new directory that only this user can read, locked while it is in use. It is gone
    afterwards. Raises CaptureError where none can be made.
    """
    try:
        parent = _parent()
        _sweep(parent)
        path, lock = _made(parent)
    except OSError as error:
        reason = f"no directory can be made for the trace: {error.strerror or error}"
        raise CaptureError(Trouble.FAILED, reason) from error
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _parent() -> str:
    """Where temporary files are; not in a directory in which other users can replace ours. Raises
    OSError.
    """
    why = ""
    for parent in dict.fromkeys((*_usual(), *OTHERS)):
        if not os.access(parent, os.W_OK | os.X_OK):
            continue
        if is_safe_place(parent, os.geteuid()):
            return parent
        why = why or f"other users can replace files in {parent}"
    raise OSError(0, f"{why or 'no place for temporary files can be written'}: set TMPDIR")


def _usual() -> tuple[str, ...]:
    """Where Python has temporary files; empty where it finds no place."""
    try:
        return (tempfile.gettempdir(),)
    except FileNotFoundError:
        return ()


def _made(parent: str) -> tuple[str, int]:
    for _ in range(TRIES):
        path = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        lock = _locked(path)
        if lock is not None:
            return path, lock
    raise OSError(f"{parent} is swept again and again")


def _locked(path: str) -> int | None:
    """A descriptor that locks the directory; None if it is in use, not ours, or gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        status, current = os.fstat(descriptor), os.lstat(path)
        if os.path.samestat(status, current) and status.st_uid == os.geteuid():
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _sweep(parent: str) -> None:
    """Remove the directories of this user's runs that were killed: the kernel has released their
    locks.
    """
    try:
        with os.scandir(parent) as entries:
            paths = [e.path for e in islice(entries, ENTRIES_MOST) if e.name.startswith(PREFIX)]
    except OSError:
        return
    mounted = _mounted() if paths else ()
    for path in paths:
        lock = None if path in mounted else _locked(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _mounted() -> Container[str]:
    """Where file systems are mounted: that of a user may never answer."""
    try:
        listed = mountinfo.listed("/proc/self")
    except OSError:
        return ()
    mounts = mountinfo.mounts(listed) if PREFIX.encode() in listed else ()
    return {os.fsdecode(m.point) for m in mounts}
