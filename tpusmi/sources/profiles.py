"""The captures that this viewer made, as readings of the devices that were traced.

Each capture is of one moment. Its figures are current for FRESH_S, then shown as old, and dropped
after KEPT_S.
"""

import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from tpusmi.model import (
    ABSENT,
    OK,
    PROFILE,
    TRACED_FLOPS,
    TRACED_HBM,
    TRACED_PEAK_FLOPS,
    TRACED_PEAK_HBM,
    Number,
    Outcome,
    ProcessKey,
    Reading,
    TracedKey,
)
from tpusmi.model.nouns import within
from tpusmi.text import counted
from tpusmi.trace.figures import CoreFigures, TraceProfile

FRESH_S = 15.0
"""How long the figures of a capture are those of the present."""
KEPT_S = 600.0
"""How long they are shown at all."""
PROCESSES_MOST = 64
SHARE_MOST, RATE_MOST = 100.0, 1e18
"""Above this a figure makes no sense. Rounding may exceed 100 % by a little: see `_share`."""


class _Traced(NamedTuple):
    """What is kept of a profile: its operations would take megabytes."""

    cores: tuple[CoreFigures, ...]
    backend: str | None
    at_s: float


class Profiles:
    """The newest capture of each process, as a source of the collector."""

    name = PROFILE
    period_s = 1.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._captures: dict[ProcessKey, _Traced] = {}

    def take(self, process: ProcessKey, profile: TraceProfile, at_s: float) -> None:
        """Show what a trace of that process says, in place of its trace before; it ended at that
        time of CLOCK_MONOTONIC.
        """
        with self._lock:
            self._captures.pop(process, None)
            self._captures[process] = _Traced(profile.cores, profile.backend, at_s)
            while len(self._captures) > PROCESSES_MOST:
                del self._captures[next(iter(self._captures))]

    def read(self, now_s: float) -> Outcome:
        """The readings of all captures that are not too old."""
        began_s = time.monotonic()
        with self._lock:
            for process, capture in [*self._captures.items()]:
                if now_s - capture.at_s > KEPT_S:
                    del self._captures[process]
            captures = [*self._captures.items()]
        readings = tuple(r for process, capture in captures for r in _readings(process, capture))
        message = f"captures of {counted(len(captures), 'process', 'processes')}"
        none = f"no capture in the last {KEPT_S / 60:.0f} minutes"
        return Outcome(
            source=self.name,
            status=OK if captures else ABSENT,
            message=message if captures else none,
            took_s=time.monotonic() - began_s,
            readings=readings,
        )

    def close(self) -> None:
        """Nothing is open."""


def _readings(process: ProcessKey, capture: _Traced) -> Iterator[Reading]:
    for core in capture.cores:
        if core.local_index is None:
            continue
        key = TracedKey(
            process=process,
            index=core.local_index,
            id=core.id,
            devices=len(capture.cores),
            platform=capture.backend,
        )
        for metric, value in _figures(core):
            if value is not None:
                yield Reading(metric, key, value, capture.at_s, PROFILE, FRESH_S)


def _figures(core: CoreFigures) -> Iterator[tuple[str, Number | None]]:
    yield "tensorcore_utilization_percent", _share(core.mxu_percent)
    yield "duty_cycle_percent", _share(core.duty_cycle_percent)
    bandwidth = _share(core.hbm_bandwidth_percent)
    yield "hbm_bandwidth_utilization_percent", bandwidth
    peak = within(core.peak_hbm_bytes_per_s, RATE_MOST)
    yield TRACED_FLOPS, within(core.flops_per_s, RATE_MOST)
    yield TRACED_PEAK_FLOPS, within(core.peak_flops_per_s, RATE_MOST)
    yield TRACED_PEAK_HBM, peak
    yield TRACED_HBM, None if bandwidth is None or peak is None else peak * bandwidth / 100


def _share(percent: float | None) -> float | None:
    """A percentage; None for one that makes no sense. 100.3 is a rounded 100."""
    if percent is not None and SHARE_MOST < percent <= SHARE_MOST + 1:
        return SHARE_MOST
    return within(percent, SHARE_MOST)
