"""The last minutes of a device's memory, one number for each column of a graph."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from tpusmi.model import Device, DeviceKey, History, Snapshot

GRAPHS_MOST = 4096
"""Devices of jobs that are gone are forgotten, with all the others, when there are so many."""
SPAN_S = 300.0
"""What a graph covers."""
_SHOWN = ("hbm_used_bytes", "live_array_bytes")
"""What is drawn: the first that this device has. They are never mixed in one graph."""


class _Graph(NamedTuple):
    """A drawn graph. `until` is the number of the newest time slot, which is still filling."""

    metric: str
    until: int
    width: int
    slots: list[float | None]


class Graphs:
    """Graphs of devices, read from the history once per time slot and not once per tick."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._graphs: dict[DeviceKey, _Graph] = {}

    def values(
        self, device: Device, snapshot: Snapshot, width: int
    ) -> tuple[list[float | None], float]:
        """The most in each of `width` time slots, None where unknown; and the top of the scale.

        Slots begin at round times: a graph stands still, but for its last column, until a slot is
        over.
        """
        key = device.key
        slot_s = SPAN_S / width
        until = int(snapshot.at_s // slot_s)
        graph = self._graphs.get(key)
        if len(self._graphs) > GRAPHS_MOST:
            self._graphs.clear()
        if graph is None or (graph.until, graph.width) != (until, width):
            graph = self._graphs[key] = self._read(device, until, width, slot_s)
        now = snapshot.values.get((key, graph.metric))
        if now is not None and not now.stale:
            graph.slots[-1] = max(graph.slots[-1] or 0, now.value)
        limit = snapshot.value("hbm_limit_bytes", key)
        return graph.slots, limit or max((v for v in graph.slots if v is not None), default=0)

    def _read(self, device: Device, until: int, width: int, slot_s: float) -> _Graph:
        # Of one witness only: agent and libtpu do not mean quite the same by memory in use.
        for metric, subject in product(_SHOWN, (device.key, *device.aka)):
            past = self._history.series(metric, subject)
            if past:
                break
        slots: list[float | None] = [None] * width
        for at_s, value in past:
            slot = int(at_s // slot_s) - until + width - 1
            if 0 <= slot < width:
                slots[slot] = max(slots[slot] or 0, value)
        return _Graph(metric, until, width, slots)
