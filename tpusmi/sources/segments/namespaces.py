"""Segments of jobs that have mounts of their own, as in a container or a batch job: their /dev/shm
is not ours, and is reached through one of their processes.

The user who runs those processes can put anything there. A file belongs to its owner, as the kernel
reports it, and costs the share of that user.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tpusmi.sources import mounts
from tpusmi.sources.mounts import Mounts, Pointer
from tpusmi.sources.segments.quota import Quota, spent
from tpusmi.wire import places
from tpusmi.wire.identity import real_uid
from tpusmi.wire.places import SegmentDirectory

ASKED_CPU_S, CPU_S, WALLED_CPU_S = 0.05, 0.2, 0.015
"""Processor time for one scan: to ask which processes have other mounts, to look into those, and to
look from outside at those that may not be entered.
"""
OF_USER_MOST, OF_TRUSTED_MOST = 16, 128
"""Most namespaces of one user that are entered."""
NAMES_MOST = 4096
"""Most names that are listed in a /dev/shm there."""
ENVIRONS_MOST = 64
"""Most processes of one namespace whose variables are read."""
WALLED_MOST = 64
"""Most processes that are named one by one."""
PATH_MOST = 1024
"""Longest path in a variable, in bytes."""


class NamespaceScan(NamedTuple):
    """What one scan of the mount namespaces has found."""

    directories: list[SegmentDirectory]
    walled: list[tuple[int, int]]
    """Pid and user of processes with a /dev/shm of their own that this user may not enter, or not
    safely.
    """
    unasked: list[int]
    """Pids that there was no time for."""
    unnamed: list[int]
    """More pids that are walled, or may be."""
    is_cut: bool = False
    """True where there are more processes than are listed."""


class _Group(NamedTuple):
    """The processes of one mount namespace, oldest first, and the user of the oldest."""

    namespace: str
    pids: list[int]
    uid: int
    is_entered: bool
    """Whether this is among the first namespaces of that user, which are entered."""


class Namespaces:
    """The mount namespaces that are not ours, between scans."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._entered: dict[str, str] = {}
        """The namespace of each process in whose mounts directories were looked for."""

    def scan(self, quota: Quota) -> NamespaceScan:
        """The directories of segments in all of them, and who may have one that is out of sight."""
        self._entered = {}
        names = places.names(self._proc, places.PROCESSES_MOST)
        by_namespace, denied, unasked = self._grouped(names)
        scan = NamespaceScan([], [], unasked, [], is_cut=len(names) == places.PROCESSES_MOST)
        if not by_namespace and not denied:
            return scan
        search = _Search(self._proc, scan)
        until_s = time.thread_time() + CPU_S
        for group in self._ordered(by_namespace, quota):
            uid = group.uid
            if not group.is_entered or quota.lateness(uid) or time.thread_time() > until_s:
                search.wall(group.pids, uid)
                continue
            most_s = min(until_s, time.thread_time() + quota.left(uid).cpu_s)
            with spent(quota, uid):
                search.enter(group, None if quota.is_trusted(uid) else uid, most_s)
            self._entered[f"{self._proc}/{group.pids[0]}"] = group.namespace
        search.from_outside(denied)
        return scan

    def have_changed(self) -> bool:
        """True when a process whose mounts were entered is gone, or has entered another."""
        return any(mounts.namespace(p, "mnt") != name for p, name in self._entered.items())

    def _grouped(self, names: list[str]) -> tuple[dict[str, list[int]], list[int], list[int]]:
        """The processes of each other namespace, oldest first; processes whose namespace this user
        may not see; and the oldest of all, for which there was no time.
        """
        own = mounts.namespace(f"{self._proc}/self", "mnt")
        groups: dict[str, list[int]] = {}
        denied: list[int] = []
        pids = [] if own is None else sorted(int(name) for name in names if name.isdigit())
        until_s = time.thread_time() + ASKED_CPU_S
        while pids and time.thread_time() < until_s:
            pid = pids.pop()
            namespace = mounts.namespace(f"{self._proc}/{pid}", "mnt")
            if namespace is None:
                denied.append(pid)
            elif namespace != own:
                groups.setdefault(namespace, []).append(pid)
        return {name: inside[::-1] for name, inside in groups.items()}, denied, pids

    def _ordered(self, by_namespace: dict[str, list[int]], quota: Quota) -> Iterator[_Group]:
        """The namespaces, root's and this user's first."""
        by_user: dict[int, list[tuple[str, list[int]]]] = {}
        for name, pids in by_namespace.items():
            uid = _user(self._proc, pids[0])
            if uid is not None:
                by_user.setdefault(uid, []).append((name, pids))
        for uid in sorted(by_user, key=lambda uid: not quota.is_trusted(uid)):
            most = OF_TRUSTED_MOST if quota.is_trusted(uid) else OF_USER_MOST
            for rank, (name, pids) in enumerate(by_user[uid]):
                yield _Group(name, pids, uid, is_entered=rank < most)


