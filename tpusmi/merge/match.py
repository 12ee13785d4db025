"""Which devices or chips the rows of one server are: by id where both sides know ids, else by rank,
and not at all where that is not certain. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from tpusmi.chips import by_name
from tpusmi.model import (
    CHIP_METRICS,
    DEVICE_METRICS,
    SDK_SERVER,
    Chip,
    ChipKey,
    Device,
    DeviceKey,
    Server,
    Subject,
)
from tpusmi.text import counted, noun

_OF_CHIP = frozenset(m.name for m in CHIP_METRICS)
_OF_CHIP_ALONE = _OF_CHIP - {m.name for m in DEVICE_METRICS}
_BY_ORDINAL = "hlo_"
"""Metrics whose rows are numbered by ordinal, not by device id."""


class Match:
    """The rows of one server beside the devices that they can be."""

    def __init__(
        self,
        server: Server,
        by_metric: Mapping[str, Collection[int]],
        targets: Sequence[Device],
        chips: Sequence[Chip],
    ) -> None:
        self._is_sdk = server.address == SDK_SERVER
        self._devices = [d.key for d in targets]
        self._by_id = {d.id: d.key for d in targets if d.id is not None}
        self._chips = list(dict.fromkeys(d.chip for d in targets if d.chip is not None))
        names = {c.generation for c in chips if c.index in self._chips and c.generation}
        generations = [g for g in map(by_name, names) if g is not None]
        self._per_chip = _OF_CHIP_ALONE.union(*(g.chip_metrics for g in generations))
        numbered = [tuple(row) for m, row in by_metric.items() if self._has_device_ids(m, row)]
        self.universe = sorted(_agreed(numbered, server.ids, len(targets)))
        """Every device id of the server, in order. Some metrics may number the same devices in
        another way: they have no part in it.
        """

    @property
    def names_devices(self) -> bool:
        """True when its ids are those of the devices, one for each."""
        return not self._is_sdk and len(self.universe) == len(self._devices)

    def subjects(self, metric: str, row: Collection[int]) -> list[Subject | None]:
        """For each row of a metric its device or chip; None where that is not certain."""
        devices = self._devices
        if self._may_be_of_chips(metric) and len(row) == len(self._chips):
            return [ChipKey(chip) for chip in self._chips]
        if len(row) == len(devices) and metric not in _OF_CHIP_ALONE:
            return list(devices)
        if metric in self._per_chip:
            return [None] * len(row)  # some chips are missing, and ids do not tell which
        return [self._lone(metric, i, row) for i in row]

    def is_apart(self, metric: str, row: Collection[int]) -> bool:
        """True when rows that fit no device can be shown as devices by their ids. Those numbered in
        another way cannot: next to each other they would speak of different devices.
        """
        has_ids = self._has_device_ids(metric, row) and not self._is_sdk
        return has_ids and set(row) <= set(self.universe)

    def is_of_devices(self, metric: str, row: Collection[int]) -> bool:
        """False for rows that may be about chips."""
        return metric.startswith(_BY_ORDINAL) or self._has_device_ids(metric, row)

    def _lone(self, metric: str, i: int, row: Collection[int]) -> DeviceKey | None:
        """The device of one row where others are missing."""
        if self._is_sdk:
            # By its place, unless the list is too long, or may be one of chips.
            least = 0 if len(self._chips) == len(self._devices) else len(self._chips)
            return self._devices[i] if least <= max(row) < len(self._devices) else None
        if metric.startswith(_BY_ORDINAL):
            return None
        if set(row) <= self._by_id.keys():
            return self._by_id[i]
        if self.names_devices and i in self.universe:
            return self._devices[self.universe.index(i)]
        return None

    def _may_be_of_chips(self, metric: str) -> bool:
        several = len(self._chips) != len(self._devices)
        return metric in self._per_chip or (several and metric in _OF_CHIP)

    def _has_device_ids(self, metric: str, row: Collection[int]) -> bool:
        if metric.startswith(_BY_ORDINAL) or metric in self._per_chip:
            return False
        # Where a chip has two devices, so few rows are of chips, or their subject is unknown.
        return not (self._may_be_of_chips(metric) and len(row) <= len(self._chips))


def _agreed(rows: Sequence[tuple[int, ...]], reported: Sequence[int], count: int) -> set[int]:
    """The ids of a server's devices, by rows that name them. `reported` are the ids of which it has
    ever reported memory, `count` is how many devices are expected.
    """
    ids = {i for row in rows for i in row}
    if len(reported) == count and (ids <= set(reported) or len(ids) > count):
        return set(reported)  # some rows may be missing now
    if len(ids) <= count:
        return ids
    whole = [row for row in rows if len(row) == count]
    if whole:
        return set(Counter(whole).most_common(1)[0][0])
    alike = [set(row) for row in rows if set(row) & set(reported)]
    return set(reported).union(*alike) if alike else ids


def counted_values(rows: Mapping[str, Collection[int]]) -> str:
    """`8 duty_cycle_percent and 3 hlo_queue_size values`, the parts of one quantity together."""
    counts = {metric.partition(".")[0]: len(row) for metric, row in rows.items()}
    names = " and ".join(f"{count} {name}" for name, count in counts.items())
    return f"{names} {noun(sum(counts.values()), 'value')}"


def unexpected(count: int, expected: int) -> str:
    """`3 devices, but 4 were expected; listed separately`; of unknown chips where none are."""
    but = f", but {expected} {noun(expected, 'was', 'were')} expected"
    what = but if expected else " of unknown chips"
    return f"{counted(count, 'device')}{what}; listed separately"
