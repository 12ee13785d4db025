"""Segments of jobs that have mounts of their own, as in a container or a batch job: their /dev/shm
is another one than ours, and is reached through a process that is in there.

Whatever is in there was put there by whoever runs those processes. What is found belongs to the
owner of the file, as the kernel tells it, and costs that user's share.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
import stat
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tpusmi.sources import mounts
from tpusmi.sources.mounts import Mounts, Pointer
from tpusmi.sources.segments.budget import Budget, spent
from tpusmi.wire import places
from tpusmi.wire.identity import real_uid
from tpusmi.wire.places import Directory

ASKED_CPU_S, CPU_S, WALLED_CPU_S = 0.05, 0.2, 0.015
"""Processor time for one look: to ask which processes have other mounts, to look into those, and to
look from outside at those that may not be looked into.
"""
OF_USER_MOST, OF_TRUSTED_MOST = 16, 128
"""Namespaces of one user that are looked into."""
NAMES_MOST = 4096
"""Names that are listed in a /dev/shm there."""
ENVIRONS_MOST = 64
"""Processes of one namespace that are asked for their variables."""
WALLED_MOST = 64
"""Processes that are named one by one."""
PATH_MOST = 1024

_FIRST = places.SHARED_MEMORY
"""Where an agent has its segment, as a rule."""
_VARIABLES = (b"TPUSMI_DIR", b"XDG_RUNTIME_DIR")


class Walled(NamedTuple):
    """A process with a /dev/shm of its own that this user may not look into, or not safely."""

    pid: int
    uid: int


class Seen(NamedTuple):
    """What one look has found."""

    directories: list[Directory]
    walled: list[Walled]
    unasked: list[int]
    """Processes that there was no time for."""
    unnamed: list[int]
    """More that are walled, or may be."""
    is_cut: bool = False
    """True where there are more processes than are listed."""


class Namespaces:
    """The mount namespaces that are not ours, between looks."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._entered: dict[str, str] = {}
        """By process in whose mounts directories were found: its namespace."""

    def look(self, budget: Budget) -> Seen:
        """The directories of segments in all of them, and who may have one that cannot be seen."""
        self._entered = {}
        names = places.names(self._proc, places.PROCESSES_MOST)
        is_cut = len(names) == places.PROCESSES_MOST
        groups, denied, unasked = self._grouped(names)
        if not groups and not denied:
            return Seen([], [], unasked, [], is_cut)
        look = _Look(self._proc)
        until_s = time.thread_time() + CPU_S
        for name, pids, uid, is_within in self._ordered(groups, budget):
            if not is_within or budget.lateness(uid) or time.thread_time() > until_s:
                look.wall(pids, uid)
                continue
            payer = None if budget.is_trusted(uid) else uid
            most_s = min(until_s, time.thread_time() + budget.left(uid).cpu_s)
            with spent(budget, uid):
                look.into(pids, uid, payer, most_s)
            self._entered[f"{self._proc}/{pids[0]}"] = name
        look.at_walls(denied)
        return Seen(look.directories, look.walled, unasked, look.unnamed, is_cut)

    def have_changed(self) -> bool:
        """True when a process through which was looked is gone, or has gone elsewhere."""
        return any(mounts.namespace(p, "mnt") != name for p, name in self._entered.items())

    def _grouped(self, names: list[str]) -> tuple[dict[str, list[int]], list[int], list[int]]:
        """The processes of each other namespace, oldest first; those that may not be asked; and
        those, the oldest of all, that there was no time for.
        """
        own = mounts.namespace(f"{self._proc}/self", "mnt")
        groups: dict[str, list[int]] = {}
        denied: list[int] = []
        if own is None:
            return groups, denied, []
        pids = sorted(int(name) for name in names if name.isdigit())
        until_s = time.thread_time() + ASKED_CPU_S
        while pids and time.thread_time() < until_s:
            pid = pids.pop()
            found = mounts.namespace(f"{self._proc}/{pid}", "mnt")
            if found is None:
                denied.append(pid)
            elif found != own:
                groups.setdefault(found, []).append(pid)
        return {name: inside[::-1] for name, inside in groups.items()}, denied, pids

    def _ordered(
        self, groups: dict[str, list[int]], budget: Budget
    ) -> Iterator[tuple[str, list[int], int, bool]]:
        """The namespaces with their processes and the user of the oldest, root's and the own first,
        and whether they are among the first of that user.
        """
        by_user: dict[int, list[tuple[str, list[int]]]] = {}
        for name, pids in groups.items():
            process = f"{self._proc}/{pids[0]}"
            uid = None if _is_of_kernel(process) else real_uid(self._proc, pids[0])
            if uid is not None:
                by_user.setdefault(uid, []).append((name, pids))
        for uid in sorted(by_user, key=lambda uid: not budget.is_trusted(uid)):
            most = OF_TRUSTED_MOST if budget.is_trusted(uid) else OF_USER_MOST
            for rank, (name, pids) in enumerate(by_user[uid]):
                yield name, pids, uid, rank < most


