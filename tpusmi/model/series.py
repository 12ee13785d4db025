"""One number a second of one value, for as long as History keeps it. Pure."""

from __future__ import annotations

from array import array

from tpusmi.model.nouns import Reading
from tpusmi.model.process import ProcessKey

UNKNOWN = -1.0
"""In place of what was not measured: no quantity is negative."""
PATIENCE_LEAST_S = 65.0
"""A series may be fed as seldom as its values stay fresh, but not before it has been fed for as
long; at first, once a minute is enough.
"""

Origin = tuple[ProcessKey | str | None, str]
"""A process, a metrics server or the machine (None), and the source that measured it."""


class Series:
    """What one witness has said of one value: a ring, where the number of second `s` is at `s`
    modulo its length.
    """

    __slots__ = ("_born_s", "_fresh_s", "_ring", "at_s", "origin", "source", "witness")

    def __init__(self, witness: str, ring: array[float], at_s: float) -> None:
        self.witness = self.source = witness
        self._ring = ring
        self._born_s = self.at_s = at_s
        self._fresh_s = 0.0
        self.origin: Origin = (None, witness)

    def copy(self) -> Series:
        """The same values, to be fed apart from these."""
        twin = Series(self.witness, self._ring[:], self.at_s)
        twin.source, twin._born_s, twin._fresh_s = self.source, self._born_s, self._fresh_s
        return twin

    @property
    def first_s(self) -> float:
        """The oldest second that the ring may know."""
        return max(self._born_s, self.at_s - len(self._ring) + 1)

    def known_from_s(self, until_s: int) -> int | None:
        """The oldest second with a value, of as many as the ring has up to `until_s`."""
        ring, last = self._ring, int(self.at_s)
        oldest = max(last, until_s) - len(ring) + 1
        seconds = range(max(oldest, int(self._born_s)), min(until_s, last) + 1)
        return next((second for second in seconds if ring[second % len(ring)] >= 0), None)

    def is_fed(self, now_s: float) -> bool:
        """False when the next value is overdue."""
        patience_s = min(self._fresh_s, max(PATIENCE_LEAST_S, self.at_s - self._born_s))
        return now_s - self.at_s <= patience_s

    def put(self, r: Reading) -> None:
        """The newest reading. The one before stands until then, as long as it may be believed."""
        ring, second, last = self._ring, int(r.at_s), int(self.at_s)
        if second > last + 1:
            held = ring[last % len(ring)] if r.at_s - self.at_s <= r.fresh_s else UNKNOWN
            self._fill(max(last + 1, second - len(ring)), second, held)
        ring[second % len(ring)] = r.value
        self.at_s = r.at_s
        self._fresh_s, self.source = r.fresh_s, r.source

    def _fill(self, start: int, stop: int, value: float) -> None:
        """Those seconds, no more than the ring has. Not one by one: there may be many at each
        reading.
        """
        ring, size = self._ring, len(self._ring)
        first, more = start % size, stop - start
        if more == 1:
            ring[first] = value
            return
        before = min(more, size - first)
        ring[first : first + before] = array("f", [value]) * before
        ring[: more - before] = array("f", [value]) * (more - before)

    def is_within(self, until_s: int, count: int) -> bool:
        """False when it has nothing in the `count` seconds up to `until_s`."""
        return bool(self._seconds(until_s, count))

    def window(self, until_s: int, count: int) -> array[float]:
        """`count` seconds, second `until_s` last, UNKNOWN where there is no value."""
        ring, seconds = self._ring, self._seconds(until_s, count)
        if not seconds:
            return array("f", [UNKNOWN]) * count
        a, b = seconds.start % len(ring), (seconds.stop - 1) % len(ring) + 1
        values = ring[a:b] if a < b else ring[a:] + ring[:b]
        before, after = seconds.start - (until_s - count + 1), until_s + 1 - seconds.stop
        return array("f", [UNKNOWN]) * before + values + array("f", [UNKNOWN]) * after

    def _seconds(self, until_s: int, count: int) -> range:
        """Those of the `count` up to `until_s` of which the ring may have a value."""
        start = max(until_s - count + 1, int(self.first_s))
        return range(start, min(until_s, int(self.at_s)) + 1)
