"""One pass over /proc: who has a node open, and who a lock file.

A pass that follows another looks only at what can have changed: new processes, those whose number
of descriptors is another one, and everybody when the kernel tells that a node was opened.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
from collections.abc import Iterable
from typing import NamedTuple

from tpusmi.sources.holders.descriptors import DELETED, Descriptors, Open, Opened
from tpusmi.sources.holders.nodes import Nodes, is_node
from tpusmi.sources.holders.procfs import read_stat, threads

__all__ = ["DELETED", "Found", "Opened", "Scan", "Seen", "sees_everybody"]

LOOK_AGAIN_S = 1.5
"""A process that held nothing is looked at again after that: has it opened something since?"""
JUDGE_AGAIN_S = 60.0
"""And judged anew after that in any case: a descriptor may be another one under the same number."""
LOOKS, JUDGEMENTS = 3, 113
"""In so many parts are both spread, as there are passes in them."""
INIT = 1
INITIAL_NAMESPACE = 0xEFFFFFFC
"""Inode of the pid namespace that is the whole machine's."""


class Seen(NamedTuple):
    """One process as it was when it was last judged."""

    inode: int
    """Of its directory: another process of the same number has another one."""
    count: int  # type: ignore[assignment]  # hides tuple.count
    """Of its descriptors; -1 where they may not be counted."""
    look_at_s: float
    judge_at_s: float
    held: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Descriptors that are open on its nodes, one each."""
    files: tuple[Opened, ...] = ()
    hidden: bool = False


class Found(NamedTuple):
    """What one pass saw."""

    holders: dict[int, tuple[str, ...]]
    """Nodes by pid, in the order of the host's nodes."""
    files: tuple[Opened, ...]
    hidden: int
    """Processes that could not be inspected."""
    hides_others: bool = False
    """This /proc does not even list the processes of other users."""


