"""Which processes hold which device nodes of a TPU, and in what state libtpu's lock file is.

A node is never opened: a monitor's open would make the real job's fail.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tpusmi.model import (
    ABSENT,
    DENIED,
    FAILED,
    HOLDERS,
    OK,
    Chip,
    Host,
    LockFile,
    Outcome,
    Process,
    Status,
    Visibility,
)
from tpusmi.sources.holders.describe import Describer
from tpusmi.sources.holders.loaded import Loaded
from tpusmi.sources.holders.lockfile import PATHS, lock_files
from tpusmi.sources.holders.nodes import Nodes, known_nodes
from tpusmi.sources.holders.procfs import is_ours
from tpusmi.sources.holders.scan import Found, Opened, Scan, sees_everybody
from tpusmi.sources.holders.watch import Watch
from tpusmi.text import counted

PERIOD_S = 0.5
IN_A_CONTAINER = (
    "processes outside this container, or pid namespace, cannot be seen: others may hold the TPU"
)
SIGHT_UNKNOWN = "whether this /proc shows every process is not known: others may hold the TPU"
HIDES_OTHERS = "this /proc hides the processes of other users: others may hold the TPU; try sudo"
LOCKS_AGAIN_S = 2.0
FULL_AGAIN_S = 1.0
"""Not more often is everybody looked at because a node was opened."""
MAPS_AT_FIRST, MAPS_AT_ONCE = 1 << 30, 8
"""Maps are long to read: of so many processes in one pass."""


class _Locks(NamedTuple):
    """The lock files as they were asked for last."""

    at_s: float
    opened: tuple[Opened, ...]
    files: tuple[LockFile, ...]


class Holders:
    """The processes that hold a TPU. Asked by other sources too, hence the lock."""

    name = HOLDERS
    period_s = PERIOD_S

    def __init__(
        self, host: Host, chips: Callable[[], Sequence[Chip]], detailed: bool = False
    ) -> None:
        """`detailed` adds what is only shown: processes that only map libtpu, what a holder uses of
        the host, who started it.
        """
        self._host = host
        self._chips = chips
        self._proc = host.path("/proc")
        self._detailed = detailed
        self._lock = threading.Lock()
        self._newest: Outcome | None = None
        self._read_at_s = 0.0
        self._has_read = False
        self._nodes = Nodes({}, {}, ())
        self._scan: Scan | None = None
        self._watch: Watch | None = None
        self._judged_at_s = -math.inf
        self._locks: _Locks | None = None
        self._loaded = Loaded(self._proc)
        self._describer = Describer(self._proc, detailed, host.older_s)

    def read(self, now_s: float) -> Outcome:
        """Every holder with its nodes. ABSENT when the host has no node of a TPU.

        The first time it waits until it shows whether those that look left behind work.
        """
        with self._lock:
            found = self._look(now_s)
            wait_s = 0.0 if self._has_read else self._describer.wait_s
            self._has_read = True
        if not wait_s:
            return found
        time.sleep(wait_s)  # without the lock: others ask who holds the TPU meanwhile
        with self._lock:
            self._newest = found = found._replace(processes=self._describer.again())
        return found._replace(took_s=found.took_s + wait_s)

    def close(self) -> None:
        """Let go of the watch, unless a look is under way: the next one's end does."""
        if self._lock.acquire(blocking=False):
            self._drop_watch()
            self._lock.release()

    def processes(self) -> Sequence[Process]:
        """The holders, from a pass that is not older than two periods."""
        now_s = time.monotonic()
        with self._lock:
            if self._newest is None or now_s - self._read_at_s > 2 * PERIOD_S:
                self._look(now_s)
            assert self._newest is not None
            return [p for p in self._newest.processes if p.holds]

    def _look(self, now_s: float) -> Outcome:
        self._newest = self._outcome(now_s)
        self._read_at_s = now_s
        return self._newest

    def _outcome(self, now_s: float) -> Outcome:
        started_s = time.monotonic()
        nodes = known_nodes(self._host, self._chips())
        if not nodes.names:
            return Outcome(self.name, ABSENT, "no device node of a TPU")
        if not is_ours(self._proc):
            return Outcome(self.name, FAILED, f"{self._proc} is not the one of this process")
        try:
            found = self._found(nodes, now_s)
        except OSError as error:
            return Outcome(self.name, FAILED, f"{self._proc}: {error.strerror}")
        processes = self._describer.processes(found.holders, self._loaded.pids(), now_s)
        why = _why_unseen(self._host, found)
        unseen = _unseen(found.hidden, why)
        status, message = _status(processes, bool(found.hidden) or found.hides_others, unseen)
        return Outcome(
            self.name,
            status,
            message,
            took_s=time.monotonic() - started_s,
            processes=processes,
            lock_files=self._lock_files(found.files, not why, now_s),
            visibility=Visibility(
                nodes=tuple(nodes.names),
                closed_nodes=nodes.closed(self._host),
                not_inspected=found.hidden,
                own_pid_namespace=bool(why),
                reason=unseen,
            ),
            notes=self._loaded.notes(),
        )

    def _found(self, nodes: Nodes, now_s: float) -> Found:
        """One pass, quick where nothing has changed. Raises OSError."""
        paths = tuple(self._host.path(path) for path in nodes.paths)
        first = self._scan is None or nodes != self._nodes
        if first:
            self._nodes = nodes
            own = nodes._replace(paths=paths)
            self._scan = Scan(self._proc, own, map(self._host.path, PATHS))
            self._drop_watch()
        elif self._watch is None:
            self._watch = Watch(paths)  # not at first: whoever looks but once has no use for it
        assert self._scan is not None
        opened = self._watch is not None and self._watch.has_seen()
        everybody = opened and now_s - self._judged_at_s >= FULL_AGAIN_S
        if first or everybody:
            self._judged_at_s = now_s
        self._scan.look(now_s, everybody)
        if self._detailed and not self._host.simulated:  # our processes are not that machine's
            self._loaded.look(self._scan.inodes(), MAPS_AT_FIRST if first else MAPS_AT_ONCE)
        return self._scan.found()

    def _lock_files(
        self, opened: tuple[Opened, ...], sees_all: bool, now_s: float
    ) -> tuple[LockFile, ...]:
        """Their states, not asked at every look: the kernel's table of locks is dear to all."""
        before = self._locks
        if before is None or before.opened != opened or now_s - before.at_s >= LOCKS_AGAIN_S:
            found = lock_files(self._host, opened, sees_all)
            self._locks = before = _Locks(now_s, opened, found)
        return before.files

    def _drop_watch(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None


def is_inside(host: Host) -> bool:
    """True where only the processes of a container can be seen, and others may hold the TPU."""
    return host.root == "/" and not sees_everybody()


def _why_unseen(host: Host, found: Found) -> str:
    """Why there may be processes that are not even listed; empty where all are."""
    reasons = [HIDES_OTHERS] if found.hides_others else []
    if is_inside(host):
        reasons.append(SIGHT_UNKNOWN if sees_everybody() is None else IN_A_CONTAINER)
    return "; ".join(reasons)


def _status(found: Sequence[Process], is_refused: bool, unseen: str) -> tuple[Status, str]:
    """Never `free` when there are processes that could not be inspected. DENIED where root could
    have inspected them.
    """
    count = sum(1 for p in found if p.holds)
    if count:
        holders = counted(count, "holder")
        return OK, f"{holders} ({unseen})" if unseen else holders
    status = DENIED if is_refused and os.geteuid() != 0 else OK
    return status, f"no holder visible ({unseen})" if unseen else "no process holds the TPU"


def _unseen(hidden: int, why: str) -> str:
    """What could not be inspected, with what helps; empty when everything could."""
    words = []
    if hidden:
        whose = "" if os.geteuid() == 0 else " of other users"
        cure = "not even by root" if os.geteuid() == 0 else "try sudo"
        words.append(f"{counted(hidden, 'process', 'processes')}{whose} not inspected, {cure}")
    return "; ".join([*words, why] if why else words)
