"""The most memory in use that a viewer has seen of each device. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tpusmi.model import VIEWER, DeviceKey, ProcessKey, Reading, Subject
from tpusmi.model.history import Key
from tpusmi.model.nouns import Number

USED, PEAK = "hbm_used_bytes", "hbm_peak_bytes"


class _Seen(NamedTuple):
    """What was seen of a device."""

    owners: tuple[ProcessKey, ...]
    used: Reading
    """The memory in use at the last look."""
    peak: Reading | None
    """None until it was measured under these owners."""


class SeenPeaks:
    """The peak of each device of which no source knows it: it begins again with another owner, and
    outlasts moments at which the memory in use is not known.
    """

    def __init__(self) -> None:
        self._seen: dict[Subject, _Seen] = {}

    def of(
        self, readings: Mapping[Key, Reading], owners: Mapping[Subject, tuple[ProcessKey, ...]]
    ) -> Iterator[tuple[Key, Reading]]:
        """The peak of each device that has an owner."""
        before, self._seen = self._seen, {}
        for subject, processes in owners.items():
            if not isinstance(subject, DeviceKey):
                continue
            used, seen = readings.get((subject, USED)), before.get(subject)
            if used is not None:
                seen = _with(seen, processes, used)
            if seen is None or seen.owners != processes:
                continue
            self._seen[subject] = seen
            if used is not None and seen.peak is not None and (subject, PEAK) not in readings:
                yield (subject, PEAK), seen.peak


def _with(seen: _Seen | None, owners: tuple[ProcessKey, ...], used: Reading) -> _Seen:
    """What was seen, and the memory in use now. A reading of the time of other owners says nothing
    about these.
    """
    if seen is None or seen.owners != owners:
        is_old = seen is not None and used.at_s <= seen.used.at_s
        return _Seen(owners, used, None if is_old else _peak(used, used.value))
    if used is seen.used:
        return seen
    most = used.value if seen.peak is None else max(used.value, seen.peak.value)
    is_new = used.at_s > seen.used.at_s or seen.peak is not None
    return _Seen(owners, used, _peak(used, most) if is_new else None)


def _peak(used: Reading, value: Number) -> Reading:
    return used._replace(metric=PEAK, source=VIEWER, value=value)
