"""The most memory in use that a viewer has seen of each device. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpusmi.model import VIEWER, DeviceKey, ProcessKey, Reading, Subject
from tpusmi.model.history import Key

USED, PEAK = "hbm_used_bytes", "hbm_peak_bytes"


class SeenPeaks:
    """The peak of each device of which no source knows it: it begins again with another owner."""

    def __init__(self) -> None:
        self._most: dict[Subject, tuple[tuple[ProcessKey, ...], Reading]] = {}

    def of(
        self, readings: Mapping[Key, Reading], owners: Mapping[Subject, tuple[ProcessKey, ...]]
    ) -> Iterator[tuple[Key, Reading]]:
        """The peak of each device that has an owner."""
        before, self._most = self._most, {}
        for subject, processes in owners.items():
            used = readings.get((subject, USED))
            if used is None or (subject, PEAK) in readings or not isinstance(subject, DeviceKey):
                continue
            whose, most = before.get(subject, (processes, used))
            value = used.value if whose != processes else max(used.value, most.value)
            if whose == processes and value == most.value and used.at_s == most.at_s:
                peak = most
            else:
                peak = used._replace(metric=PEAK, value=value, source=VIEWER)
            self._most[subject] = processes, peak
            yield (subject, PEAK), peak
