"""One pass after the other over all processes, and what each shows: quick where nothing changed."""

import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tpusmi.model import (
    DENIED,
    FAILED,
    HOLDERS,
    OK,
    Host,
    LockFile,
    Outcome,
    Process,
    Status,
    Visibility,
)
from tpusmi.sources.holders.describe import Describer
from tpusmi.sources.holders.lockfile import PATHS, lock_files
from tpusmi.sources.holders.nodes import Nodes
from tpusmi.sources.holders.open_files import OpenLockFile
from tpusmi.sources.holders.procfs import is_ours, read_stat
from tpusmi.sources.holders.scan import Scan, ScanResult, sees_every_process
from tpusmi.text import counted

IN_A_CONTAINER = (
    "processes outside this container, or pid namespace, cannot be seen: others may hold the TPU"
)
SIGHT_UNKNOWN = "this /proc may not show every process: others may hold the TPU"
HIDES_OTHERS = "this /proc hides the processes of other users: others may hold the TPU; try sudo"
LOCKS_AGAIN_S = 2.0
FULL_AGAIN_S = 1.0
"""At least this time passes between full scans for nodes that have been opened."""
MAPS_AT_FIRST, MAPS_AT_ONCE = 1 << 30, 8
"""How many processes have their maps read in the first pass, and in a later one: maps are long."""
LIBRARY = b"libtpu.so"
MAPS_MOST_BYTES, LOOK_MOST_BYTES = 4 << 20, 48 << 20
"""Most bytes of maps read of one process, and of all in one look: a process can make its maps as
long as it likes. JAX with libtpu has a few hundred kilobytes.
"""
CHUNK_BYTES = 64 * 1024
SHOWN_MOST = 64
"""Most processes that are listed: any user may start very many, and each takes long to describe."""


class _LockLook(NamedTuple):
    """The lock files at the last look."""

    at_s: float
    opened: tuple[OpenLockFile, ...]
    files: tuple[LockFile, ...]


class Passes:
    """The passes over the processes of a host, and what is remembered between them."""

    def __init__(self, host: Host, detailed: bool) -> None:
        self._host = host
        self._proc = host.path("/proc")
        self._detailed = detailed
        self._nodes = Nodes({}, {}, ())
        self._scan: Scan | None = None
        self._watch: Watch | None = None
        self._full_at_s = -math.inf
        self._locks: _LockLook | None = None
        self._loaded = Loaded(self._proc)
        self.describer = Describer(self._proc, detailed, host.older_s)

    def close(self) -> None:
        """Stop the watch."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def outcome(self, nodes: Nodes, now_s: float) -> Outcome:
        """One more pass: every process that holds one of those nodes."""
        started_s = time.monotonic()
        if not is_ours(self._proc):
            return Outcome(HOLDERS, FAILED, f"{self._proc} is not the /proc of this process")
        try:
            scanned = self._scanned(nodes, now_s)
        except OSError as error:
            return Outcome(HOLDERS, FAILED, f"{self._proc}: {error.strerror}")
        processes = self.describer.processes(scanned.holders, self._loaded.pids(), now_s)
        why = _why_unseen(self._host, scanned)
        unseen = _unseen(scanned.hidden, why)
        status, message = _status(processes, bool(scanned.hidden) or scanned.hides_others, unseen)
        return Outcome(
            HOLDERS,
            status,
            message,
            took_s=time.monotonic() - started_s,
            processes=processes,
            lock_files=self._lock_files(scanned.lock_files, not why, now_s),
            visibility=Visibility(
                nodes=tuple(nodes.names),
                closed_nodes=nodes.closed,
                not_inspected=scanned.hidden,
                own_pid_namespace=bool(why),
                reason=unseen,
            ),
            notes=self._loaded.notes(),
        )

    def _scanned(self, nodes: Nodes, now_s: float) -> ScanResult:
        """One pass, quick where nothing has changed. Raises OSError."""
        first = self._scan is None or nodes != self._nodes
        if first:
            self._nodes = nodes
            self._scan = Scan(self._proc, nodes, map(self._host.path, PATHS))
            self.close()
        elif self._watch is None:
            # Not in the first pass: a single look has no use for it.
            self._watch = Watch(nodes.paths)
        assert self._scan is not None
        opened = self._watch is not None and self._watch.has_seen_open()
        full = opened and now_s - self._full_at_s >= FULL_AGAIN_S
        if first or full:
            self._full_at_s = now_s
        self._scan.look(now_s, full)
        if self._detailed and not self._host.simulated:  # our processes are not that machine's
            self._loaded.look(self._scan.inodes(), MAPS_AT_FIRST if first else MAPS_AT_ONCE)
        return self._scan.result()

    def _lock_files(
        self, opened: tuple[OpenLockFile, ...], sees_all: bool, now_s: float
    ) -> tuple[LockFile, ...]:
        """The lock files, not read in every pass: the kernel's table of locks costs all programs
        time.
        """
        last = self._locks
        if last is None or last.opened != opened or now_s - last.at_s >= LOCKS_AGAIN_S:
            self._locks = last = _LockLook(now_s, opened, lock_files(self._host, opened, sees_all))
        return last.files


class Loaded:
    """Which processes have libtpu mapped: a monitor may have, and holds no TPU. Reads the maps of
    some processes at a time: they take long to read.
    """

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._read: dict[int, int] = {}
        """Inodes, by pid, of the processes whose maps were read in this round."""
        self._loaded: dict[int, int] = {}

    def look(self, inodes: Mapping[int, int], most: int) -> None:
        """Read the maps of up to `most` processes that were not read in this round. The inode shows
        whether a pid was reused.
        """
        unread = [pid for pid, inode in inodes.items() if self._read.get(pid) != inode]
        if not unread:
            self._read = {}
        left = LOOK_MOST_BYTES
        for pid in reversed(unread[-most:]):  # the newest: the first ones are the system's
            if left <= 0:
                break  # the others are read in the next look
            inode = self._read[pid] = inodes[pid]
            is_loaded, size = _maps_library(f"{self._proc}/{pid}")
            left -= size
            if is_loaded:
                self._loaded[pid] = inode
            else:
                self._loaded.pop(pid, None)
        self._loaded = {pid: i for pid, i in self._loaded.items() if inodes.get(pid) == i}

    def pids(self) -> tuple[int, ...]:
        """The processes that have it mapped, up to SHOWN_MOST of them."""
        return tuple(self._loaded)[:SHOWN_MOST]

    def notes(self) -> tuple[str, ...]:
        """A note that there are more."""
        more = len(self._loaded) - SHOWN_MOST
        return (f"{more} more processes have libtpu loaded, and hold no TPU",) if more > 0 else ()


class Watch:
    """Learns by inotify that a file was opened, and opens none itself. Where the kernel offers no
    inotify it never reports anything.
    """

    _OPENED, _NONBLOCK_CLOEXEC = 0x20, os.O_NONBLOCK | os.O_CLOEXEC
    _READ_BYTES = 1 << 16

    def __init__(self, paths: Iterable[str]) -> None:
        self._descriptor = -1
        try:
            import ctypes
        except ImportError:
            return  # a Python that was built without it
        libc = ctypes.CDLL(None)
        self._descriptor = libc.inotify_init1(self._NONBLOCK_CLOEXEC)
        for path in paths:
            if self._descriptor >= 0:
                libc.inotify_add_watch(self._descriptor, os.fsencode(path), self._OPENED)

    def has_seen_open(self) -> bool:
        """True when one of the files was opened since the last call."""
        if self._descriptor < 0:
            return False
        try:
            return bool(os.read(self._descriptor, self._READ_BYTES))
        except OSError:
            return False

    def close(self) -> None:
        """End the watch."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_inside(host: Host) -> bool:
    """True where only the processes of a container can be seen, and others may hold the TPU."""
    return host.root == "/" and not sees_every_process()


