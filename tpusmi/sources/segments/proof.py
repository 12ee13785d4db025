"""Whether a process wrote the segment that names it. The kernel decides: a file is a claim."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import math
import os
import time
from typing import NamedTuple

from tpusmi.model import Host, ProcessKey
from tpusmi.sources.segments.locks import File, Locks
from tpusmi.sources.segments.unmapped import uid_of_the_unmapped
from tpusmi.wire import identity, places
from tpusmi.wire.layout import Header

ELSEWHERE_AGAIN_S = 2.0
"""Not more often are other pid namespaces looked for."""
ELSEWHERE_MOST = 32768
"""Processes that are looked at for that."""
ELSEWHERE_CPU_S = 0.15
"""And the time for it. No user is charged with it: how long it takes is not up to whose file it is.
"""
FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""The number that the kernel gives to the one of the machine itself, which shows all processes."""
OF_THE_MACHINE = ("uptime", "loadavg", "meminfo", "sys/kernel/random/boot_id")
"""Files that a /proc with processes alone does not have, as in a service with ProcSubset=pid."""
IN_ANOTHER_NAMESPACE = "in another pid namespace"
HIDDEN = "hidden by /proc"


class Claim(NamedTuple):
    """What a segment's file says, and what the kernel says of the file."""

    path: str
    owner: int
    header: Header
    file: File = (0, 0)
    is_held: bool | None = None
    """Whether its agent has the lock on it; None where nothing follows from the lock."""


class Machine:
    """The kernel's side: our boot, our pid namespace, the processes that /proc shows, the locks."""

    def __init__(self, host: Host) -> None:
        self.proc = host.path("/proc")
        self.boot_id = identity.boot_id(self.proc)
        self.pid_namespace = identity.pid_namespace(self.proc)
        self.elsewhere = _Elsewhere(self.proc)
        self.locks = Locks(host.path(host.own_proc))
        self._nobody = uid_of_the_unmapped()
        self.lacking = _lacking(host.path(host.own_proc))
        """Which files of /proc are not there, in words; empty when all are."""

    def runs(self, pid: int, start_ticks: int, uid: int) -> bool:
        """True for a living process of that number, start and real uid."""
        found = identity.start_ticks(self.proc, pid)
        return found == start_ticks and self.is_of(pid, uid)

    def is_of(self, pid: int, uid: int) -> bool:
        """True when that is the real uid of the process. Users whom our user namespace does not
        know all have one uid, which proves nothing.
        """
        return uid != self._nobody and identity.real_uid(self.proc, pid) == uid

    def lacks(self, pid: int, start_ticks: int, uid: int) -> bool:
        """True when there is certainly no such process. /proc may hide those of other users."""
        try:
            found = identity.start_ticks_if_there(self.proc, pid)
        except OSError:
            return False
        if found is not None:
            return found != start_ticks
        is_own = uid == os.geteuid() and uid != self._nobody
        return is_own or identity.start_ticks(self.proc, 1) is not None

    def look_for(self, claim: Claim) -> None:
        """Look for the process of a segment in the pid namespaces of others."""
        if _is_of_other_namespace(claim.header, self):
            self.elsewhere.look_for(claim.header)

    def may_run(self, claim: Claim) -> bool:
        """True when there may be a process that wrote it, and not all were looked at."""
        return _is_of_other_namespace(claim.header, self) and not self.elsewhere.is_complete

    def is_other_boot(self, boot_id: bytes) -> bool:
        """True when both boots are known and differ. A container may have a boot id of its own."""
        return any(boot_id) and any(self.boot_id) and boot_id != self.boot_id

    def whereabouts(self, claim: Claim) -> str:
        """Where a living process is that our /proc does not show, in words; empty when that is not
        the reason why it was not found.
        """
        h = claim.header
        if self.pid_namespace and _is_of_other_namespace(h, self):
            return "" if self._sees_all else IN_ANOTHER_NAMESPACE
        is_hidden = _is_our_namespace(h, self) and identity.start_ticks(self.proc, h.pid) is None
        return HIDDEN if is_hidden else ""

    @property
    def _sees_all(self) -> bool:
        """True where every process of the machine was looked at: none is in a namespace unseen."""
        is_first = self.pid_namespace == FIRST_PID_NAMESPACE and self._nobody is None
        return is_first and os.geteuid() == 0 and self.elsewhere.is_complete


def proven(claim: Claim, machine: Machine) -> ProcessKey | None:
    """The process that wrote the segment, by its pid in our /proc; None where that is not proven.

    The lock alone proves that such a process lives, and not which it is.
    """
    return _by_pid(claim, machine) or _by_inner_pid(claim, machine) or _by_lock(claim, machine)


