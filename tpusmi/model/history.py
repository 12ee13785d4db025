"""The last ten minutes of every value, a number a second, for graphs and for looking back. Pure."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

from tpusmi.model.nouns import ChipKey, DeviceKey, Number, Reading, RowKey, Subject
from tpusmi.model.process import ProcessKey

HISTORY_S = 600
SERIES_MOST = 16_384
"""46 MB. A host of 256 chips has up to 9,000: of an agent, of a metrics server, of the SDK."""
SHARE = SERIES_MOST // 4
"""Of one origin, where there are more than..."""
ROOMY = SERIES_MOST * 3 // 4
"""... so many: one that names its devices anew at each look must not take every place."""
SWEEP_EVERY_S = 1.0
PATIENCE_LEAST_S = 65.0
"""A series may be fed as seldom as its values stay fresh, but not before it has been fed for as
long; at first, once a minute is enough.
"""
UNKNOWN = -1.0
"""In place of what nobody measured: no quantity is negative."""
UNKEPT = frozenset(("hbm_limit_bytes",))
"""What does not change: the present value stands for the past one."""
FORGET_EVERY_S = 30.0
WATCHED = "duty_cycle_percent"
"""The metric of which it is known for how long it has been nothing, however long that is."""
NOTHING_PERCENT = 0.05
GAP_S = 60.0
"""What nobody measured for so long may have been anything."""

Origin = ProcessKey | str | None


class History:
    """A ring of single-precision numbers for each series, one for each second of CLOCK_MONOTONIC:
    2.4 KB a series however long it runs. Of two readings in a second the later one stays.

    There are SERIES_MOST at most. Where they are not enough, those go first that are no longer fed,
    and those of an origin (a process, a metrics server) that has more than its share: what is fed
    steadily is not pushed out by what is new.
    """

    def __init__(self, span_s: int = HISTORY_S) -> None:
        self.span_s = span_s
        self._blank = array("f", [UNKNOWN]) * span_s
        self._series: dict[tuple[Subject, str], _Series] = {}
        self._nothing_since_s: dict[Subject, float] = {}
        self._origins: Counter[Origin] = Counter()
        self._forgot_at_s = self._swept_at_s = -FORGET_EVERY_S

    @property
    def size(self) -> int:
        """How many series there are."""
        return len(self._series)

    def add(self, readings: Sequence[Reading]) -> None:
        """Append readings; one that is not newer than its series' last is dropped."""
        for r in readings:
            if r.metric in UNKEPT:
                continue
            series = self._series.get((r.subject, r.metric))
            if series is None:
                origin = _origin(r.subject)
                if not self._has_room(origin):
                    continue
                series = self._series[r.subject, r.metric] = _Series(self._blank[:], r.at_s)
                self._origins[origin] += 1
            elif r.at_s <= series.at_s:
                continue
            if r.metric == WATCHED:
                self._watch(r, series.at_s)
            series.put(r)

    def window(self, name: str, subject: Subject, until_s: int, count: int) -> array[float] | None:
        """`count` seconds of one metric, oldest first and second `until_s` last, UNKNOWN where
        nobody measured; None when nobody did in the whole of it.
        """
        series = self._series.get((subject, name))
        return None if series is None else series.window(until_s, count)

    def first_s(self, name: str, subject: Subject, until_s: int) -> int | None:
        """The second of the oldest value of one metric in the whole span up to `until_s`; None when
        nobody measured any.
        """
        series = self._series.get((subject, name))
        return None if series is None else series.known_from_s(until_s)

    def at(self, name: str, subject: Subject, at_s: float, within_s: float) -> Number | None:
        """The newest value up to then, none older than `within_s`; None when there is none."""
        count = max(1, int(within_s) + 1)
        found = self.window(name, subject, int(at_s), count)
        return None if found is None else next((v for v in reversed(found) if v >= 0), None)

    def oldest_s(self) -> float | None:
        """When the oldest value that is kept was measured; None when there is none."""
        # A copy, taken in one step: sources add series from threads of their own.
        return min((series.first_s for series in self._series.copy().values()), default=None)

    def nothing_since_s(self, subject: Subject) -> float | None:
        """Since when the duty cycle of a subject has been nothing; None when it is not, or nobody
        knows.
        """
        return self._nothing_since_s.get(subject)

    def _watch(self, r: Reading, before_s: float) -> None:
        if r.value > NOTHING_PERCENT:
            self._nothing_since_s.pop(r.subject, None)
        elif r.at_s - before_s > GAP_S:
            self._nothing_since_s[r.subject] = r.at_s
        else:
            self._nothing_since_s.setdefault(r.subject, r.at_s)

    def _has_room(self, origin: Origin) -> bool:
        most = SERIES_MOST if self._origins[origin] < SHARE else ROOMY
        return len(self._series) < most

    def forget(self, now_s: float) -> None:
        """Drop series that have had no value in the span, and make room when there is none. Looks
        at them all, so now and then.
        """
        if now_s - self._forgot_at_s >= FORGET_EVERY_S:
            self._forgot_at_s = now_s
            self._drop(k for k, s in self._series.copy().items() if s.at_s < now_s - self.span_s)
        if len(self._series) >= SERIES_MOST and now_s - self._swept_at_s >= SWEEP_EVERY_S:
            self._swept_at_s = now_s
            self._sweep(now_s)

    def _sweep(self, now_s: float) -> None:
        """Drop what is no longer fed, and of origins that have too much, until there is room."""
        every = [*self._series.copy().items()]
        origins = Counter(_origin(subject) for (subject, _), _ in every)
        too_large = {origin for origin, count in origins.items() if count > SHARE}
        ranked = sorted(
            (_origin(key[0]) not in too_large, series.at_s, rank)
            for rank, (key, series) in enumerate(every)
        )
        gone: list[tuple[Subject, str]] = []
        for is_modest, _, rank in ranked:
            key, series = every[rank]
            origin = _origin(key[0])
            if len(every) - len(gone) <= ROOMY:
                break
            if series.is_fed(now_s) and (is_modest or origins[origin] <= SHARE):
                continue
            origins[origin] -= 1
            gone.append(key)
        self._drop(gone)

    def _drop(self, gone: Iterable[tuple[Subject, str]]) -> None:
        for key in gone:
            self._series.pop(key, None)
            if key[1] == WATCHED:
                self._nothing_since_s.pop(key[0], None)
        # Counted anew: other threads may have added some meanwhile.
        self._origins = Counter(_origin(subject) for subject, _ in self._series.copy())


