"""One pass over /proc: who has a node open, and who a lock file.

A pass that follows another looks only at what can have changed: new processes, those whose number
of descriptors is another one, and everybody when the kernel tells that a node was opened.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
from collections.abc import Iterable
from typing import NamedTuple

from tpusmi.sources.holders.allowance import Allowance
from tpusmi.sources.holders.nodes import Nodes, is_named_like_a_node, is_node, node_of
from tpusmi.sources.holders.procfs import flags_and_mount, mount_types, read_stat, threads

LOOK_AGAIN_S = 1.5
"""A process that held nothing is looked at again after that: has it opened something since?"""
JUDGE_AGAIN_S = 60.0
"""And judged anew after that in any case: a descriptor may be another one under the same number."""
LOOKS, JUDGEMENTS = 3, 113
"""In so many parts are both spread, as there are passes in them."""
INIT = 1
INITIAL_NAMESPACE = 0xEFFFFFFC
"""Inode of the pid namespace that is the whole machine's."""
LOCAL_TYPES = frozenset(
    (
        *("devtmpfs", "tmpfs", "devpts", "ramfs", "rootfs", "overlay"),
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs"),
    )
)
"""File systems that answer at once: a device node is on one of them."""
HARMLESS_MOST = 10_000
DELETED = " (deleted)"


class Opened(NamedTuple):
    """A lock file that a process has open."""

    pid: int
    link: str
    path: str
    """With ` (deleted)` behind it, if it is."""


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


class _Open:
    """What a process has open, as far as it matters."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.count = 0
        self.nodes: dict[str, str] = {}
        """The descriptor of each node."""
        self.files: list[Opened] = []


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
        self._lock_files = frozenset(lock_files)
        self._seen: dict[int, Seen] = {}
        self._notable: set[int] = set()
        """Those with a node, a lock file, or what could not be looked at: the few."""
        self._harmless: set[str] = set()
        """Texts of links that are known to be no node's."""
        self._own_pid = os.getpid()
        self._hides_others = False
        self._local: dict[tuple[str, str], bool] = {}
        """Of each process and mount, whether a look at its files is answered at once."""
        self._mounts: tuple[str, dict[str, str]] = ("", {})
        """Of the process that is looked at: the file system of each mount."""
        self._allowance = Allowance()
        self._init = INIT if sees_everybody() else None
        """The machine's init, which nobody may inspect in some, and which trains no model."""
        self._has_counts = _directories_have_counts(proc)

    def look(self, now_s: float, everybody: bool = False) -> None:
        """Everybody as of now, judged anew if asked for. Raises OSError where /proc cannot be
        listed.
        """
        self._allowance.renew()
        if everybody or len(self._harmless) > HARMLESS_MOST:
            self._seen, self._harmless, self._local = {}, set(), {}
        with os.scandir(self._proc) as entries:
            pids = {int(e.name): e.inode() for e in entries if e.name.isdigit()}
        gone = self._seen.keys() - pids.keys()
        for pid in gone:
            del self._seen[pid]
        if gone and self._local:
            ended = {f"{self._proc}/{pid}" for pid in gone}
            self._local = {key: v for key, v in self._local.items() if key[0] not in ended}
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
        self._allowance.renew()
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
        found = _Open(pid)
        hidden = self._look_through(f"{process}/fd/", found)
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

    def _look_closer(self, process: str, hidden: bool, found: _Open) -> bool:
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
        denied = [self._look_through(f"{thread}/fd/", found) for thread in threads(process)]
        return any(denied)

    def _look_through(self, directory: str, found: _Open) -> bool:
        """Sort out the links of a directory; True where that is not permitted, or too much."""
        readlink, harmless = os.readlink, self._harmless
        try:
            names = os.listdir(directory)
            found.count = len(names)
            if self._allowance.refuses(directory.removesuffix("/fd/"), len(names)):
                return True
            for name in names:
                link = directory + name
                try:
                    # The text first: reading it is cheap, and most descriptors are no device's.
                    text = readlink(link)
                    if text not in harmless and ("/dev/" in text or "libtpu" in text):
                        self._sort_out(link, text, found)
                except PermissionError:
                    return True  # root without CAP_SYS_PTRACE sees the names and not the targets
                except OSError:
                    continue
        except PermissionError:
            return True
        except OSError:
            pass
        return False

    def _sort_out(self, link: str, text: str, found: _Open) -> None:
        """Keep what is a node or a lock file. Raises OSError."""
        path = text.removesuffix(DELETED)
        if path in self._lock_files:
            found.files.append(Opened(found.pid, link, text))
        elif not self._is_to_be_looked_at(link):
            return
        elif (node := node_of(link, self._nodes)) is not None:
            found.nodes[node] = link
        elif not is_named_like_a_node(path):  # in another /dev it may be one
            self._harmless.add(text)

    def _is_to_be_looked_at(self, link: str) -> bool:
        """False for a descriptor that opens nothing (O_PATH calls no driver and keeps nobody out),
        and for a file whose look would never end: on a server that is down, or a file system of
        some user's making. Raises OSError.
        """
        process, _, descriptor = link.rpartition("/fd/")
        flags, mount = flags_and_mount(process, descriptor)
        if flags & os.O_PATH:
            return False
        key = (process, mount)
        if key not in self._local:
            if self._mounts[0] != process:
                self._mounts = (process, mount_types(process))
            self._local[key] = self._mounts[1].get(mount) in LOCAL_TYPES
        return self._local[key]

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
