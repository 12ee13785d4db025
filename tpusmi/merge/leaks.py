"""Finds memory that only grows: of lines of code, of jobs, and of devices.

Every WINDOW_S seconds the least amount of each is noted. There is room for LINES_MOST lines, which
users and their jobs share: of a job with more, the largest are looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from tpusmi.merge.growth import WINDOW_S, WINDOWS_MOST
from tpusmi.merge.join import Join
from tpusmi.merge.tracks import Growth, JobLines, Track
from tpusmi.model import (
    ChipKey,
    Device,
    History,
    Place,
    Process,
    ProcessKey,
    Snapshot,
    Subject,
)
from tpusmi.model.history import Key

LATE_S = 3.0
"""Time after the end of a window until all its values are there."""
TAKE_EVERY_S = 3.9
"""Some profiles are left out where they come faster than this."""
LINES_MOST, AMOUNTS_MOST = 4096, 2048
"""Most lines of all jobs together, and most amounts of jobs, devices and chips."""
JUDGED_MOST = 256
"""Lines of all jobs together that are looked at closely after each window."""
USED, LIVE = "hbm_used_bytes", "live_array_bytes"


class Leaks:
    """What grows, of the jobs and devices of one machine. Not for several threads at once."""

    def __init__(self) -> None:
        self._jobs: dict[ProcessKey, JobLines] = {}
        self._amounts: dict[Key, Track] = {}
        self.window: int | None = None
        """The window that is not over, by its number: nothing here changes before the next one."""

    def look(self, machine: Join, history: History, now_s: float) -> None:
        """Note what is new. Most calls find nothing new and are over at once."""
        living = [p for p in machine.processes if p.is_living and p.is_verified]
        self._take([p for p in living if p.profile is not None])
        window = int((now_s - LATE_S) // WINDOW_S)
        if self.window is None or window == self.window:
            self.window = window
            return
        has_slept, self.window = window > self.window + 1, window
        if has_slept:
            self._jobs.clear()
            self._amounts.clear()
        for job in self._jobs.values():
            job.close(now_s)
            job.judge(now_s, max(1, JUDGED_MOST // len(self._jobs)))
        keys = _keys(living, machine.devices[0])
        self._note(keys, history, window * WINDOW_S - 1, now_s)

    def _take(self, profiled: Sequence[Process]) -> None:
        """The lines of every newer profile."""
        users = Counter(p.uid for p in profiled)
        for p in profiled:
            job = self._jobs.get(p.key) or self._jobs.setdefault(p.key, JobLines())
            if p.profile is not None and p.profile.at_s >= job.at_s + TAKE_EVERY_S:
                job.take(p.profile, LINES_MOST // len(users) // users[p.uid])
        if len(self._jobs) > len(profiled):
            gone = self._jobs.keys() - {p.key for p in profiled}
            self._jobs = {key: job for key, job in self._jobs.items() if key not in gone}

    def _note(self, keys: Iterator[Key], history: History, until_s: int, now_s: float) -> None:
        """The least of each amount in the window up to that second, and whether it grows."""
        before, self._amounts = self._amounts, {}
        for subject, name in keys:
            if len(self._amounts) >= AMOUNTS_MOST:
                return
            track = before.get((subject, name))
            count = WINDOW_S * (WINDOWS_MOST if track is None else 1)
            values = history.window(name, subject, until_s, count)
            if values is None:
                continue
            track = track or Track()
            for start in range(0, count, WINDOW_S):
                low = _least(values[start : start + WINDOW_S])
                if low < math.inf:
                    track.add(low)
                else:  # it may have done anything meanwhile
                    track = Track()
            self._amounts[subject, name] = track
            if track.gain > 0 or track.growth is not None:
                track.judge(now_s)

    @property
    def size(self) -> int:
        """How many lines there are."""
        return sum(map(len, self._jobs.values()))

    def lines_of(self, p: Process) -> Sequence[tuple[Place, Growth]]:
        """The lines of the job that only grow, the fastest first."""
        job = self._jobs.get(p.key)
        return () if job is None else job.growing

    def amount(self, subject: Subject, name: str) -> Growth | None:
        """The growth of that amount; None where it does not only grow."""
        track = self._amounts.get((subject, name))
        return None if track is None else track.growth

    def rated(self, s: Snapshot) -> Snapshot:
        """The snapshot with the rates of lines."""
        if not self._jobs:
            return s
        return s._replace(processes=tuple(map(self._rated, s.processes)))

    def _rated(self, p: Process) -> Process:
        job = self._jobs.get(p.key)
        if job is None or p.profile is None:
            return p
        return p._replace(profile=job.rated(p.profile))


def _least(window: Sequence[float]) -> float:
    """The least of the measured values; infinity if there are none. Others are negative."""
    low = min(window)
    return low if low >= 0 else min((v for v in window if v >= 0), default=math.inf)


def _keys(living: Iterable[Process], devices: Iterable[Device]) -> Iterator[Key]:
    """The amounts that may grow: of those jobs and of their devices, one of each user in turn. A
    user with very many devices must not take every place.
    """
    users: dict[ProcessKey, int | None] = {}
    of_user: dict[int | None, dict[Key, None]] = {}
    chips = set()
    for p in living:
        users[p.key] = p.uid
        of_user.setdefault(p.uid, {}).update({(p.key, LIVE): None, (p.key, USED): None})
    for d in devices:
        owner = next((key for key in d.owners if key in users), None)
        if owner is None:
            continue
        keys = of_user[users[owner]]
        keys.update({(d.key, LIVE): None, (d.key, USED): None})
        if d.chip is not None and d.chip not in chips:
            chips.add(d.chip)
            keys[ChipKey(d.chip), USED] = None
    rounds = zip_longest(*of_user.values())
    return (key for each in rounds for key in each if key is not None)
