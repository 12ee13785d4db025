"""Finds the process that runs in place of the chosen one after its end: the same command again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tpusmi.model import Process, ProcessKey, Snapshot


class Succession(NamedTuple):
    """A process that has ended, and the one that now runs the same command."""

    ended: ProcessKey
    new: ProcessKey


class Follower:
    """Remembers which process the user has chosen, also once it has ended."""

    def __init__(self) -> None:
        self._watched: Process | None = None
        """The chosen process as it was when it was last seen alive."""
        self._before: frozenset[ProcessKey] = frozenset()
        """All processes at that moment: none of them can be its successor."""

    def choose(self, process: Process | None) -> None:
        """The user has moved to that process; one that has ended stays chosen."""
        self._watched = None if process is None or process.is_dead else process

    def succession(self, s: Snapshot, chosen: Process | None) -> Succession | None:
        """The chosen process and its successor, which is chosen from then on; None without one, and
        while the chosen process lives.
        """
        living = {p.key: p for p in s.processes if p.is_living and p.is_verified}
        was = self._watched
        if was is None or was.key in living:
            is_other = chosen is not None and chosen.key in living
            now = chosen if is_other or was is None else living[was.key]
            if now is not None and now.key in living:
                self._watch(now, s)
            return None
        new = _successor(was, living, self._before)
        if new is None:
            return None
        self._watch(new, s)
        return Succession(was.key, new.key)

    def _watch(self, process: Process, s: Snapshot) -> None:
        self._watched, self._before = process, frozenset(p.key for p in s.processes)


def _successor(
    was: Process, living: Mapping[ProcessKey, Process], before: frozenset[ProcessKey]
) -> Process | None:
    """The new process; of a job with many processes the one with the same part in it."""
    again = [p for p in living.values() if p.key not in before and _is_like(p, was)]
    return min(again, key=lambda p: (_differences(p, was), p.key.start_ticks), default=None)


def _is_like(p: Process, was: Process) -> bool:
    """The same command of the same user, in the same directory where both are known."""
    if not p.command or (p.command, p.uid, p.user) != (was.command, was.uid, was.user):
        return False
    directories = {x.life.cwd for x in (p, was) if x.life is not None and x.life.cwd is not None}
    return len(directories) < 2


def _differences(p: Process, was: Process) -> int:
    index = "process_index"
    return sum((
        p.environment != was.environment,
        p.holds != was.holds,
        p.facts.get(index) != was.facts.get(index),
    ))  # fmt: skip
