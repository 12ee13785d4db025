"""Looks through /proc: which processes have a device node or a lock file open.

A full inspection of a process reads every descriptor. It is done once for each process; later
passes check cheaply whether anything changed, and inspect again only where it did:

* a new process, or one with a reused pid, is inspected at once;
* a holder is checked in every pass, any other process every CHECK_AGAIN_S: has the number of its
  descriptors changed, and are those on a node still on one?
* every process is inspected again every INSPECT_AGAIN_S, since a descriptor can be closed and
  another opened under the same number;
* `look(full=True)` inspects all of them, for when the kernel reports that a node was opened.
"""

import os
from collections.abc import Iterable
from typing import NamedTuple

from tpusmi.sources.holders.nodes import Nodes
from tpusmi.sources.holders.open_files import Descriptors, OpenFiles, OpenLockFile
from tpusmi.sources.holders.procfs import read_stat, threads

CHECK_AGAIN_S, INSPECT_AGAIN_S = 1.5, 60.0
CHECK_SLOTS, INSPECT_SLOTS = 3, 113
"""The first turns of new processes are spread over as many passes, for an even load: a host may
start with thousands. A pass every 0.5 s makes 3 of them in CHECK_AGAIN_S, and 120 in
INSPECT_AGAIN_S; 113 is a prime, so that the two turns of a pid fall together as rarely as possible.
"""
LINKS_AT_ONCE = 64
"""Descriptors of one process that are checked in a pass, in turn: few machines have more nodes."""
INIT = 1
INITIAL_NAMESPACE = 0xEFFFFFFC
"""Inode of the pid namespace that is the whole machine's."""


class Inspection(NamedTuple):
    """One process as its last inspection found it."""

    inode: int
    """Inode of its /proc directory: a later process with the same pid has another one."""
    count: int  # type: ignore[assignment]  # hides tuple.count
    """Number of its descriptors; -1 where they may not be counted."""
    check_at_s: float
    inspect_at_s: float
    nodes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """One descriptor, `/proc/PID/fd/N`, for each of its nodes."""
    lock_files: tuple[OpenLockFile, ...] = ()
    hidden: bool = False
    """True when it may hold a node, and not all of it could be inspected."""
    checked: int = 0
    """How many of its links have been checked in this turn."""


class ScanResult(NamedTuple):
    """What the passes so far have found."""

    holders: dict[int, tuple[str, ...]]
    """Nodes by pid, in the order of the host's nodes."""
    lock_files: tuple[OpenLockFile, ...]
    hidden: int
    """Number of processes that could not be inspected."""
    hides_others: bool = False
    """This /proc does not even list the processes of other users."""