def _origin(subject: Subject) -> Origin:
    """Whose it is: a process's, a server's, or the machine's."""
    if isinstance(subject, RowKey):
        return subject.server
    if isinstance(subject, DeviceKey):
        return subject.process
    return None if isinstance(subject, ChipKey) else subject


class _Series:
    """One ring: the number of second `s` is at `s` modulo its length."""

    __slots__ = ("_born_s", "_fresh_s", "_ring", "at_s")

    def __init__(self, ring: array[float], at_s: float) -> None:
        self._ring = ring
        self._born_s = self.at_s = at_s
        self._fresh_s = 0.0

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
        self._fresh_s = r.fresh_s

    def _fill(self, start: int, stop: int, value: float) -> None:
        """Those seconds, no more than the ring has. Not one by one: there may be many at each
        reading.
        """
        ring, size = self._ring, len(self._ring)
        first, more = start % size, stop - start
        before = min(more, size - first)
        ring[first : first + before] = array("f", [value]) * before
        ring[: more - before] = array("f", [value]) * (more - before)

    def window(self, until_s: int, count: int) -> array[float] | None:
        ring, last = self._ring, int(self.at_s)
        size = len(ring)
        oldest = max(last - size + 1, int(self._born_s))
        start, stop = max(until_s - count + 1, oldest), min(until_s, last) + 1
        if start >= stop:
            return None
        a, b = start % size, (stop - 1) % size + 1
        known = ring[a:b] if a < b else ring[a:] + ring[:b]
        before, after = start - (until_s - count + 1), until_s + 1 - stop
        return array("f", [UNKNOWN]) * before + known + array("f", [UNKNOWN]) * after
