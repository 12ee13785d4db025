"""A profile from xprof's pages, of any version and as far as they have figures. Pure.

Where xprof prints 0 for what it has not measured, the figure is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tpusmi.profiler.xprof_operations import (
    GIB,
    GIGA,
    MICRO,
    PageOperations,
    Peaks,
    idle_percent,
    operations_of,
)
from tpusmi.profiler.xprof_steps import (
    PageSteps,
    compile_percent,
    input_bound_percent,
    steps_of,
    times,
)
from tpusmi.profiler.xprof_steps import idle_percent as idle_in_steps
from tpusmi.profiler.xprof_tables import (
    count,
    measured,
    members,
    property_of,
    scaled,
    with_column,
)
from tpusmi.text import clean_or_none
from tpusmi.trace.counted_work import OVERCOUNTED_MOST_PERCENT, UNCOUNTED_MOST_PERCENT
from tpusmi.trace.figures import XPROF, Capture, MemoryPeak, TimeShares, TraceProfile
from tpusmi.trace.rates import of_peak
from tpusmi.trace.trace_notes import NO_BANDWIDTH, NO_MXU

HARDLY_IDLE_PERCENT = 1.0
ALLOCATORS_MOST = 1024
_BACKENDS = {"TPU": "tpu", "GPU": "gpu", "CPU_ONLY": "cpu"}
FROM_RATE = "MXU utilization is the program's FLOP rate over the peak: no profiler measured it."
NO_INFEED = "xprof cannot tell how long the job waits for input: it sees no infeed operation."
NO_STEPS = "xprof sees no step markers: no step times."


class ProgramRates(NamedTuple):
    """Rates of the whole program, per core and over the captured time."""

    flops_per_s: float | None
    hbm_bytes_per_s: float | None
    captured_s: float | None
    peaks: Peaks


def profile_of(pages: Mapping[str, Any], capture: Capture) -> TraceProfile:
    """What the pages show. Nothing per core: xprof's pages are of all cores together."""
    overview, backend = pages.get("overview_page"), _backend(pages)
    rates, steps = _rates(pages.get("roofline_model")), steps_of(pages)
    idle = _idle(pages, overview, steps)
    operations = operations_of(pages, rates.peaks, idle)
    mxu, mxu_note = _mxu(overview, rates, operations)
    bandwidth, bandwidth_note = _bandwidth(overview, rates, operations)
    input_bound, input_note = _input_bound(steps, operations, idle)
    profile = TraceProfile(
        capture=capture,
        backend=backend,
        device_type=clean_or_none(property_of(overview, "device_type"), 100),
        captured_s=rates.captured_s,
        duty_cycle_percent=_duty_cycle(overview, idle),
        idle_percent=idle,
        mxu_percent=mxu,
        hbm_bandwidth_percent=bandwidth,
        flops_per_s=rates.flops_per_s if _are_counted(operations) else None,
        peak_flops_per_s=rates.peaks.flops_per_s,
        peak_hbm_bytes_per_s=rates.peaks.hbm_bytes_per_s,
        steps=times(steps),
        input_bound_percent=input_bound,
        shares=_shares(operations, steps, idle),
        cores=(),
        operations=operations.operations if operations else (),
        programs=(),
        memory=_memory(pages.get("memory_profile")),
        sources={},
        notes=_notes(backend, mxu_note, bandwidth_note, input_note, "" if steps else NO_STEPS),
    )
    return profile._replace(sources=dict.fromkeys(_given(profile), XPROF))


def _notes(backend: str | None, *notes: str) -> tuple[str, ...]:
    """The notes that are not empty. A CPU takes no input from a host."""
    return tuple(note for note in notes if note and not (backend == "cpu" and note == NO_INFEED))


def _given(profile: TraceProfile) -> list[str]:
    """Names of the figures that the profile has."""
    not_figures = ("capture", "sources", "notes", "shares")
    members_ = profile._asdict()
    names = [n for n, v in members_.items() if n not in not_figures and v not in (None, ())]
    return names if profile.shares == TimeShares() else [*names, "shares"]


def _backend(pages: Mapping[str, Any]) -> str | None:
    kind = members(pages.get("op_profile"), "deviceType")
    kind = kind or property_of(pages.get("overview_page"), "hardware_type")
    return _BACKENDS.get(kind) if isinstance(kind, str) else None


def _rates(page: Any) -> ProgramRates:
    peaks = Peaks(
        flops_per_s=scaled(property_of(page, "peak_flop_rate"), GIGA),
        hbm_bytes_per_s=scaled(property_of(page, "peak_hbm_bw"), GIB),
    )
    table = with_column(page, "step", "operation")
    for row in table.rows if table else ():
        if row.get("step") == "Total" and row.get("operation") == "Program":
            return ProgramRates(
                flops_per_s=scaled(row.get("measured_flop_rate"), GIGA),
                hbm_bytes_per_s=scaled(row.get("hbm_bw"), GIB),
                captured_s=scaled(row.get("total_time_per_core"), MICRO),
                peaks=peaks,
            )
    return ProgramRates(None, None, None, peaks)


