"""Whether a process wrote the segment that names it. The kernel decides: a file is a claim."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import math
import os
import time
from typing import NamedTuple

from tpusmi.model import Host, ProcessKey
from tpusmi.wire import places
from tpusmi.wire.layout import Header

ELSEWHERE_AGAIN_S = 2.0
"""Not more often are other pid namespaces looked for."""
ELSEWHERE_MOST = 32768
"""Processes that are looked at for that."""
ELSEWHERE_CPU_S = 0.15
"""And the time for it. No user is charged with it: how long it takes is not up to whose file it is.
"""


class Claim(NamedTuple):
    """What a segment's file says, and whose file it is by the kernel."""

    path: str
    owner: int
    header: Header


class Machine:
    """The kernel's side: our boot, our pid namespace, the processes that /proc shows."""

    def __init__(self, host: Host) -> None:
        self.proc = host.path("/proc")
        self.boot_id = places.boot_id(self.proc)
        self.pid_namespace = places.pid_namespace(self.proc)
        self.elsewhere = _Elsewhere(self.proc)

    def runs(self, pid: int, start_ticks: int, uid: int) -> bool:
        """True for a living process of that number, start and real uid."""
        found = places.start_ticks(self.proc, pid)
        return found == start_ticks and places.real_uid(self.proc, pid) == uid

    def lacks(self, pid: int, start_ticks: int, uid: int) -> bool:
        """True when there is certainly no such process. /proc may hide those of other users."""
        found = places.start_ticks(self.proc, pid)
        if found is not None:
            return found != start_ticks
        return uid == os.geteuid() or places.start_ticks(self.proc, 1) is not None

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


def proven(claim: Claim, machine: Machine) -> ProcessKey | None:
    """The process that wrote the segment, by its pid in our /proc; None where that is not proven.

    Another proof, such as a lock that the process holds on the file, is one more line here.
    """
    return _by_pid(claim, machine) or _by_inner_pid(claim, machine)


class Standing(NamedTuple):
    """What the kernel says of the process that a segment names."""

    process: ProcessKey | None
    """It, as our /proc numbers it; None where the kernel has not confirmed that it wrote this."""
    is_gone: bool
    """It has certainly ended."""


def standing(claim: Claim, machine: Machine, before: Standing) -> Standing:
    """What the kernel says now. A process that has ended stays the one that it was."""
    found = proven(claim, machine)
    if found is not None:
        return Standing(found, False)
    known = before.process
    if known is not None and machine.lacks(known.pid, known.start_ticks, claim.owner):
        return Standing(known, True)
    return Standing(None, _has_ended(claim, machine))


def _has_ended(claim: Claim, machine: Machine) -> bool:
    h = claim.header
    return _is_our_namespace(h, machine) and machine.lacks(h.pid, h.start_ticks, claim.owner)


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
        own = places.pid_namespace(self._proc)
        names = places.names(self._proc, ELSEWHERE_MOST)
        self.is_complete = len(names) < ELSEWHERE_MOST
        for name in names:
            if not name.isdigit():
                continue
            if time.thread_time() > until_s:
                self.is_complete = False
                return
            namespace = places.pid_namespace(self._proc, name)
            ticks = places.start_ticks(self._proc, int(name)) if namespace not in (0, own) else None
            if ticks is not None:
                self._pids.setdefault((namespace, ticks), []).append(int(name))


def _inner_pid(proc: str, pid: int) -> int | None:
    """Its number in its own pid namespace, the last of NSpid."""
    try:
        with open(f"{proc}/{pid}/status", "rb") as file:
            line = next(line for line in file if line.startswith(b"NSpid:"))
        return int(line.split()[-1])
    except (OSError, StopIteration, ValueError):
        return None
