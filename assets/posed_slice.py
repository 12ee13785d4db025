"""A slice that stands still for its picture, in which some hosts are in trouble."""

from __future__ import annotations

from posed import PosedFeed

from tpusmi.merge.slice_notices import of_slice
from tpusmi.model import SliceState, Snapshot
from tpusmi.model.slice_hosts import Slice, SliceProcess

SILENT, SLOW, WARNED = (5,), (11,), (14, 23)
"""Numbers of the processes: the first ones stopped reporting, and others wait for the second."""
SILENT_S, SLOWER, BUSY = 44.0, 1.9, 0.83
"""Age of what a silent host said, how much longer its step takes, and the share of duty of all."""
UNEVEN = 0.6180339887498949


class TroubledSlice(PosedFeed):
    """The feed of one of its hosts."""

    def __init__(self, machine: str) -> None:
        super().__init__(machine, processes=1, faults=("bad-link:7",))
        self._snapshot = _troubled(self._snapshot)


def _troubled(s: Snapshot) -> Snapshot:
    slices = tuple(_of_slice(x) for x in s.slices)
    notices = [notice for x in slices for notice in of_slice(x)]
    others = [n for n in s.warnings if not n.code.startswith("slice_")]
    return s._replace(slices=slices, warnings=(*others, *notices))


def _of_slice(x: Slice) -> Slice:
    return x._replace(hosts=tuple(_host(h) for h in x.hosts))


def _host(h: SliceProcess) -> SliceProcess:
    h = _apart(h)
    if h.process_index in SILENT:
        return h._replace(state=SliceState.STOPPED, age_s=SILENT_S)
    if h.process_index in SLOW:
        return h._replace(step_time_s=None if h.step_time_s is None else SLOWER * h.step_time_s)
    if h.process_index in WARNED:
        return h._replace(warnings=("no_memory_profile",))
    return h


def _apart(h: SliceProcess) -> SliceProcess:
    """The host with memory and duty of its own, so that the picture shows the scale."""
    place = h.process_index * UNEVEN % 1.0
    share = 0.55 + 0.33 * place
    devices = tuple(
        d._replace(
            hbm_used_bytes=None
            if d.hbm_limit_bytes is None
            else int(d.hbm_limit_bytes * (share + 0.01 * n)),
            duty_cycle_percent=100 * BUSY * (0.6 + 0.4 * ((h.process_index + n) * UNEVEN % 1.0)),
        )
        for n, d in enumerate(h.devices)
    )
    return h._replace(
        age_s=0.0 if h.process_index == 0 else place * h.period_s,
        sample_age_s=0.0,
        clock_difference_s=0.0,
        devices=devices,
    )