class _Entry(NamedTuple):
    """One namespace that is being entered, through one of its processes."""

    process: str
    """The process, /proc/PID."""
    root: Pointer
    uid: int
    payer: int | None
    until_s: float
    """Processor time of this thread at which no more is looked at."""


class _Search:
    """One scan of all namespaces: a directory in one of them is not found again in another."""

    def __init__(self, proc: str, scan: NamespaceScan) -> None:
        """What is found is added to the lists of `scan`."""
        self._proc = proc
        self._scan = scan
        self._identities: set[tuple[int, int, int]] = set()
        """Device and inode of the directories, with the user whose files are read there."""
        self._ours = mounts.table_of(f"{proc}/self")

    def enter(self, group: _Group, payer: int | None, until_s: float) -> None:
        """Add the directories in the namespace of those processes."""
        process, uid = f"{self._proc}/{group.pids[0]}", group.uid
        theirs = mounts.table_of(process)
        named, runtimes = _variables(f"{self._proc}/{pid}" for pid in group.pids[:ENVIRONS_MOST])
        usual = (
            places.SHARED_MEMORY,
            *(f"{places.RUNTIME}/{n}" for n in {0, uid}),
            *runtimes,
            places.TEMPORARY,
        )
        other = [parent for parent in dict.fromkeys(usual) if not self._is_ours(parent, theirs)]
        try:
            with mounts.root_of(process, theirs) as root:
                entry = _Entry(process, root, uid=uid, payer=payer, until_s=until_s)
                walled = [path for path in other if not self._enter_place(entry, path)]
                walled += [path for path in named if not self._enter_named(entry, path)]
        except (FileNotFoundError, ProcessLookupError):
            return
        except OSError:
            walled = [*other, *named]
        if places.SHARED_MEMORY in walled or set(named) & set(walled):
            self.wall(group.pids, uid)
        else:
            self._scan.unnamed.extend(group.pids[ENVIRONS_MOST:])

    def wall(self, pids: list[int], uid: int) -> None:
        """Note that these processes of one namespace cannot be looked into."""
        room = max(0, WALLED_MOST - len(self._scan.walled))
        self._scan.walled.extend((pid, uid) for pid in pids[:room])
        self._scan.unnamed.extend(pids[room:])

    def from_outside(self, denied: list[int]) -> None:
        """Note which of these processes, which may not be entered, have another /dev/shm."""
        until_s = time.thread_time() + WALLED_CPU_S
        judged: dict[bytes, bool] = {}
        for rank, pid in enumerate(denied):
            if time.thread_time() > until_s:
                self._scan.unnamed.extend(denied[rank:])
                return
            try:
                listed = mounts.mounts(f"{self._proc}/{pid}")
            except OSError:  # it has ended; or its first thread has, and the others live
                self._scan.unnamed.append(pid)
                continue
            if listed not in judged:
                judged[listed] = not self._is_ours(
                    places.SHARED_MEMORY, mounts.table(listed), otherwise=True
                )
            uid = _user(self._proc, pid) if judged[listed] else None
            if uid is not None:
                self.wall([pid], uid)

    def _is_ours(self, path: str, theirs: Mounts, otherwise: bool = False) -> bool:
        """True where that path is the same directory there as here."""
        here, there = (mounts.directory_of(path.encode(), m) for m in (self._ours, theirs))
        return here == there if here is not None and there is not None else otherwise

    def _enter_place(self, entry: _Entry, parent: str) -> bool:
        """Add the directories of segments in one of the usual places: those of the users whose
        processes are there first, whatever else is there. False where that may not be done.
        """
        own = map(places.directory_name, (0, entry.uid))
        counts: dict[int, int] = {}
        try:
            _check_time(entry)
            with mounts.pointed_at(entry.process, parent, entry.root) as place:
                listed = mounts.names(place, NAMES_MOST)
                ours = sorted(n for n in listed if places.user_in_name(n) is not None)
                for name in dict.fromkeys((*own, *ours[: places.OF_USER_MOST * 16])):
                    _check_time(entry)
                    try:
                        with mounts.pointed_in(entry.process, place, name) as point:
                            status = os.fstat(point.fd)
                    except OSError:
                        continue
                    counts[status.st_uid] = counts.get(status.st_uid, 0) + 1
                    if counts[status.st_uid] <= places.OF_USER_MOST:
                        self._add(entry, f"{parent}/{name}", status.st_uid, status)
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
            return True
        except OSError:
            return False
        return True

    def _enter_named(self, entry: _Entry, path: str) -> bool:
        """Add a TPUSMI_DIR, in which only the files of the entry's user count. False where that may
        not be done, as behind a link, which an agent follows.
        """
        try:
            _check_time(entry)
            with mounts.pointed_at(entry.process, path, entry.root) as point:
                status = os.fstat(point.fd)
        except (FileNotFoundError, ProcessLookupError):
            return True
        except OSError:
            return False
        self._add(entry, path, entry.uid, status)
        return stat.S_ISDIR(status.st_mode)

    def _add(self, entry: _Entry, path: str, uid: int, status: os.stat_result) -> None:
        identity = (status.st_dev, status.st_ino, uid)
        if stat.S_ISDIR(status.st_mode) and identity not in self._identities:
            self._identities.add(identity)
            directory = SegmentDirectory(
                path=f"{entry.process}/root{path}",
                uid=uid,
                within=entry.process,
                inner=path,
                payer=entry.payer,
            )
            self._scan.directories.append(directory)


