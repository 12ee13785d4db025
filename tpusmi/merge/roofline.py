"""Where a device's program is relative to the roof of its chip: limited by memory or arithmetic.
Pure.

The numbers, and how far they can be trusted:

- FLOP/s are what the job counts itself (`step(flops=)`, `track()`), over the last minute. They are
  those of the whole job and are divided evenly by its `device_count`: a device that does more than
  its share is not seen. What the job computes twice to save memory is not in them, as in MFU.
- HBM bytes/s are the share that libtpu measures over its own window of some seconds, times the
  nominal peak of the chip table. Where it measures a chip of two devices, no device has them.
- So the two are not of the same moment, and mean something for a job whose steps are alike.
- Peaks are those of bf16: a job in int8 or fp8 can be above the roof.

A capture shows all of them at one moment, as the device itself counted them, and with the peaks
that the trace has: where there is one, its point is taken, and its age with it. An old one is taken
only where the present has no point.
"""

from __future__ import annotations

from typing import NamedTuple

from tpusmi.chips import by_kind, peak_flops_per_device, peak_hbm_bytes_per_s_per_device
from tpusmi.model import (
    TRACED_FLOPS,
    TRACED_HBM,
    TRACED_PEAK_FLOPS,
    TRACED_PEAK_HBM,
    Device,
    Process,
    Snapshot,
)
from tpusmi.model.several import fresh_own

MEMORY, COMPUTE = "memory", "compute"


class Roofline(NamedTuple):
    """One device. None where it was not measured, or the chip table does not know."""

    peak_flops_per_s: float | None
    """bf16, from the chip table or the trace."""
    peak_hbm_bytes_per_s: float | None
    """From the chip table or the trace."""
    flops_per_s: float | None
    """The device's even part of what the whole job computes; in a trace, its own."""
    hbm_bytes_per_s: float | None
    """From libtpu's share of the peak, or the trace's."""
    witness: str = ""
    """`profile` where the point is that of a capture; else empty."""
    age_s: float | None = None
    """How old the capture is; None without one."""

    @property
    def ridge_flops_per_byte(self) -> float | None:
        """Intensity from which on the arithmetic of the chip is the limit, and not its memory."""
        return _ratio(self.peak_flops_per_s, self.peak_hbm_bytes_per_s)

    @property
    def intensity_flops_per_byte(self) -> float | None:
        """FLOPs for each byte that goes to or from HBM; None when no byte does."""
        return _ratio(self.flops_per_s, self.hbm_bytes_per_s)

    @property
    def bound(self) -> str | None:
        """Under which part of the roof: `memory` left of the ridge, else `compute`."""
        ridge, intensity = self.ridge_flops_per_byte, self.intensity_flops_per_byte
        if ridge is None or intensity is None:
            return None
        return MEMORY if intensity < ridge else COMPUTE

    @property
    def roof_ratio(self) -> float | None:
        """Share of the roof that is reached, 0 to 1: share of the bandwidth under its memory part,
        of the peak under the other.
        """
        if self.bound == MEMORY:
            return _ratio(self.hbm_bytes_per_s, self.peak_hbm_bytes_per_s)
        return _ratio(self.flops_per_s, self.peak_flops_per_s) if self.bound else None


def roofline(snapshot: Snapshot, device: Device) -> Roofline:
    """Where the program on that device is."""
    nominal = _nominal(snapshot, device)
    traced = snapshot.values.get((device.key, TRACED_FLOPS))
    has_point = nominal.intensity_flops_per_byte is not None
    if traced is not None and traced.stale and has_point:
        return nominal
    return _traced(snapshot, device, nominal) or nominal


def _traced(snapshot: Snapshot, device: Device, nominal: Roofline) -> Roofline | None:
    """By the newest capture; None where it does not show both FLOP/s and bytes/s."""
    flops, moved, peak_flops, peak_hbm = (
        snapshot.values.get((device.key, name))
        for name in (TRACED_FLOPS, TRACED_HBM, TRACED_PEAK_FLOPS, TRACED_PEAK_HBM)
    )
    if flops is None or moved is None:
        return None
    return Roofline(
        peak_flops_per_s=nominal.peak_flops_per_s if peak_flops is None else peak_flops.value,
        peak_hbm_bytes_per_s=nominal.peak_hbm_bytes_per_s if peak_hbm is None else peak_hbm.value,
        flops_per_s=flops.value,
        hbm_bytes_per_s=moved.value,
        witness=flops.source,
        age_s=flops.age_s,
    )


def _nominal(snapshot: Snapshot, device: Device) -> Roofline:
    """By what the job counts and libtpu measures, under the peaks of the chip table."""
    generation = None if device.kind is None else by_kind(device.kind)
    bandwidth = None if generation is None else peak_hbm_bytes_per_s_per_device(generation)
    # An old value beside a new one would make up a point.
    busy = fresh_own(snapshot, "hbm_bandwidth_utilization_percent", device.key)
    return Roofline(
        peak_flops_per_s=None if generation is None else peak_flops_per_device(generation),
        peak_hbm_bytes_per_s=bandwidth,
        flops_per_s=_flops_per_s(snapshot, device),
        hbm_bytes_per_s=None if busy is None or bandwidth is None else bandwidth * busy / 100,
    )


def _flops_per_s(snapshot: Snapshot, device: Device) -> float | None:
    """None also where several jobs that compute share the device: their parts are unknown."""
    owners = {o for o in (device.key.process, *device.owners) if o is not None}
    parts = [_part(snapshot, p) for p in snapshot.processes if p.key in owners]
    measured = [part for part in parts if part is not None]
    return measured[0] if len(measured) == 1 else None


def _part(snapshot: Snapshot, process: Process) -> float | None:
    """What each device of a job computes."""
    whole = fresh_own(snapshot, "flops_per_s", process.key)
    devices = process.facts.get("device_count")
    if whole is None or not isinstance(devices, int) or devices < 1:
        return None
    return whole / devices


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole
