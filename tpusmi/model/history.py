"""The last ten minutes of every value that was shown, a number a second, for graphs and for looking
back. Pure.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from tpusmi.model.metrics import AGENT, ASKED_OF_LIBTPU, LIBTPU, PROFILE, TRACED, trust_rank
from tpusmi.model.nouns import DeviceKey, Number, Reading, Subject
from tpusmi.model.process import ProcessKey
from tpusmi.model.series import UNKNOWN, Origin, Series

HISTORY_S = 600
SERIES_MOST = 16_384
"""How many series there can be: 46 MB. A host of 256 chips has up to 9,000."""
SHARE = SERIES_MOST // 4
"""How many of them one origin can have, where there are more than ROOMY."""
ROOMY = SERIES_MOST * 3 // 4
"""An origin that gives its devices new names at each look must not take every place."""
SWEEP_EVERY_S = 1.0
UNKEPT = frozenset(("hbm_limit_bytes", *TRACED))
"""Metrics that do not change, for the present value stands for the past one; and those that no
graph has.
"""
FORGET_EVERY_S = 30.0
WATCHED = "duty_cycle_percent"
"""The metric of which it is known for how long it has been nothing, however long that is."""
NOTHING_PERCENT = 0.05
"""A share below this is nothing."""
GAP_S = 60.0
"""A value that was not measured for that time may have been anything."""

Owners = tuple[ProcessKey, ...]
Key = tuple[Subject, str]
"""What a snapshot has its values under: a subject, and the name of a metric."""


class History:
    """Rings of single-precision numbers, one number for each second of CLOCK_MONOTONIC: 2.4 KB a
    series however long it runs. Of two readings in a second the later one stays.

    It keeps what snapshots show, under their keys, with a series for each witness: a graph is drawn
    from one of them, so the numbers of two witnesses are never in one graph.

    There are SERIES_MOST at most. Where they are not enough, those go first that are no longer fed,
    and those of an origin that has more than its share: what is fed steadily is not pushed out by
    what is new.
    """

    def __init__(self, span_s: int = HISTORY_S) -> None:
        self.span_s = span_s
        self._blank = array("f", [UNKNOWN]) * span_s
        self._series: dict[Key, tuple[Series, ...]] = {}
        """The witnesses of each value, the most trusted first."""
        self._quiet: dict[Subject, tuple[float, float]] = {}
        """Subjects whose WATCHED metric is nothing: since when, and when it was last measured."""
        self._places: dict[Hashable, DeviceKey] = {}
        """The devices of the newest snapshot, as record() got them."""
        self._owners: dict[Subject, Owners] = {}
        """The processes that were last seen to have each device or chip."""
        self._recorded: Mapping[Key, Reading] = {}
        """The readings that record() got last."""
        self._origins: Counter[Origin] = Counter()
        self.size = 0
        """How many series there are."""
        self._forgot_at_s = self._swept_at_s = -FORGET_EVERY_S

    def add(self, readings: Iterable[Reading]) -> None:
        """Append readings; one that is not newer than its series' last is dropped."""
        for r in readings:
            self._put((r.subject, r.metric), r)

    def record(
        self,
        shown: Mapping[Key, Reading],
        places: Mapping[Hashable, DeviceKey],
        owners: Mapping[Subject, Owners],
        now_s: float,
    ) -> None:
        """Append the readings that a snapshot shows, and forget what is too old.

        `places` are its devices by what stays the same when a job's agent begins or ends, and with
        it a device's key: what libtpu says of the device goes on under the new key. `owners` are
        the processes that have its devices and chips.
        """
        if places != self._places:
            self._follow(places)
        self._hand_over(owners)
        before, self._recorded = self._recorded, shown
        for key, r in shown.items():
            if r is not before.get(key) and r.at_s > now_s - self.span_s:  # most are not new
                self._put(key, r)
        self.forget(now_s)

    def _put(self, key: Key, r: Reading) -> None:
        if r.metric in UNKEPT:
            return
        witness = _measured_by(r)
        series = self._of(key, witness)
        if series is None:
            series = Series(witness, self._blank[:], r.at_s)
            if not self._keep(key, series):
                return
        elif r.at_s <= series.at_s:
            return
        if r.metric == WATCHED:
            self._watch(key[0], r)
        series.put(r)

    def _of(self, key: Key, witness: str) -> Series | None:
        for series in self._series.get(key, ()):  # for every number on the screen at every tick
            if series.witness == witness:
                return series
        return None

    def _keep(self, key: Key, series: Series) -> bool:
        """Take a series in, for that of the same witness if there is one; False where there is no
        room.
        """
        witnesses = self._series.get(key, ())
        others = [x for x in witnesses if x.witness != series.witness]
        origin = series.origin = _origin(key[0], series.witness)
        if len(others) == len(witnesses):
            if self.size >= (SERIES_MOST if self._origins[origin] < SHARE else ROOMY):
                return False
            self._origins[origin] += 1
            self.size += 1
        ranked = sorted((*others, series), key=lambda x: trust_rank(key[1], x.witness))
        self._series[key] = tuple(ranked)
        return True

    def _follow(self, places: Mapping[Hashable, DeviceKey]) -> None:
        """Let devices that have another key than before go on under it. What an agent says stays
        with its own job, and what libtpu says is copied: the job that has ended is still looked at.
        """
        before = [(self._places.get(place), key) for place, key in places.items()]
        moved = {old: key for old, key in before if old is not None and old != key}
        self._places = dict(places)
        for old in moved:
            self._owners.setdefault(old, ())
        for (subject, name), series in self._all() if moved else ():
            if isinstance(subject, DeviceKey) and subject in moved and series.witness != AGENT:
                self._go_on((moved[subject], name), series)
        for state in (self._quiet, self._owners):
            _move(state, moved)

    def _hand_over(self, owners: Mapping[Subject, Owners]) -> None:
        """Begin again for what another process has now: the one before it left it idle. A device
        that is new has only what its own agent recorded before.
        """
        for subject, processes in owners.items():
            own = (subject.process,) if isinstance(subject, DeviceKey) else ()
            if not set(processes) <= {*self._owners.get(subject, own)}:
                self._quiet.pop(subject, None)
        # A copy, taken in one step: a source adds the past of a job meanwhile.
        quiet = {x: self._owners[x] for x in self._quiet.copy() if x in self._owners}
        self._owners = {**quiet, **owners}

    def _go_on(self, key: Key, series: Series) -> None:
        """Let the key have the series, unless it has a longer one that is fed as well."""
        own = self._of(key, series.witness)
        if own is not None:
            fed_s = max(series.at_s, own.at_s) - GAP_S
            if series.at_s < fed_s or (own.at_s >= fed_s and own.first_s < series.first_s):
                return
        self._keep(key, series.copy())

    def series(
        self, name: str, subjects: Iterable[Subject], until_s: int, count: int
    ) -> Series | None:
        """What a graph of `count` seconds up to `until_s` is drawn from: of the first of these
        subjects of which anything is known, the most trusted witness; None where nothing is.
        """
        kept = (x for subject in subjects for x in self._series.get((subject, name), ()))
        return next((x for x in kept if x.is_within(until_s, count)), None)

    def window(self, name: str, subject: Subject, until_s: int, count: int) -> array[float] | None:
        """`count` seconds of one metric of one witness, oldest first and second `until_s` last,
        UNKNOWN where it was not measured; None when it was not in the whole of it.
        """
        series = self.series(name, (subject,), until_s, count)
        return None if series is None else series.window(until_s, count)

    def first_s(self, name: str, subject: Subject, until_s: int) -> int | None:
        """The second of the oldest value in a graph of the whole span up to `until_s`; None when it
        is empty.
        """
        series = self.series(name, (subject,), until_s, self.span_s)
        return None if series is None else series.known_from_s(until_s)

    def at(self, name: str, subject: Subject, at_s: float, within_s: float) -> Number | None:
        """The newest value up to that time, none older than `within_s`; None when there is none."""
        value = self.with_source(name, subject, at_s, within_s)
        return None if value is None else value[0]

    def with_source(
        self, name: str, subject: Subject, at_s: float, within_s: float
    ) -> tuple[Number, str] | None:
        """The same with the source that measured it."""
        for series in self._series.get((subject, name), ()):
            window = series.window(int(at_s), max(1, int(within_s) + 1))
            number = next((v for v in reversed(window) if v >= 0), None)
            if number is not None:
                return number, series.source
        return None

    def oldest_s(self) -> float | None:
        """When the oldest value that is kept was measured; None when there is none."""
        return min((series.first_s for _, series in self._all()), default=None)

    def nothing_since_s(self, subject: Subject) -> float | None:
        """Since when the duty cycle of a subject has been nothing; None when it is not, or when it
        is not known.
        """
        return self._quiet.get(subject, (None,))[0]

    def _watch(self, subject: Subject, r: Reading) -> None:
        since_s, last_s = self._quiet.get(subject, (r.at_s, r.at_s))
        if r.value > NOTHING_PERCENT:
            self._quiet.pop(subject, None)
        elif r.source != PROFILE:  # a capture is of a moment, and proves no rest
            self._quiet[subject] = (since_s if r.at_s - last_s <= GAP_S else r.at_s, r.at_s)

    def forget(self, now_s: float) -> None:
        """Drop series that have had no value in the span, and make room when there is none. Looks
        at them all, so now and then.
        """
        if now_s - self._forgot_at_s >= FORGET_EVERY_S:
            self._forgot_at_s = now_s
            self._drop((k, x) for k, x in self._all() if x.at_s < now_s - self.span_s)
            # Counted again: another thread may have added some meanwhile.
            self._origins = Counter(x.origin for _, x in self._all())
            self.size = self._origins.total()
        if self.size >= SERIES_MOST and now_s - self._swept_at_s >= SWEEP_EVERY_S:
            self._swept_at_s = now_s
            self._sweep(now_s)

    def _sweep(self, now_s: float) -> None:
        """Drop series until there is room: no longer fed ones, and those of too large origins."""
        kept = [*self._all()]
        left = Counter(series.origin for _, series in kept)
        too_large = {origin for origin, count in left.items() if count > SHARE}
        kept.sort(key=lambda x: (x[1].origin not in too_large, x[1].at_s))
        gone: list[tuple[Key, Series]] = []
        for key, series in kept:
            if len(kept) - len(gone) <= ROOMY:
                break
            is_modest = series.origin not in too_large or left[series.origin] <= SHARE
            if is_modest and series.is_fed(now_s):
                continue
            left[series.origin] -= 1
            gone.append((key, series))
        self._drop(gone)

    def _drop(self, gone: Iterable[tuple[Key, Series]]) -> None:
        for key, series in gone:
            rest = tuple(x for x in self._series.get(key, ()) if x is not series)
            self._origins[series.origin] -= 1
            self.size -= 1
            if rest:
                self._series[key] = rest
                continue
            self._series.pop(key, None)
            if key[1] == WATCHED:
                self._quiet.pop(key[0], None)

    def _all(self) -> Iterator[tuple[Key, Series]]:
        """Every series with its key, of a copy that is taken in one step: several threads add."""
        for key, witnesses in self._series.copy().items():
            for series in witnesses:
                yield key, series


def _move(state: dict[Subject, Any], moved: Mapping[DeviceKey, DeviceKey]) -> None:
    """Give each device its state under its new key, and nothing that another left there."""
    before = {key: state.get(old) for old, key in moved.items()}
    for key, value in before.items():
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value


def _measured_by(r: Reading) -> str:
    """Who measured it: what an agent asks of libtpu is libtpu's own number."""
    return LIBTPU if r.source == AGENT and r.metric in ASKED_OF_LIBTPU else r.source


def _origin(subject: Subject, witness: str) -> Origin:
    if isinstance(subject, DeviceKey):
        return subject.process or subject.server or None, witness
    return subject if isinstance(subject, ProcessKey) else None, witness
