"""Whose child is whose at one moment: what a process has started works for it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from tpusmi.sources.holders.procfs import Stat, read_stat

Used = Mapping[tuple[int, int], int]
"""Ticks of processor time by pid and start time."""


class Kin:
    """Every process that can be seen, and its parent."""

    def __init__(self, proc: str) -> None:
        stats = {int(name): read_stat(f"{proc}/{name}") for name in _pids(proc)}
        self.stats: dict[int, Stat] = {
            pid: stat
            for pid, stat in stats.items()
            if stat and not (stat.of_kernel or stat.is_gone)
        }
        self._children: dict[int, list[int]] = {}
        for pid, stat in self.stats.items():
            self._children.setdefault(stat.parent, []).append(pid)

    def below(self, pid: int) -> frozenset[int]:
        """The process and all that it started, as far down as they go."""
        found, waiting = {pid}, [pid]
        while waiting:
            more = [child for child in self._children.get(waiting.pop(), ()) if child not in found]
            found.update(more)
            waiting += more
        return frozenset(found)

    def used(self, pids: Iterable[int]) -> Used:
        """What those have used of the processor since their start."""
        known = ((pid, self.stats[pid]) for pid in pids if pid in self.stats)
        return {(pid, stat.start_ticks): stat.cpu_ticks for pid, stat in known}


def used_since(before: Used, now: Used) -> int:
    """Ticks that were used between two looks; of a process that is new, all of its own."""
    return sum(max(0, ticks - before.get(key, 0)) for key, ticks in now.items())


def _pids(proc: str) -> list[str]:
    try:
        return [name for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return []
