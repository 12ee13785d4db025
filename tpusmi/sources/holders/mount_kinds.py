"""On which file system a descriptor is, by the kernel's lists of mounts.

A file may never answer: on a server that is down, or on a file system that a user made. That one
answers holds for one pass: the number of a mount that is gone is given to another.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from tpusmi.sources.holders.allowance import Allowance
from tpusmi.sources.holders.procfs import mount_types, overlays, read_stat
from tpusmi.sources.mounts import LOCAL, OVERLAY, is_overlay_trusted, namespace

TABLES_MOST = 64
"""Namespaces whose mounts are kept in one pass."""
OTHERS_MOST, OTHERS_BYTES, OTHERS_MOUNTS = 128, 1 << 16, 10_000
"""Namespaces that are searched for a mount that no list at hand has, how much of each list is read,
and how many mounts of all of them are kept: those of root's processes first.
"""
_LOCAL = frozenset(kind.decode() for kind in (*LOCAL, b"devpts"))
"""File systems that answer at once: a device node is on one of them, or on an overlay."""
UNKNOWN_MOST = 10_000
"""Mounts of which is remembered that nothing was found."""
MOUNT_COST = 2
"""Reading one mount takes as long as looking at so many descriptors."""
_PARENTS_MOST = 4
"""How many ancestors of a process are asked about the mount of a descriptor that it inherited."""

Kind = tuple[str, str]
"""The file system of a mount, and a process that sees it."""


class MountKinds:
    """Whether the files on a mount answer at once."""

    def __init__(self, proc: str, allowance: Allowance) -> None:
        self._proc = proc
        self._allowance = allowance
        self._unknown: set[tuple[str, str]] = set()
        """Process and mount of which nothing was found, which stays so."""
        self._viewed: dict[str, str] = {}
        """By mount, a process in whose namespace it was found that is not that of its user."""
        self.begin()

    def begin(self) -> None:
        """Begin another pass."""
        self._answers: dict[tuple[str, str], bool | None] = {}
        self._tables: dict[str, dict[str, str]] = {}
        self._overlays: dict[str, dict[str, str]] = {}
        self._listed: set[str] = set()
        """Processes whose own list is in a table."""
        self._others: dict[str, Kind] | None = None
        self._is_cut = False
        """True once a list was not read, since its user has too many."""

    def forget(self) -> None:
        """Forget everything."""
        self.begin()
        self._unknown, self._viewed = set(), {}

    def forget_ended(self, processes: Collection[str]) -> None:
        """Forget processes that have ended, named as `/proc/PID`."""
        unknown = self._unknown
        self._unknown = {k for k in unknown if k[0].partition("/task/")[0] not in processes}
        self._viewed = {m: p for m, p in self._viewed.items() if p not in processes}

    def answers_at_once(self, process: str, mount: str) -> bool | None:
        """True if files that the process has open on that mount answer at once, False for those
        that may never; None where that is unknown.
        """
        key = (process, mount)
        if key in self._unknown:
            return None
        if key not in self._answers:
            kind = self._kind(process, mount)
            if kind is None and not self._is_cut:
                self._remember_unknown(key)
            self._answers[key] = None if kind is None else self._answers_of(kind, mount)
        return self._answers[key]

    def _kind(self, process: str, mount: str) -> Kind | None:
        """None where it is unknown.

        What a process inherits, such as its standard streams, may be on a mount that only an
        ancestor sees, or we. A viewer has the segments of a container open, on mounts of its own.
        """
        for one in (process, "/proc/self", self._viewed.get(mount)):
            if one is not None and (kind := self._table(one).get(mount)):
                return kind, one
        for one in (process, *self._above(process)):
            if kind := self._table(one, is_whole=True).get(mount):
                return kind, one
        other = self._elsewhere().get(mount)
        if other is not None:
            self._viewed[mount] = other[1]
        return other

    def _remember_unknown(self, key: tuple[str, str]) -> None:
        if len(self._unknown) >= UNKNOWN_MOST:
            self._unknown = set()
        self._unknown.add(key)

    def _above(self, process: str) -> Iterator[str]:
        """Its next ancestors."""
        for _ in range(_PARENTS_MOST):
            stat = read_stat(process)
            if stat is None or stat.parent <= 0:
                return
            process = f"{self._proc}/{stat.parent}"
            yield process

    def _table(self, process: str, is_whole: bool = False) -> dict[str, str]:
        """The mounts of its namespace, as far as a process there has listed them; with `is_whole`,
        also what this one sees. A process with another root, as any user may have, sees only some.
        """
        name = namespace(process, "mnt") or process
        if name not in self._tables:
            if len(self._tables) >= TABLES_MOST:
                self._tables, self._listed = {}, set()
            self._tables[name] = self._list(process)
        elif is_whole and process not in self._listed:
            self._tables[name].update(self._list(process))
        return self._tables[name]

    def _list(self, process: str) -> dict[str, str]:
        """The mounts that it sees; none where its user has used up what a pass reads for one."""
        self._listed.add(process)
        if self._allowance.refuses(process, 1):
            self._is_cut = True
            return {}
        kinds = mount_types(process)
        self._allowance.spend(process, MOUNT_COST * len(kinds))
        return kinds

    def _answers_of(self, kind: Kind, mount: str) -> bool | None:
        if kind[0] == OVERLAY.decode():
            return self._is_trusted_overlay(kind[1], mount) or None
        return kind[0] in _LOCAL

    def _is_trusted_overlay(self, process: str, mount: str) -> bool:
        """True for an overlay that answers: one of our user namespace, or one that our own mounts
        show, where only root can put it. Any user can lay one of their own over a file system that
        hangs.
        """
        if is_overlay_trusted(process):
            return True
        own = self._overlays_of("/proc/self")
        return mount in own or self._overlays_of(process).get(mount) in own.values()

    def _overlays_of(self, process: str) -> dict[str, str]:
        """The overlays that it sees; none where its user has used up what a pass reads for one."""
        if process not in self._overlays:
            cost = MOUNT_COST * len(self._table(process)) + 1
            refused = self._allowance.refuses(process, cost)
            self._overlays[process] = {} if refused else overlays(process)
        return self._overlays[process]

    def _elsewhere(self) -> dict[str, Kind]:
        """The mounts that some process sees, by their numbers: no two have the same."""
        if self._others is None:
            self._others = {}
            for process in _of_each_namespace(self._proc):
                for mount, kind in mount_types(process, OTHERS_BYTES).items():
                    self._others.setdefault(mount, (kind, process))
                if len(self._others) >= OTHERS_MOUNTS:
                    break
        return self._others


def _of_each_namespace(proc: str) -> Iterator[str]:
    """A process of each namespace of mounts, first those in which root has one."""
    by_namespace: dict[str, tuple[bool, str]] = {}
    try:
        pids = [name for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return
    for pid in pids:
        process = f"{proc}/{pid}"
        name = namespace(process, "mnt")
        if name is None or (name in by_namespace and not by_namespace[name][0]):
            continue
        try:
            by_namespace[name] = os.stat(process).st_uid != 0, process
        except OSError:
            continue
    yield from (process for _, process in sorted(by_namespace.values())[:OTHERS_MOST])