class Scan:
    """Remembers every process between passes, so that the next pass is quick."""

    def __init__(self, proc: str, nodes: Nodes, lock_files: Iterable[str]) -> None:
        self._proc = proc
        self._nodes = nodes
        self._inspected: dict[int, Inspection] = {}
        self._notable: set[int] = set()
        """The few pids with a node, a lock file, or something that could not be inspected."""
        self._descriptors = Descriptors(proc, nodes, lock_files)
        self._own_pid = os.getpid()
        self._hides_others = False
        # Some machines let nothing inspect their init, which trains no model.
        self._init = INIT if sees_every_process() else None
        self._has_counts = _directories_have_counts(proc)

    def look(self, now_s: float, full: bool = False) -> None:
        """One pass; with `full` every process is inspected. Raises OSError where /proc cannot be
        listed.
        """
        self._descriptors.begin()
        if full or self._descriptors.is_full:
            self._inspected = {}
            self._descriptors.forget()
        with os.scandir(self._proc) as entries:
            inodes = {int(e.name): e.inode() for e in entries if e.name.isdigit()}
        self._forget_ended(inodes.keys())
        self._hides_others = INIT not in inodes
        get = self._inspected.get
        for pid, inode in inodes.items():
            last = get(pid)
            if last is None or last.inode != inode:
                if last is not None:
                    self._descriptors.forget_ended((f"{self._proc}/{pid}",))
                self._keep(pid, self._inspect(pid, inode, now_s, is_new=True))
            elif now_s >= last.check_at_s:
                self._keep(pid, self._check(pid, last, now_s))

    def held_by(self, pid: int) -> tuple[str, ...] | None:
        """The nodes that a process holds at this moment; None when that cannot be seen."""
        self._descriptors.begin()
        inspection = self._inspect(pid, 0, 0.0)
        return None if inspection.hidden else inspection.nodes

    def inodes(self) -> dict[int, int]:
        """The processes that hold nothing and can be inspected: the inode of each, by pid."""
        return {pid: i.inode for pid, i in self._inspected.items() if i.count > 0 and not i.nodes}

    def result(self) -> ScanResult:
        """What the passes so far have found."""
        notable = [(pid, self._inspected[pid]) for pid in sorted(self._notable)]
        return ScanResult(
            holders={pid: i.nodes for pid, i in notable if i.nodes},
            lock_files=tuple(file for _, i in notable for file in i.lock_files),
            hidden=sum(i.hidden for _, i in notable),
            hides_others=self._hides_others,
        )

    def _forget_ended(self, pids: Iterable[int]) -> None:
        ended = self._inspected.keys() - pids
        for pid in ended:
            del self._inspected[pid]
        if ended:
            self._descriptors.forget_ended({f"{self._proc}/{pid}" for pid in ended})
        self._notable.intersection_update(pids)

    def _keep(self, pid: int, inspection: Inspection) -> None:
        self._inspected[pid] = inspection
        if inspection.nodes or inspection.lock_files or inspection.hidden:
            self._notable.add(pid)
        else:
            self._notable.discard(pid)

    def _check(self, pid: int, last: Inspection, now_s: float) -> Inspection:
        """The last inspection, if it still holds; otherwise a new one."""
        same = now_s < last.inspect_at_s and self._count(f"{self._proc}/{pid}/fd") == last.count
        links = last.links[last.checked : last.checked + LINKS_AT_ONCE]
        if same and all(self._descriptors.is_node(link) for link in links):
            checked = last.checked + len(links)
            return last._replace(
                check_at_s=now_s if last.nodes else now_s + CHECK_AGAIN_S,
                checked=checked if checked < len(last.links) else 0,
            )
        return self._inspect(pid, last.inode, now_s)

    def _inspect(self, pid: int, inode: int, now_s: float, is_new: bool = False) -> Inspection:
        """What a process has open. A new one has its next turns early, spread by its pid."""
        process = f"{self._proc}/{pid}"
        files = OpenFiles(pid)
        hidden = self._descriptors.look_through(process, files)
        if hidden or not files.count:
            hidden = self._look_closer(process, hidden, files)
        count = self._count(f"{process}/fd") if hidden else files.count
        if pid == self._own_pid:
            count = -1  # looking opens a descriptor of our own, which would count as a change
        check_at_s = now_s + CHECK_AGAIN_S * (_share(pid, CHECK_SLOTS) if is_new else 1)
        inspect_at_s = now_s + INSPECT_AGAIN_S * (_share(pid, INSPECT_SLOTS) if is_new else 1)
        if not (hidden or files.nodes or files.lock_files):
            return Inspection(inode, count, check_at_s, inspect_at_s)  # nearly all processes
        nodes = tuple(name for name in self._nodes.names if name in files.nodes)
        return Inspection(
            inode,
            count,
            now_s if nodes else check_at_s,
            inspect_at_s,
            nodes=nodes,
            links=tuple(files.nodes.values()),
            lock_files=tuple(files.lock_files),
            hidden=hidden and not nodes,
        )

    def _look_closer(self, process: str, hidden: bool, files: OpenFiles) -> bool:
        """Where no descriptors were seen: add those of threads whose leader has ended. True if the
        process may have a node open all the same.
        """
        if not hidden and not _has_threads(process):
            return False  # a kernel thread, mostly: cheaper to see than its state
        leader = read_stat(process)
        if leader is None:
            return hidden and os.path.isdir(process)  # it is there, and nothing of it can be read
        if leader.of_kernel or leader.is_gone:
            return False
        if not leader.has_ended:
            return hidden and files.pid != self._init
        denied = [self._descriptors.look_through(thread, files) for thread in threads(process)]
        return any(denied)

    def _count(self, directory: str) -> int:
        """How many descriptors are in it; -1 where that may not be known."""
        try:
            return os.stat(directory).st_size if self._has_counts else len(os.listdir(directory))
        except OSError:
            return -1


def sees_every_process() -> bool | None:
    """True where every process of the machine can be seen; None where that is unknown."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino == INITIAL_NAMESPACE
    except OSError:
        return None


def _share(pid: int, slots: int) -> float:
    """Which part of a period a new process waits for its turn, above 0 and up to 1."""
    return (pid % slots + 1) / slots


def _has_threads(process: str) -> bool:
    """True when it has threads beside its leader, or does not say."""
    try:
        return os.stat(f"{process}/task").st_nlink != 3  # two, and one for each thread
    except OSError:
        return True


def _directories_have_counts(proc: str) -> bool:
    """True since Linux 6.2: the size of a directory of descriptors is their number."""
    return os.path.isdir(f"{proc}/self/fd") and os.path.getsize(f"{proc}/self/fd") > 0