class _Look:
    """One look into them: what was found in one of them is not found again in another."""

    def __init__(self, proc: str) -> None:
        self.directories: list[Directory] = []
        self.walled: list[Walled] = []
        self.unnamed: list[int] = []
        """More that are walled, or that there was no time for."""
        self._proc = proc
        self._payer: int | None = None
        self._until_s = 0.0
        self._known: set[tuple[int, int, int]] = set()
        """Directories with the user whose files are looked at there."""
        self._ours = _mounts(f"{proc}/self")

    def into(self, pids: list[int], uid: int, payer: int | None, until_s: float) -> None:
        """The directories in the namespace of those processes of that user."""
        self._payer, self._until_s = payer, until_s
        process = f"{self._proc}/{pids[0]}"
        theirs = _mounts(process)
        named, runtimes = _variables(f"{self._proc}/{pid}" for pid in pids[:ENVIRONS_MOST])
        usual = (_FIRST, *(f"{places.RUNTIME}/{n}" for n in {0, uid}), *runtimes, places.TEMPORARY)
        other = [parent for parent in dict.fromkeys(usual) if not self._is_ours(parent, theirs)]
        walled = []
        try:
            with mounts.root_of(process, theirs) as root:
                walled = [p for p in other if not self._is_seen(process, root, p, uid)]
                walled += [p for p in named if not self._is_added(process, root, p, uid)]
        except (FileNotFoundError, ProcessLookupError):
            return
        except OSError:
            walled = [*other, *named]
        if _FIRST in walled or set(named) & set(walled):
            self.wall(pids, uid)
        elif len(pids) > ENVIRONS_MOST:
            self.unnamed += pids[ENVIRONS_MOST:]

    def _is_seen(self, process: str, root: Pointer, parent: str, uid: int) -> bool:
        """Look for directories in one of the usual places; False where that may not be done."""
        if time.thread_time() > self._until_s:
            return False
        try:
            with mounts.pointed_at(process, parent, root) as point:
                self._in_place(process, parent, point, uid)
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
            return True
        except OSError:
            return False
        return True

    def wall(self, pids: list[int], uid: int) -> None:
        """These processes of one namespace cannot be looked into."""
        room = max(0, WALLED_MOST - len(self.walled))
        self.walled += [Walled(pid, uid) for pid in pids[:room]]
        self.unnamed += pids[room:]

    def at_walls(self, denied: list[int]) -> None:
        """Of processes that may not be asked, those that have a /dev/shm of their own."""
        until_s = time.thread_time() + WALLED_CPU_S
        judged: dict[bytes, bool] = {}
        for rank, pid in enumerate(denied):
            if time.thread_time() > until_s:
                self.unnamed += denied[rank:]
                return
            process = f"{self._proc}/{pid}"
            try:
                listed = mounts.mounts(process)
            except OSError:  # it has ended; or its first thread has, and the others live
                self.unnamed.append(pid)
                continue
            if listed not in judged:
                judged[listed] = not self._is_ours(_FIRST, mounts.table(listed), otherwise=True)
            is_walled = judged[listed] and not _is_of_kernel(process)
            uid = real_uid(self._proc, pid) if is_walled else None
            if uid is not None:
                self.wall([pid], uid)

    def _is_ours(self, path: str, theirs: Mounts, otherwise: bool = False) -> bool:
        """True where that path is the same directory there as here."""
        here, there = (mounts.directory_of(path.encode(), m) for m in (self._ours, theirs))
        return here == there if here is not None and there is not None else otherwise

    def _in_place(self, process: str, parent: str, place: Pointer, uid: int) -> None:
        """The directories of segments in a place: of the users whose processes are there first,
        whatever else is there.
        """
        own = map(places.directory_name, (0, uid))
        listed = sorted(n for n in mounts.names(place, NAMES_MOST) if _is_named_so(n))
        counts: dict[int, int] = {}
        for name in dict.fromkeys((*own, *listed[: places.OF_USER_MOST * 16])):
            if time.thread_time() > self._until_s:
                raise mounts.RefusedError(0, "takes too long")
            try:
                with mounts.pointed_in(process, place, name) as point:
                    found = os.fstat(point.fd)
            except OSError:
                continue
            counts[found.st_uid] = counts.get(found.st_uid, 0) + 1
            if counts[found.st_uid] <= places.OF_USER_MOST:
                self._add(process, f"{parent}/{name}", found.st_uid, found)

    def _is_added(self, process: str, root: Pointer, path: str, uid: int) -> bool:
        """Add a TPUSMI_DIR; False where that may not be done, as behind a link, which an agent
        follows. Of all that is in it, that user's files are meant.
        """
        if time.thread_time() > self._until_s:
            return False
        try:
            with mounts.pointed_at(process, path, root) as point:
                found = os.fstat(point.fd)
        except (FileNotFoundError, ProcessLookupError):
            return True
        except OSError:
            return False
        self._add(process, path, uid, found)
        return stat.S_ISDIR(found.st_mode)

    def _add(self, process: str, path: str, uid: int, found: os.stat_result) -> None:
        identity = (found.st_dev, found.st_ino, uid)
        if stat.S_ISDIR(found.st_mode) and identity not in self._known:
            self._known.add(identity)
            here = Directory(f"{process}/root{path}", uid, "", process, path, self._payer)
            self.directories.append(here)