class Scan:
    """Remembers what it saw, so that the next pass is quick."""

    def __init__(self, proc: str, nodes: Nodes, lock_files: Iterable[str]) -> None:
        self._proc = proc
        self._nodes = nodes
        self._seen: dict[int, Seen] = {}
        self._notable: set[int] = set()
        """Those with a node, a lock file, or what could not be looked at: the few."""
        self._descriptors = Descriptors(nodes, lock_files)
        self._own_pid = os.getpid()
        self._hides_others = False
        self._init = INIT if sees_everybody() else None
        """The machine's init, which nobody may inspect in some, and which trains no model."""
        self._has_counts = _directories_have_counts(proc)

    def look(self, now_s: float, everybody: bool = False) -> None:
        """Everybody as of now, judged anew if asked for. Raises OSError where /proc cannot be
        listed.
        """
        self._descriptors.begin()
        if everybody or self._descriptors.is_full:
            self._seen = {}
            self._descriptors.forget()
        with os.scandir(self._proc) as entries:
            pids = {int(e.name): e.inode() for e in entries if e.name.isdigit()}
        gone = self._seen.keys() - pids.keys()
        for pid in gone:
            del self._seen[pid]
        if gone:
            self._descriptors.forget_ended({f"{self._proc}/{pid}" for pid in gone})
        self._hides_others = INIT not in pids
        get = self._seen.get
        for pid, inode in pids.items():
            seen = get(pid)
            if seen is None or seen.inode != inode:
                self._keep(pid, self._judged(pid, inode, now_s, is_new=True))
            elif now_s >= seen.look_at_s:
                self._keep(pid, self._again(pid, seen, now_s))
        self._notable &= pids.keys()

    def held_by(self, pid: int) -> tuple[str, ...] | None:
        """The nodes that a process holds at this moment; None when that may not be seen."""
        self._descriptors.begin()
        seen = self._judged(pid, 0, 0.0)
        return None if seen.hidden else seen.held

    def inodes(self) -> dict[int, int]:
        """Of those that hold nothing and may be asked: what tells a process from a later one."""
        return {pid: s.inode for pid, s in self._seen.items() if s.count > 0 and not s.held}

    def found(self) -> Found:
        """What the looks so far have found."""
        seen = self._seen
        notable = [(pid, seen[pid]) for pid in sorted(self._notable)]
        return Found(
            {pid: s.held for pid, s in notable if s.held},
            tuple(file for _, s in notable for file in s.files),
            sum(s.hidden for _, s in notable),
            self._hides_others,
        )

    def _keep(self, pid: int, seen: Seen) -> None:
        self._seen[pid] = seen
        if seen.held or seen.files or seen.hidden:
            self._notable.add(pid)
        else:
            self._notable.discard(pid)

    def _again(self, pid: int, seen: Seen, now_s: float) -> Seen:
        """The process as it is now, judged anew where there is reason to."""
        same = now_s < seen.judge_at_s and self._count(f"{self._proc}/{pid}/fd") == seen.count
        if same and all(is_node(link, self._nodes) for link in seen.links):
            return seen._replace(look_at_s=now_s if seen.held else now_s + LOOK_AGAIN_S)
        return self._judged(pid, seen.inode, now_s)

    def _judged(self, pid: int, inode: int, now_s: float, is_new: bool = False) -> Seen:
        """What a process has open. The next turn of a new one comes sooner, not with all others."""
        process = f"{self._proc}/{pid}"
        found = Open(pid)
        hidden = self._descriptors.look_through(process, found)
        if hidden or not found.count:
            hidden = self._look_closer(process, hidden, found)
        count = self._count(f"{process}/fd") if hidden else found.count
        if pid == self._own_pid:
            count = -1  # looking opens one more, which would pass for another one later
        look_at_s = now_s + LOOK_AGAIN_S * (_share(pid, LOOKS) if is_new else 1)
        judge_at_s = now_s + JUDGE_AGAIN_S * (_share(pid, JUDGEMENTS) if is_new else 1)
        if not (hidden or found.nodes or found.files):
            return Seen(inode, count, look_at_s, judge_at_s)  # nearly everybody
        held = tuple(name for name in self._nodes.names if name in found.nodes)
        return Seen(
            inode,
            count,
            now_s if held else look_at_s,
            judge_at_s,
            held,
            tuple(found.nodes.values()),
            tuple(found.files),
            hidden and not held,
        )

    def _look_closer(self, process: str, hidden: bool, found: Open) -> bool:
        """Of a process whose leader has ended, what the threads that it left behind have open; True
        where that may not be seen.
        """
        if not hidden and not _has_threads(process):
            return False  # a kernel thread, mostly: cheaper to see than its state
        leader = read_stat(process)
        if leader is None:
            return hidden and os.path.isdir(process)  # there, and nothing of it may be read
        if leader.of_kernel or leader.is_gone:
            return False
        if not leader.has_ended:
            return hidden and found.pid != self._init
        denied = [self._descriptors.look_through(thread, found) for thread in threads(process)]
        return any(denied)

    def _count(self, directory: str) -> int:
        """How many descriptors are in it; -1 where that may not be known."""
        try:
            return os.stat(directory).st_size if self._has_counts else len(os.listdir(directory))
        except OSError:
            return -1


def sees_everybody() -> bool | None:
    """True where every process of the machine can be seen; None where that is not known."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino == INITIAL_NAMESPACE
    except OSError:
        return None


def _share(pid: int, of: int) -> float:
    """A different share of a period for each of so many neighbours: their turns spread over it."""
    return (pid % of + 1) / of


def _has_threads(process: str) -> bool:
    """True when it has others than its leader, or does not say."""
    try:
        return os.stat(f"{process}/task").st_nlink != 3  # two, and one for each thread
    except OSError:
        return True


def _directories_have_counts(proc: str) -> bool:
    """Since Linux 6.2 the size of a directory of descriptors is their number."""
    return os.path.isdir(f"{proc}/self/fd") and os.path.getsize(f"{proc}/self/fd") > 0
