"""Whether a process wrote the segment that names it. The kernel decides: a file is only a claim."""

import math
import os
import time
from typing import NamedTuple

from tpusmi.model import Host, ProcessKey
from tpusmi.sources.segments.locks import File, Locks
from tpusmi.wire import identity, places
from tpusmi.wire.layout import Header

ELSEWHERE_AGAIN_S = 2.0
"""Other pid namespaces are searched at most this often."""
ELSEWHERE_MOST = 32768
"""Most processes that one such search looks at."""
ELSEWHERE_CPU_S = 0.15
"""Processor time of one such search. No user is charged with it: how long it takes does not depend
on whose file it is for.
"""
FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""The kernel's number for the pid namespace of the machine itself, which shows all processes."""
OF_THE_MACHINE = ("uptime", "loadavg", "meminfo", "sys/kernel/random/boot_id")
"""Files that a /proc with processes alone does not have, as in a service with ProcSubset=pid."""
IN_ANOTHER_NAMESPACE = "in another pid namespace"
HIDDEN = "hidden by /proc"
UIDS, OVERFLOW_UID = 2**32 - 1, 65534
"""How many uids there are, and the one of unknown users where the kernel does not say."""


class Claim(NamedTuple):
    """What a segment's file says, and what the kernel says about the file."""

    owner: int
    header: Header
    file: File = (0, 0)
    is_locked: bool | None = None
    """Whether its agent has the lock on it; None where the lock proves nothing."""


class Evidence(NamedTuple):
    """What the kernel says about the process that a segment names, and about its agent."""

    process: ProcessKey | None
    """The process, as our /proc numbers it; None where the kernel has not confirmed that it wrote
    the segment.
    """
    is_alive: bool | None
    """True where the kernel proves that the process is alive, False where our /proc shows that it
    has certainly ended, None where neither is known.
    """
    is_locked: bool | None = None
    """Whether its agent has the segment locked; None where the lock proves nothing."""


class Kernel:
    """The kernel's side: our boot, our pid namespace, the processes that /proc shows, the locks."""

    def __init__(self, host: Host) -> None:
        self.proc = host.path("/proc")
        self.boot_id = identity.boot_id(self.proc)
        self.pid_namespace = identity.pid_namespace(self.proc)
        self.other_namespaces = _OtherNamespaces(self.proc)
        self.locks = Locks(host.path(host.own_proc))
        self._unmapped_uid = _unmapped_uid()
        self.limits = _limits(host.path(host.own_proc))
        """What cannot be read from this /proc, in words; empty when everything can."""

    def runs(self, pid: int, start_ticks: int, uid: int) -> bool:
        """True for a living process of that pid, start and real uid."""
        return identity.start_ticks(self.proc, pid) == start_ticks and self.is_run_by(pid, uid)

    def is_run_by(self, pid: int, uid: int) -> bool:
        """True when that is the real uid of the process. Users that our user namespace does not
        know all have one uid, which proves nothing.
        """
        return uid != self._unmapped_uid and identity.real_uid(self.proc, pid) == uid

    def has_ended(self, pid: int, start_ticks: int, uid: int) -> bool:
        """True when there is certainly no such process. /proc may hide those of other users."""
        try:
            ticks = identity.start_ticks_if_there(self.proc, pid)
        except OSError:
            return False
        if ticks is not None:
            return ticks != start_ticks
        is_own = uid == os.geteuid() and uid != self._unmapped_uid
        return is_own or identity.start_ticks(self.proc, 1) is not None

    def is_from_another(self, h: Header) -> bool:
        """True for a segment that was written in a pid namespace other than ours."""
        return h.pid_namespace not in (0, self.pid_namespace)

    def is_other_boot(self, boot_id: bytes) -> bool:
        """True when both boots are known and differ. A container may have a boot id of its own."""
        return any(boot_id) and any(self.boot_id) and boot_id != self.boot_id

    def is_this_boot(self, boot_id: bytes) -> bool:
        """True when that is our boot: not one of another machine, real or virtual."""
        return any(boot_id) and boot_id == self.boot_id

    def whereabouts(self, claim: Claim) -> str:
        """Where a living process is that our /proc does not show, in words; empty when that is not
        the reason why it was not found.
        """
        h = claim.header
        if self.pid_namespace and self.is_from_another(h):
            return "" if self._sees_all else IN_ANOTHER_NAMESPACE
        is_ours = h.pid_namespace == self.pid_namespace
        return HIDDEN if is_ours and identity.start_ticks(self.proc, h.pid) is None else ""

    @property
    def _sees_all(self) -> bool:
        """True where every process of the machine was looked at: none is in a hidden namespace."""
        is_first = self.pid_namespace == FIRST_PID_NAMESPACE and self._unmapped_uid is None
        return is_first and os.geteuid() == 0 and self.other_namespaces.is_complete


