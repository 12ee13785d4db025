"""Samples of series, each with its labels: bounded, cleaned, and none of them twice. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tpusmi.exporter.catalog import INFO, KINDS, SeriesKind
from tpusmi.model.series_names import PREFIX
from tpusmi.text import clean

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
        """Samples that had no room."""

    def add(self, name: str, value: float | None, /, **labels: object) -> None:
        """Add a sample, unless its value is unknown. Prometheus rejects a whole scrape with two
        samples of the same labels: the first one counts.
        """
        if value is None or not math.isfinite(value):
            return
        kind = KINDS[f"{PREFIX}{name}"]
        assert labels.keys() <= {*kind.labels}, (name, labels)
        family = self._by_name.setdefault(kind.name, Family(kind, {}))
        if len(family.samples) >= SAMPLES_MOST:
            self.left_out += 1
            return
        family.samples.setdefault((*self._everywhere, *_plain(labels)), value)

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

    def in_order(self) -> list[Family]:
        """The families that have samples."""
        return [self._by_name[name] for name in KINDS if name in self._by_name]


def _plain(labels: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """The labels that say something, as clean text."""
    texts = ((name, clean(str(v), LABEL_MOST)) for name, v in labels.items() if v is not None)
    return tuple((name, text) for name, text in texts if text)