def _idle(pages: Mapping[str, Any], overview: Any, steps: PageSteps | None) -> float | None:
    """The time of the idle operation. Without that page: the overview's figure, which is "0.0%"
    also where nothing was measured, and then the idle time of the steps.
    """
    if "op_profile" in pages:
        return idle_percent(pages)
    printed = measured(property_of(overview, "device_idle_time_percent"))
    return printed if printed is not None else idle_in_steps(steps)


def _duty_cycle(overview: Any, idle: float | None) -> float | None:
    printed = measured(property_of(overview, "device_duty_cycle_percent"))
    if printed is None and idle is not None:
        return 100 - idle
    return printed


def _are_counted(operations: PageOperations | None) -> bool:
    return operations is None or operations.uncounted_percent <= UNCOUNTED_MOST_PERCENT


def _mxu(
    overview: Any, rates: ProgramRates, operations: PageOperations | None
) -> tuple[float | None, str]:
    """MXU utilization: what the profiler measured, else the program's FLOP rate over the peak."""
    printed = measured(property_of(overview, "mxu_utilization_percent"))
    rate = of_peak(rates.flops_per_s, rates.peaks.flops_per_s)
    if printed is not None:
        return printed, _far_from(printed, rate, operations)
    if rate is None:
        return None, ""
    doubt = _doubt(operations) if operations is not None else ""
    return (None, f"{doubt}{NO_MXU}") if doubt else (rate, FROM_RATE)


def _doubt(operations: PageOperations) -> str:
    """Why the FLOPs that xprof counts are not those of the program; empty when they may be."""
    if not _are_counted(operations):
        share = operations.uncounted_percent
        return f"xprof counts no FLOPs of custom calls, which take {share:.0f} % of the busy time"
    if operations.overcounted_percent > OVERCOUNTED_MOST_PERCENT:
        return "custom kernels declare more FLOPs than a core can do, and nothing was measured"
    return ""


def _far_from(printed: float, rate: float | None, operations: PageOperations | None) -> str:
    """A note on a measured utilization that is not the rate of the FLOPs, with a likely reason."""
    if rate is None or abs(rate - printed) <= 1:
        return ""
    figures = f"{printed:.1f} %, but counts FLOPs for {rate:.1f} % of the peak"
    start = f"xprof measured an MXU utilization of {figures}"
    if operations is not None and _doubt(operations):
        return f"{start}: kernels declare their FLOPs themselves."
    return (
        f"{start}. It may have measured the whole capture, also before the first operation and"
        " after the last; the other figures are of the time between them."
    )


def _bandwidth(
    overview: Any, rates: ProgramRates, operations: PageOperations | None
) -> tuple[float | None, str]:
    """HBM bandwidth: of the bytes that the operations move, else the overview's figure."""
    rate = of_peak(rates.hbm_bytes_per_s, rates.peaks.hbm_bytes_per_s)
    if rate is not None and _are_counted(operations):
        return rate, ""
    for name in ("hbm_utilization_percent", "memory_bw_utilization_relative_to_hw_limit"):
        printed = measured(property_of(overview, name))
        if printed is not None:
            return printed, ""
    if rate is None:
        return None, ""
    return None, f"xprof does not count the bytes that custom calls move{NO_BANDWIDTH}"


def _input_bound(
    steps: PageSteps | None, operations: PageOperations | None, idle: float | None
) -> tuple[float | None, str]:
    """Share of the step time that waits for input. xprof sees infeed operations only: without one,
    its 0 % is right where the device is hardly ever idle, and unknown otherwise.
    """
    share = input_bound_percent(steps)
    if share is None or share > 0 or (operations is not None and operations.has_infeed):
        return share, ""
    if idle is not None and idle < HARDLY_IDLE_PERCENT:
        return 0.0, ""
    return None, NO_INFEED


def _shares(
    operations: PageOperations | None, steps: PageSteps | None, idle: float | None
) -> TimeShares:
    shares = operations.shares if operations else TimeShares(idle_percent=idle)
    return shares._replace(compile_percent=compile_percent(steps))


def _memory(page: Any) -> tuple[MemoryPeak, ...]:
    """The peak of each device's memory; memory of the host is left out."""
    allocators = members(page, "memoryProfilePerAllocator")
    peaks = []
    for name in list(allocators)[:ALLOCATORS_MOST] if isinstance(allocators, dict) else ():
        index = _device_of(str(name))
        summary = members(allocators, name, "profileSummary")
        peak = measured(members(summary, "peakStats", "peakBytesInUse"))
        if index is not None and peak is not None:
            capacity = count(members(summary, "memoryCapacity")) or None
            peaks.append(
                MemoryPeak(local_index=index, peak_bytes=int(peak), capacity_bytes=capacity)
            )
    return tuple(sorted(peaks))


def _device_of(allocator: str) -> int | None:
    """The local index in `3` or `GPU_0_bfc`; None for `xla_gpu_host_bfc`."""
    if "host" in allocator:
        return None
    parts = [p for p in allocator[:100].split("_") if p.isascii() and p.isdigit() and len(p) < 6]
    return int(parts[0]) if parts else None
