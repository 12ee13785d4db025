"""The lock that an agent holds on its segment: a proof of life that needs no pid.

An open-file-description lock belongs to the open file, not to a pid: it means the same in every
pid, user and time namespace. The kernel drops it when the process ends, however it ends, or execs
(the descriptor is close-on-exec). Asking for it takes no lock, and needs a descriptor for reading
only. A reader cannot fake it: a write lock needs a file that is open for writing, and a read lock
does not count.
"""

import fcntl
import os
import struct
from collections.abc import Callable

_SET: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_GET: int | None = getattr(fcntl, "F_OFD_GETLK", None)
_FLOCK = struct.Struct("hhqqi4x")
"""Kind, whence, start, length, and the pid, which the kernel requires to be 0."""
_BYTE = 0, 1
"""Start and length of the locked range. The lock is advisory: others can still read and write."""
TO_ASK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Flags for opening a file that may be anything: a FIFO would block a reader forever."""


def hold(fd: int) -> bool:
    """Take the lock for as long as this open file lives; False where the system has no such
    locks, or another open file has it. It never waits.
    """
    if _SET is None:
        return False
    try:
        fcntl.fcntl(fd, _SET, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, *_BYTE, 0))
    except OSError:
        return False
    return True


def is_held(fd: int) -> bool | None:
    """Whether another open file has the lock; None where that cannot be asked. It takes no lock."""
    if _GET is None:
        return None
    try:
        answer = fcntl.fcntl(fd, _GET, _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, *_BYTE, 0))
    except OSError:
        return None
    return bool(_FLOCK.unpack(answer)[0] == fcntl.F_WRLCK)


def is_held_at(path: str, opener: Callable[[str, int], int] = os.open) -> bool | None:
    """Whether another open file has the lock on the file at that path, which may be anything; None
    where that cannot be asked.
    """
    try:
        fd = opener(path, TO_ASK)
    except OSError:
        return None
    try:
        return is_held(fd)
    finally:
        os.close(fd)
