"""What the lock on a segment proves about its agent, and where it proves nothing.

wire/lock.py says what the lock is. Here is which process has it, as far as /proc shows, and on
which file systems a lock that looks free proves nothing.
"""

import itertools
import math
import os
import time

from tpusmi.wire import mountinfo

NETWORK = frozenset((
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse", "gfs2", "glusterfs", "gpfs", "lustre",
    "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs", "wekafs",
))  # fmt: skip
"""File systems of another machine, or of a program: a lock there may be invisible here."""
DESCRIPTORS_MOST = 4096
"""Most descriptors of one process that are searched for the lock."""
ONE_MOST_BYTES = 4096
"""Most that is read about one descriptor."""
LOOKS_CPU_S, LOOKS_EVERY_S = 0.1, 2.0
"""Processor time for finding out who has a lock, in each such span."""
KEPT_MOST = 1024
"""Most answers that are kept."""
UNKNOWN = "the list of mounts cannot be read"


File = tuple[int, int]
"""Device and inode of a file."""


class Locks:
    """What the kernel says about locks, between reads."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._network: dict[int, str] = {}
        self._has_lock: dict[tuple[int, int, File], bool] = {}
        """Answers for a process, by pid and start, and a file."""
        self._left_s = LOOKS_CPU_S
        self._renewed_at_s = -math.inf

    def network(self, device: int) -> str:
        """The type of the file system on that device, where a lock proves nothing: `nfs4`; else
        empty. UNKNOWN where the mounts cannot be read now.
        """
        if device not in self._network:  # it may have just been mounted, as homes often are
            try:
                kind = _network_mounts(self._proc).get(device, "")
            except OSError:
                return UNKNOWN
            if len(self._network) >= KEPT_MOST:
                self._network.clear()
            self._network[device] = kind
        return self._network[device]

    def has(self, pid: int, start_ticks: int, file: File) -> bool | None:
        """Whether that process has the lock on that file. None where this user may not see it: only
        root and the process's own user may.
        """
        key = (pid, start_ticks, file)
        if key not in self._has_lock:
            answer = self._read(pid, file)
            if answer is None:
                return None
            if len(self._has_lock) >= KEPT_MOST:
                self._has_lock.clear()
            self._has_lock[key] = answer
        return self._has_lock[key]

    def _read(self, pid: int, file: File) -> bool | None:
        now_s = time.monotonic()
        if now_s - self._renewed_at_s >= LOOKS_EVERY_S:
            self._renewed_at_s, self._left_s = now_s, LOOKS_CPU_S
        began_s = time.thread_time()
        try:
            return _has_lock(f"{self._proc}/{pid}/fdinfo", file, began_s + self._left_s)
        finally:
            self._left_s -= time.thread_time() - began_s


def _has_lock(directory: str, file: File, until_s: float) -> bool | None:
    """True where one of the descriptors has a line such as
    `lock: 1: OFDLCK ADVISORY WRITE -1 00:1b:388333 0 0`; None where not all can be read in time.
    """
    device, inode = file
    numbers = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}".encode()
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in itertools.islice(entries, DESCRIPTORS_MOST)]
    except OSError:
        return None
    for name in names:
        if time.thread_time() > until_s:
            return None
        for line in _lines(f"{directory}/{name}"):
            if line.startswith(b"lock:") and {b"OFDLCK", b"WRITE", numbers} <= set(line.split()):
                return True
    return False if 0 < len(names) < DESCRIPTORS_MOST else None


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read(ONE_MOST_BYTES).splitlines()
    except OSError:
        return []  # it was closed


def _network_mounts(proc: str) -> dict[int, str]:
    """The types of the network file systems that are mounted, by device; none where /proc has no
    list of mounts. Raises OSError where the list cannot be read now.
    """
    try:
        listed = mountinfo.listed(f"{proc}/self")
    except FileNotFoundError:
        return {}
    kinds = {}
    for m in mountinfo.mounts(listed):
        kind, device = m.kind.decode("utf-8", "replace"), _device(m.device)
        if device is not None and kind.partition(".")[0] in NETWORK:
            kinds[device] = kind
    return kinds


def _device(numbers: bytes) -> int | None:
    """The device of `0:52`; None for anything else."""
    try:
        major, minor = map(int, numbers.split(b":"))
        return os.makedev(major, minor)
    except (ValueError, OverflowError):
        return None