def _check_time(entry: _Entry) -> None:
    """Raises NotFollowedError when the time for that entry is over."""
    if time.thread_time() > entry.until_s:
        raise mounts.NotFollowedError(0, "takes too long")


def _user(proc: str, pid: int) -> int | None:
    """Who runs a process; None for kdevtmpfs, a kernel thread with mounts of its own and no job."""
    from tpusmi.sources.holders import procfs

    leader = procfs.read_stat(f"{proc}/{pid}")
    return None if leader is not None and leader.of_kernel else real_uid(proc, pid)


def _variables(processes: Iterable[str]) -> tuple[list[str], list[str]]:
    """TPUSMI_DIR and XDG_RUNTIME_DIR of those processes: absolute paths."""
    from tpusmi.sources.holders import procfs

    named: dict[str, None] = {}
    runtimes: dict[str, None] = {}
    for process in processes:
        leader = procfs.read_stat(process)
        if leader is None or leader.state == "D":
            continue  # reading from a process that sleeps uninterruptibly may sleep as long
        try:
            with open(f"{process}/environ", "rb") as file:
                text = b"\0" + file.read(procfs.READ_MOST)
        except OSError:
            continue
        for name, paths in ((b"TPUSMI_DIR", named), (b"XDG_RUNTIME_DIR", runtimes)):
            path = text.partition(b"\0" + name + b"=")[2].partition(b"\0")[0]
            if path.startswith(b"/") and len(path) <= PATH_MOST:
                paths[os.path.normpath(os.fsdecode(path))] = None
    return list(named), list(runtimes)
