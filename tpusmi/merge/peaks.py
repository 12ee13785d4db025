"""The most memory in use that a viewer has seen of each device. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpusmi.model import VIEWER, DeviceKey, ProcessKey, Reading, Subject
from tpusmi.model.history import Key

USED, PEAK = "hbm_used_bytes", "hbm_peak_bytes"


class SeenPeaks:
    """The peak of each device of which no source knows it: it begins again with another owner."""

    def __init__(self) -> None:
        self._most: dict[Subject, tuple[tuple[ProcessKey, ...], Reading, Reading]] = {}
        """Owners, the memory in use at the last look, and the peak."""

    def of(
        self, readings: Mapping[Key, Reading], owners: Mapping[Subject, tuple[ProcessKey, ...]]
    ) -> Iterator[tuple[Key, Reading]]:
        """The peak of each device that has an owner."""
        before, self._most = self._most, {}
        for subject, processes in owners.items():
            used = readings.get((subject, USED))
            if used is None or (subject, PEAK) in readings or not isinstance(subject, DeviceKey):
                continue
            whose, last, peak = before.get(subject, (None, None, None))
            if whose != processes or peak is None:
                peak = used._replace(metric=PEAK, source=VIEWER)
            elif last is not used:
                value = max(used.value, peak.value)
                peak = used._replace(metric=PEAK, source=VIEWER, value=value)
            self._most[subject] = processes, used, peak
            yield (subject, PEAK), peak
