"""Finds the process that runs in place of the chosen one after its end: the same command again."""

from __future__ import annotations

from collections.abc import Mapping

from tpusmi.model import Process, ProcessKey, Snapshot


class Follower:
    """Remembers which process the user has chosen, also once it has ended."""

    def __init__(self) -> None:
        self._watched: Process | None = None
        """The chosen process as it was when it was last seen alive."""
        self._before: frozenset[ProcessKey] = frozenset()
        """All processes at that moment: none of them can be its successor."""

    @property
    def watched(self) -> Process | None:
        """The chosen process as it was when it was last seen alive; None without one."""
        return self._watched

    def choose(self, process: Process | None) -> None:
        """The user has moved to that process; one that has ended stays chosen."""
        self._watched = None if process is None or process.is_dead else process

    def successor(self, s: Snapshot, chosen: Process | None) -> Process | None:
        """The process that now runs what the chosen one ran before its end; None without one, and
        while the chosen one lives. It is chosen from then on.
        """
        living = {p.key: p for p in s.processes if p.is_living and p.is_verified}
        was = self._watched
        if was is None or was.key in living:
            is_other = chosen is not None and chosen.key in living
            now = chosen if is_other or was is None else living[was.key]
            if now is not None and now.key in living:
                self._watched, self._before = now, frozenset(p.key for p in s.processes)
            return None
        next_one = _next(was, living, self._before)
        if next_one is not None:
            self._watched, self._before = next_one, frozenset(p.key for p in s.processes)
        return next_one


def _next(
    was: Process, living: Mapping[ProcessKey, Process], before: frozenset[ProcessKey]
) -> Process | None:
    """The new process; of a job with many processes the one with the same part in it."""
    again = [p for p in living.values() if p.key not in before and _is_like(p, was)]
    return min(again, key=lambda p: (_differences(p, was), p.key.start_ticks), default=None)


def _is_like(p: Process, was: Process) -> bool:
    """The same command of the same user, in the same directory where both are known."""
    if not p.command or (p.command, p.uid, p.user) != (was.command, was.uid, was.user):
        return False
    here, there = (x.life.cwd if x.life is not None else None for x in (p, was))
    return here is None or there is None or here == there


def _differences(p: Process, was: Process) -> int:
    index = "process_index"
    return sum((
        p.environment != was.environment,
        p.holds != was.holds,
        p.facts.get(index) != was.facts.get(index),
    ))  # fmt: skip