def _is_named_so(name: str) -> bool:
    return places.user_in_name(name) is not None


def _mounts(process: str) -> Mounts:
    try:
        return mounts.table(mounts.mounts(process))
    except OSError:
        return {}


def _is_of_kernel(process: str) -> bool:
    """True of kdevtmpfs, which has mounts of its own and no job."""
    from tpusmi.sources.holders import procfs

    return (now := procfs.read_stat(process)) is not None and now.of_kernel


def _variables(processes: Iterable[str]) -> tuple[list[str], list[str]]:
    """Where processes say that their segments and their runtime files are: absolute paths."""
    found: tuple[dict[str, None], dict[str, None]] = ({}, {})
    for process in processes:
        text = b"\0" + _environment(process)
        for name, paths in zip(_VARIABLES, found, strict=True):
            path = text.partition(b"\0" + name + b"=")[2].partition(b"\0")[0]
            if path.startswith(b"/") and len(path) <= PATH_MOST:
                paths[os.path.normpath(os.fsdecode(path))] = None
    return list(found[0]), list(found[1])


def _environment(process: str) -> bytes:
    """Empty of a process that sleeps uninterruptibly: who asks then may sleep with it."""
    from tpusmi.sources.holders import procfs

    now = procfs.read_stat(process)
    if now is None or now.state == "D":
        return b""
    try:
        with open(f"{process}/environ", "rb") as file:
            return file.read(procfs.READ_MOST)
    except OSError:
        return b""