def _why_unseen(host: Host, scanned: ScanResult) -> str:
    """Why some processes may not even be listed; empty where all are."""
    reasons = [HIDES_OTHERS] if scanned.hides_others else []
    if is_inside(host):
        reasons.append(SIGHT_UNKNOWN if sees_every_process() is None else IN_A_CONTAINER)
    return "; ".join(reasons)


def _status(processes: Sequence[Process], is_refused: bool, unseen: str) -> tuple[Status, str]:
    """Status and message. Never `free` when some processes could not be inspected; DENIED where
    root could have inspected them.
    """
    count = sum(1 for p in processes if p.holds)
    if count:
        holders = counted(count, "holder")
        return OK, f"{holders} ({unseen})" if unseen else holders
    status = DENIED if is_refused and os.geteuid() != 0 else OK
    return status, f"no holder visible ({unseen})" if unseen else "no process holds the TPU"


def _unseen(hidden: int, why: str) -> str:
    """What could not be inspected, and what helps; empty when everything could."""
    parts = []
    if hidden:
        whose = "" if os.geteuid() == 0 else " of other users"
        how = "could not be inspected, even as root"
        how = how if os.geteuid() == 0 else "not inspected, try sudo"
        parts.append(f"{counted(hidden, 'process', 'processes')}{whose} {how}")
    return "; ".join([*parts, why] if why else parts)


def _maps_library(process: str) -> tuple[bool, int]:
    """Whether the beginning of its maps names libtpu, which an upgrade may have deleted since, and
    how many bytes were read. False if they are hidden, and in uninterruptible sleep, when a reader
    might sleep with it.
    """
    stat = read_stat(process)
    if stat is None or stat.state == "D":
        return False, 0
    size, before = 0, b""
    try:
        with open(f"{process}/maps", "rb", buffering=0) as file:
            while size < MAPS_MOST_BYTES and (chunk := file.read(CHUNK_BYTES)):
                size += len(chunk)
                if LIBRARY in before + chunk:
                    return True, size
                before = chunk[1 - len(LIBRARY) :]
    except OSError:
        pass
    return False, size
