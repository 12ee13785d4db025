"""What the lock on a segment tells of its agent, and where it tells nothing.

wire/lock.py says what the lock is. Here is who has it, as far as /proc tells, and on which file
systems nothing follows from a lock that is free.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import itertools
import math
import os
import time

from tpusmi.wire import mountinfo

NETWORK = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse", "gfs2", "glusterfs", "gpfs"),
        *("lustre", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "vboxsf"),
        *("virtiofs", "wekafs"),
    )
)
"""Another machine, or a program, keeps the files: a lock there may not be seen here."""
DESCRIPTORS_MOST = 4096
"""Of one process, that are looked at for the lock."""
ONE_MOST_BYTES = 4096
LOOKS_CPU_S = 0.1
LOOKS_EVERY_S = 2.0
"""So much time of each such span goes into looking who has a lock."""
KNOWN_MOST = 1024
UNKNOWN = "the list of mounts cannot be read"


File = tuple[int, int]
"""By its device and its inode."""
_Look = tuple[int, int, File]
"""A process by its number and start, and a file."""


class Locks:
    """What the kernel tells of locks, between reads."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._network: dict[int, str] = {}
        self._holds: dict[_Look, bool] = {}
        self._left_s = LOOKS_CPU_S
        self._renewed_at_s = -math.inf

    def network(self, device: int) -> str:
        """The kind of file system that device is, where locks tell nothing: `nfs4`; else empty.
        UNKNOWN where that cannot be asked now, and so for a lock as well.
        """
        if device not in self._network:  # it may have been mounted this moment, as homes often are
            try:
                found = _network_mounts(self._proc).get(device, "")
            except OSError:
                return UNKNOWN
            if len(self._network) >= KNOWN_MOST:
                self._network.clear()
            self._network[device] = found
        return self._network[device]

    def has(self, pid: int, start_ticks: int, file: File) -> bool | None:
        """Whether that process has the lock on that file. None where that cannot be asked: the
        kernel tells the process's user and root alone.
        """
        look = (pid, start_ticks, file)
        if look not in self._holds:
            found = self._look(pid, file)
            if found is None:
                return None
            if len(self._holds) >= KNOWN_MOST:
                self._holds.clear()
            self._holds[look] = found
        return self._holds[look]

    def _look(self, pid: int, file: File) -> bool | None:
        now_s = time.monotonic()
        if now_s - self._renewed_at_s >= LOOKS_EVERY_S:
            self._renewed_at_s, self._left_s = now_s, LOOKS_CPU_S
        began_s = time.thread_time()
        try:
            return _has_lock(f"{self._proc}/{pid}/fdinfo", file, began_s + self._left_s)
        finally:
            self._left_s -= time.thread_time() - began_s


def _has_lock(directory: str, file: File, until_s: float) -> bool | None:
    """`lock: 1: OFDLCK ADVISORY WRITE -1 00:1b:388333 0 0` stands with one of its descriptors."""
    device, inode = file
    wanted = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}".encode()
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in itertools.islice(entries, DESCRIPTORS_MOST)]
    except OSError:
        return None
    for name in names:
        if time.thread_time() > until_s:
            return None
        if any(_is_lock(line, wanted) for line in _lines(f"{directory}/{name}")):
            return True
    return False if 0 < len(names) < DESCRIPTORS_MOST else None


def _is_lock(line: bytes, wanted: bytes) -> bool:
    words = line.split()
    return words[:1] == [b"lock:"] and {b"OFDLCK", b"WRITE", wanted} <= set(words)


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read(ONE_MOST_BYTES).splitlines()
    except OSError:
        return []  # closed meanwhile


def _network_mounts(proc: str) -> dict[int, str]:
    """The kinds of network file systems that are mounted, by device; none where the /proc is that
    of a machine without such a list. Raises OSError where it cannot be read now.
    """
    try:
        listed = mountinfo.listed(f"{proc}/self")
    except FileNotFoundError:
        return {}
    found = {}
    for m in mountinfo.mounts(listed):
        kind, device = m.kind.decode("utf-8", "replace"), _device(m.device)
        if device is not None and kind.partition(".")[0] in NETWORK:
            found[device] = kind
    return found


def _device(numbers: bytes) -> int | None:
    """The device that `0:52` is."""
    try:
        major, minor = map(int, numbers.split(b":"))
        return os.makedev(major, minor)
    except (ValueError, OverflowError):
        return None