def examine(claim: Claim, kernel: Kernel, before: Evidence) -> Evidence:
    """What the kernel says now. A process that has ended stays the one that it was, also when a
    child that it forked still has the lock.
    """
    writer = _writer(claim, kernel)
    if writer is not None:
        return Evidence(writer, is_alive=True, is_locked=claim.is_locked)
    was = before.process
    if was is not None and kernel.has_ended(was.pid, was.start_ticks, claim.owner):
        return Evidence(was, is_alive=False)
    if _has_ended(claim, kernel):
        return Evidence(None, is_alive=False, is_locked=claim.is_locked)
    # The lock alone proves that such a process is alive, not which one it is.
    return Evidence(None, is_alive=True if claim.is_locked else None, is_locked=claim.is_locked)


def _has_ended(claim: Claim, kernel: Kernel) -> bool:
    h = claim.header
    if h.pid_namespace != kernel.pid_namespace:
        return False
    # The machines of a cluster all have that pid namespace. Where no lock shows, it may be a job of
    # another one.
    if claim.is_locked is None and kernel.is_other_boot(h.boot_id):
        return False
    if not kernel.has_ended(h.pid, h.start_ticks, claim.owner):
        return False
    # A time namespace moves the start of every process, and a restore gives a new one: a process of
    # that pid with another start may be the one.
    return _lock_holder(claim, kernel)[1] is False


def _writer(claim: Claim, kernel: Kernel) -> ProcessKey | None:
    """The process here that has the pid and the real uid of the segment. One of another namespace
    also has its pid in there and its start; one of ours has its start, or the lock on the segment.
    """
    h = claim.header
    if kernel.is_from_another(h):
        for pid in kernel.other_namespaces.pids(h.pid_namespace, h.start_ticks):
            is_inner = identity.inner_pid(kernel.proc, pid) == h.pid
            if is_inner and kernel.runs(pid, h.start_ticks, claim.owner):
                return ProcessKey(pid, h.start_ticks)
        return None
    if kernel.runs(h.pid, h.start_ticks, claim.owner):
        return ProcessKey(h.pid, h.start_ticks)
    ticks, has_lock = _lock_holder(claim, kernel)
    return ProcessKey(h.pid, ticks) if ticks is not None and has_lock else None


def _lock_holder(claim: Claim, kernel: Kernel) -> tuple[int | None, bool | None]:
    """The start of the process here that has the pid and the user of a segment, and whether it has
    the lock on it; None where that cannot be seen.
    """
    pid = claim.header.pid
    ticks = identity.start_ticks(kernel.proc, pid)
    if not claim.is_locked or ticks is None or not kernel.is_run_by(pid, claim.owner):
        return None, False
    return ticks, kernel.locks.has(pid, ticks, claim.file)


class _OtherNamespaces:
    """The processes of other pid namespaces that our /proc shows, as on the host of a container."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._pids: dict[tuple[int, int], list[int]] = {}
        """Pids by namespace and start."""
        self._searched_at_s = -math.inf
        self.is_complete = False
        """False where the last search did not look at all processes."""

    def look_for(self, h: Header) -> None:
        """Look at all processes, if the one that a segment names is not among those found."""
        now_s = time.monotonic()
        is_found = (h.pid_namespace, h.start_ticks) in self._pids
        if not is_found and now_s - self._searched_at_s >= ELSEWHERE_AGAIN_S:
            self._searched_at_s = now_s
            self._search()

    def pids(self, namespace: int, start_ticks: int) -> list[int]:
        """The processes of that namespace with that start."""
        return self._pids.get((namespace, start_ticks), [])

    def _search(self) -> None:
        self._pids = {}
        until_s = time.thread_time() + ELSEWHERE_CPU_S
        own = identity.pid_namespace(self._proc)
        names = places.names(self._proc, ELSEWHERE_MOST)
        self.is_complete = len(names) < ELSEWHERE_MOST
        for name in names:
            if not name.isdigit():
                continue
            if time.thread_time() > until_s:
                self.is_complete = False
                return
            namespace = identity.pid_namespace(self._proc, name)
            if namespace in (0, own):
                continue
            ticks = identity.start_ticks(self._proc, int(name))
            if ticks is not None:
                self._pids.setdefault((namespace, ticks), []).append(int(name))


def _limits(proc: str) -> str:
    if not identity.pid_namespace(proc):
        return ""  # not a real /proc, but one that a test has made
    missing = [f"/proc/{name}" for name in OF_THE_MACHINE if not os.path.exists(f"{proc}/{name}")]
    return f"{', '.join(missing)} cannot be read here" if missing else ""


def _unmapped_uid() -> int | None:
    """The uid that stands for every user that our user namespace does not know, as in a container
    without root; None where it knows all users.
    """
    try:
        with open("/proc/self/uid_map", "rb") as file:
            mapped = sum(int(line.split()[2]) for line in file.read(65536).splitlines())
        if mapped >= UIDS:
            return None
    except (OSError, IndexError, ValueError):
        return None
    try:
        with open("/proc/sys/kernel/overflowuid", "rb") as file:
            return int(file.read(32))
    except (OSError, ValueError):
        return OVERFLOW_UID  # a /proc with processes alone