class Standing(NamedTuple):
    """What the kernel says of the process that a segment names, and of its agent."""

    process: ProcessKey | None
    """It, as our /proc numbers it; None where the kernel has not confirmed that it wrote this."""
    is_gone: bool
    """Our /proc shows that it has certainly ended."""
    is_held: bool | None = None
    """Whether its agent has the segment; None where the lock does not tell."""

    @property
    def lives(self) -> bool:
        """True where the kernel proves that the process lives."""
        return not self.is_gone and (self.process is not None or self.is_held is True)


def standing(claim: Claim, machine: Machine, before: Standing) -> Standing:
    """What the kernel says now. A process that has ended stays the one that it was, also when a
    child that it forked still has the lock.
    """
    found = proven(claim, machine)
    if found is not None:
        return Standing(found, False, claim.is_held)
    known = before.process
    if known is not None and machine.lacks(known.pid, known.start_ticks, claim.owner):
        return Standing(known, True)
    return Standing(None, _has_ended(claim, machine), claim.is_held)


def _has_ended(claim: Claim, machine: Machine) -> bool:
    h = claim.header
    if not _is_our_namespace(h, machine):
        return False
    return machine.lacks(h.pid, h.start_ticks, claim.owner) and not _may_have_moved(claim, machine)


def _may_have_moved(claim: Claim, machine: Machine) -> bool:
    """True where a process of that number and user tells another start and may be the one: a time
    namespace moves the start of every process, and a restore gives a new one.
    """
    pid = claim.header.pid
    ticks = identity.start_ticks(machine.proc, pid)
    if not claim.is_held or ticks is None or not machine.is_of(pid, claim.owner):
        return False
    return machine.locks.has(pid, ticks, claim.file) is not False


def _by_pid(claim: Claim, machine: Machine) -> ProcessKey | None:
    """Its namespace is ours; number, start and real uid are those of a process here."""
    h = claim.header
    if h.pid_namespace and not _is_our_namespace(h, machine):
        return None
    found = machine.runs(h.pid, h.start_ticks, claim.owner)
    return ProcessKey(h.pid, h.start_ticks) if found else None


def _by_inner_pid(claim: Claim, machine: Machine) -> ProcessKey | None:
    """A process here has that namespace, that number in it, that start and that real uid."""
    h = claim.header
    if not _is_of_other_namespace(h, machine):
        return None
    for pid in machine.elsewhere.pids(h.pid_namespace, h.start_ticks):
        if _inner_pid(machine.proc, pid) == h.pid and machine.runs(pid, h.start_ticks, claim.owner):
            return ProcessKey(pid, h.start_ticks)
    return None


def _by_lock(claim: Claim, machine: Machine) -> ProcessKey | None:
    """Its namespace is ours; number and real uid are those of a process here that has the lock."""
    h = claim.header
    if not claim.is_held or _is_of_other_namespace(h, machine):
        return None
    ticks = identity.start_ticks(machine.proc, h.pid)
    if ticks is None or not machine.is_of(h.pid, claim.owner):
        return None
    return ProcessKey(h.pid, ticks) if machine.locks.has(h.pid, ticks, claim.file) else None


def _is_our_namespace(h: Header, machine: Machine) -> bool:
    return h.pid_namespace == machine.pid_namespace


def _is_of_other_namespace(h: Header, machine: Machine) -> bool:
    return bool(h.pid_namespace) and not _is_our_namespace(h, machine)


class _Elsewhere:
    """The processes of other pid namespaces that our /proc shows, as on the host of a container."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._pids: dict[tuple[int, int], list[int]] = {}
        """By namespace and start."""
        self._looked_at_s = -math.inf
        self.is_complete = False
        """False where not all processes were looked at, the last time."""

    def look_for(self, h: Header) -> None:
        """Look at all processes, if the one that a segment names is none that is known."""
        now_s = time.monotonic()
        is_known = (h.pid_namespace, h.start_ticks) in self._pids
        if not is_known and now_s - self._looked_at_s >= ELSEWHERE_AGAIN_S:
            self._looked_at_s = now_s
            self._look()

    def pids(self, namespace: int, start_ticks: int) -> list[int]:
        """Those of that namespace that started then."""
        return self._pids.get((namespace, start_ticks), [])

    def _look(self) -> None:
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


def _lacking(proc: str) -> str:
    if not identity.pid_namespace(proc):
        return ""  # it is no /proc at all, as of a machine that is put together for a test
    found = [name for name in OF_THE_MACHINE if not os.path.exists(f"{proc}/{name}")]
    names = ", ".join(f"/proc/{name}" for name in found)
    return f"what {names} would tell is not known: there is no such file here" if names else ""


def _inner_pid(proc: str, pid: int) -> int | None:
    """Its number in its own pid namespace, the last of NSpid."""
    try:
        with open(f"{proc}/{pid}/status", "rb") as file:
            line = next(line for line in file if line.startswith(b"NSpid:"))
        return int(line.split()[-1])
    except (OSError, StopIteration, ValueError):
        return None
