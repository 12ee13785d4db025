"""The past of a host: means over its devices, as many as there is room for."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence

from tpusmi.fleet.fleet_figures import FleetDevice, HostHistory

VALUES_OF_ALL_MOST = 6_000_000
"""All hosts together: 24 MB."""
LOOKS_LEAST, LOOKS_MOST = 60, 1800


def looks_kept(hosts: int, metrics: int) -> int:
    """How many looks each of so many hosts has room for."""
    return max(LOOKS_LEAST, min(LOOKS_MOST, VALUES_OF_ALL_MOST // max(1, hosts * metrics)))


class MeansRing:
    """The newest looks at one host. Times are of time.monotonic()."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self._at_s = array("d")
        self._values = {name: array("f") for name in metrics}

    def add(self, at_s: float, devices: Sequence[FleetDevice], most: int) -> None:
        """Take in what the devices have at that time, and keep at most so many looks."""
        self._at_s.append(at_s)
        for name, values in self._values.items():
            values.append(_mean(d.values[name] for d in devices if name in d.values))
        if len(self._at_s) > most + most // 4:  # not at each look
            for column in (self._at_s, *self._values.values()):
                del column[: len(column) - most]

    def history(
        self, metrics: Iterable[str], span_s: float, points: int, now_s: float
    ) -> Mapping[str, HostHistory]:
        """The mean of each part of the time up to now. Metrics without values are left out."""
        step_s = span_s / points
        first_s = now_s - span_s + step_s
        places = [math.ceil((at_s - first_s) / step_s) for at_s in self._at_s]
        unix_s = time.time() - now_s
        histories = {}
        for name in metrics:
            parts: list[list[float]] = [[] for _ in range(points)]
            for place, value in zip(places, self._values.get(name, ()), strict=False):
                if 0 <= place < points and not math.isnan(value):
                    parts[place].append(value)
            if any(parts):
                values = tuple(sum(part) / len(part) if part else None for part in parts)
                histories[name] = HostHistory(
                    first_s=unix_s + first_s, step_s=step_s, values=values
                )
        return histories


def _mean(values: Iterable[float]) -> float:
    """NaN without values."""
    numbers = [*values]
    return sum(numbers) / len(numbers) if numbers else math.nan
