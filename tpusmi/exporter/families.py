"""Samples of series, each with its labels: bounded, cleaned, and none of them twice. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tpusmi.exporter.catalog import INFO, KINDS, SeriesKind
from tpusmi.model import NOMINAL, VIEWER, Metric, Snapshot, Subject
from tpusmi.model.jsonobject import rounded
from tpusmi.model.series_names import PREFIX, SERIES
from tpusmi.text import clean

NOT_MEASURED = (NOMINAL, VIEWER)
"""What a chip has by its name, which is a series of its own; and the most that this exporter has
seen since it began, which Prometheus finds for any time.
"""
LABEL_MOST = 256
"""Characters of the value of a label. Names and command lines come from other users."""
SAMPLES_MOST = 10_000
"""Samples of one series: Prometheus keeps each of them in memory."""


class Family(NamedTuple):
    """All samples of one series."""

    kind: SeriesKind
    samples: dict[tuple[tuple[str, str], ...], float]
    """By the labels that are not empty: an empty one means the same as none."""


class Families:
    """What one scrape returns, in the order of the catalog."""

    def __init__(self, everywhere: Mapping[str, object]) -> None:
        self._everywhere = _plain(everywhere)
        self._by_name: dict[str, Family] = {}
        self.left_out = 0
        """Samples that had no room, or the labels of another one."""

    def add(self, name: str, value: float | None, /, **labels: object) -> None:
        """Add a sample, unless its value is unknown. Prometheus rejects a whole scrape with two
        samples of the same labels: the first one counts, and the other is left out.
        """
        if value is None or not math.isfinite(value):
            return
        kind = KINDS[f"{PREFIX}{name}"]
        assert labels.keys() <= {*kind.labels}, (name, labels)
        family = self._by_name.setdefault(kind.name, Family(kind, {}))
        full = (*self._everywhere, *_plain(labels))
        if full in family.samples or len(family.samples) >= SAMPLES_MOST:
            self.left_out += 1
            return
        family.samples[full] = value

    def add_info(self, name: str, /, **labels: object) -> None:
        """Add a sample whose labels are what it says."""
        assert KINDS[f"{PREFIX}{name}_info"].kind == INFO
        self.add(f"{name}_info", 1, **labels)

    def add_states(
        self, name: str, label: str, is_in: object, states: Iterable[object], /, **of: object
    ) -> None:
        """Add a sample for each state: 1 for the present one. Nothing if that is unknown."""
        if is_in is None:
            return
        for state in states:
            self.add(name, int(state == is_in), **(of | {label: state}))

    def add_measured(
        self, s: Snapshot, metrics: Iterable[Metric], subject: Subject, /, **labels: object
    ) -> None:
        """Add the values of these metrics that a source measured, and that are not old."""
        for m in metrics:
            value = s.values.get((subject, m.name))
            if value is not None and not value.stale and value.source not in NOT_MEASURED:
                series, number = SERIES[m], rounded(value.value)
                assert number is not None
                self.add(series.name.removeprefix(PREFIX), series.converted(number), **labels)

    def in_order(self) -> list[Family]:
        """The families that have samples."""
        return [self._by_name[name] for name in KINDS if name in self._by_name]


def _plain(labels: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """The labels that say something, as clean text."""
    texts = ((name, clean(str(v), LABEL_MOST)) for name, v in labels.items() if v is not None)
    return tuple((name, text) for name, text in texts if text)
