"""The last ten minutes of the memory of a job, of a device, and of lines of code. Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tpusmi.merge.growth import WINDOWS_MOST, goes_on, rate_of, rise_of
from tpusmi.model import MemoryProfile, Place

CARRIED_S = 180.0
"""A profile stands for as long after it: agents take them seldom where they cost much."""
REMEMBERED_S = 3600.0
"""Growth that has ended is news only beyond where it was, for as long."""
BUFFER = "buffer"


class Growth(NamedTuple):
    """Growth that has lasted for minutes."""

    bytes_per_s: float
    since_s: float
    """When it began, or earlier; CLOCK_MONOTONIC."""


class Track:
    """The least amount of each of the last windows, and whether it only grows."""

    __slots__ = ("_top", "_top_until_s", "growth", "low", "lows", "seen")

    def __init__(self, before: int = 0) -> None:
        """What is new held nothing in the `before` windows before."""
        self.lows = array("d", bytes(8 * before))
        """The oldest first."""
        self.low = math.inf
        """The least in the window that is not over."""
        self.seen = 0
        """How many profiles of that window had it."""
        self.growth: Growth | None = None
        self._top, self._top_until_s = 0.0, -math.inf
        """How high it was when growth ended."""

    def add(self, low: float) -> None:
        """The least amount of the next window."""
        self.lows.append(low)
        if len(self.lows) > WINDOWS_MOST:
            del self.lows[0]
        self.low, self.seen = math.inf, 0

    @property
    def gain(self) -> float:
        """How much more it is than in the oldest window."""
        return self.lows[-1] - self.lows[0] if self.lows else 0.0

    def judge(self, now_s: float) -> None:
        """Look whether it only grows, after a window."""
        rise, before = rise_of(self.lows), self.growth
        if before is None:
            if rise is not None and (self.lows[-1] > self._top or now_s > self._top_until_s):
                self.growth = Growth(rise.bytes_per_s, now_s - rise.lasted_s)
        elif rise is not None:
            self.growth = before._replace(bytes_per_s=rise.bytes_per_s)
        elif not goes_on(self.lows, before.bytes_per_s):
            self.growth = None
            self._top, self._top_until_s = max(self.lows, default=0.0), now_s + REMEMBERED_S


class JobLines:
    """The lines of code in one job."""

    def __init__(self) -> None:
        self._tracks: dict[Place, Track] = {}
        self._windows = 0
        """How many windows the tracks go back."""
        self._is_whole = False
        """Whether the window that is not over was seen from its start."""
        self._takes = 0
        """How many profiles there were in the window that is not over."""
        self.at_s = -math.inf
        """When the newest of them was made."""
        self.rates: Mapping[Place, float | None] = {}
        """Bytes per second of each line; None until that is known."""
        self._rated: tuple[MemoryProfile, MemoryProfile] | None = None
        """The newest profile, without its rates and with them."""

    def __len__(self) -> int:
        return len(self._tracks)

    def take(self, profile: MemoryProfile, most: int) -> None:
        """The lines of a newer profile, the `most` largest."""
        self.at_s = profile.at_s
        self._takes += 1
        tracks = self._tracks
        for site in profile.sites[:most]:
            size = site.bytes
            if size is None or site.kind != BUFFER:
                continue
            track = tracks.get(site[:3])
            if track is None:
                if len(tracks) >= most:
                    continue
                track = tracks[site[:3]] = Track(self._windows)
            track.seen += 1
            if size < track.low:
                track.low = size

    def close(self, now_s: float) -> None:
        """The window is over. A line that a profile of it did not list held nothing."""
        takes, self._takes = self._takes, 0
        if not self._is_whole:
            self._is_whole, self._tracks = True, {}
            return
        if now_s - self.at_s > CARRIED_S:
            self._tracks, self._windows, self.rates = {}, 0, {}
            return
        for place, track in [*self._tracks.items()]:
            if takes and not track.seen:
                del self._tracks[place]
            elif not takes:
                track.add(track.lows[-1])
            else:
                track.add(track.low if track.seen >= takes else 0.0)
        self._windows = min(self._windows + 1, WINDOWS_MOST)
        self.rates = {place: rate_of(track.lows) for place, track in self._tracks.items()}

    def judge(self, now_s: float, most: int) -> None:
        """Look which lines only grow: the `most` that have grown most, and those that did."""
        tracks = self._tracks.values()
        often = sorted((t for t in tracks if t.gain > 0), key=lambda t: t.gain, reverse=True)[:most]
        for track in {id(t): t for t in (*often, *(t for t in tracks if t.growth))}.values():
            track.judge(now_s)

    @property
    def growing(self) -> Sequence[tuple[Place, Growth]]:
        """The lines that only grow, the fastest first."""
        lines = [(place, t.growth) for place, t in self._tracks.items() if t.growth is not None]
        return sorted(lines, key=lambda line: -line[1].bytes_per_s)

    def rated(self, profile: MemoryProfile) -> MemoryProfile:
        """The profile with the rates of its lines: the same object until there is another of the
        two.
        """
        before = self._rated
        if before is None or before[0] is not profile or before[1].rates is not self.rates:
            before = self._rated = profile, profile._replace(rates=self.rates)
        return before[1]
