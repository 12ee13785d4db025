"""The trace of a capture on a simulated host, as the profiler of a real TPU would write it: the
steps and operations of each device, and what the host did.

Its numbers agree with those that the host shows: FLOPs, bytes, busy time and steps all follow from
the workload. Names and stats are those in traces of real hosts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tpusmi.chips import peak_flops_per_device
from tpusmi.simulate.trace_bytes import TracedPlane, TraceWriter, Unsigned, field
from tpusmi.simulate.trace_capture import SimulatedCapture
from tpusmi.simulate.trace_of_device import DevicePlane, about_device
from tpusmi.simulate.trace_of_host import host_plane
from tpusmi.simulate.trace_programs import SimulatedProgram
from tpusmi.simulate.trace_timeline import TracedRun, runs
from tpusmi.trace.figures import SIMULATED_HOST

LAYERS, EVENTS_MOST = 24, 40_000
"""A trace of many devices and steps has fewer layers, so that it is written in a second or two."""
EVENTS_OF_LAYER = 16
WARNING = "tpusmi's simulator made this trace: no real TPU was measured"
"""In the trace itself, where xprof shows it as well."""


def trace(capture: SimulatedCapture, memory_limit_bytes: int) -> bytes:
    """The bytes of the trace."""
    job = capture.running.workload
    seen = runs(job, capture.begin_s, capture.end_s)
    writer = TraceWriter(hostnames=[SIMULATED_HOST])
    writer.problem(WARNING)
    most = max(1, EVENTS_MOST // (EVENTS_OF_LAYER * max(1, len(seen) * len(capture.devices))))
    flops = 0.0
    for ordinal, device in enumerate(capture.devices):
        plane = writer.plane(f"/device:TPU:{ordinal}")
        plane.stats(about_device(capture.generation, ordinal, device))
        written = DevicePlane(capture, device, plane, min(LAYERS, most))
        written.write(seen)
        flops += written.flops
    programs = {run.program.id: run.program for run in seen}
    _add_programs(writer.plane("/host:metadata"), [*programs.values()])
    host = writer.plane("/host:CPU")
    host.stats({"matrix_unit_utilization_percent": _mxu_percent(capture, seen, flops)})
    host_plane(host, capture, seen, memory_limit_bytes)
    stopped_ns = capture.began_at_ns + round(capture.length_s * 1e9)
    writer.plane("Task Environment").stats(
        {
            "profile_start_time": Unsigned(capture.began_at_ns),
            "profile_stop_time": Unsigned(stopped_ns),
        }
    )
    return writer.message


def _mxu_percent(capture: SimulatedCapture, seen: Sequence[TracedRun], flops: float) -> float:
    """What the counters of the matrix units say: the mean of the devices, over the time from the
    first operation to the last, as all other figures are.
    """
    if not seen:
        return 0.0
    peak = peak_flops_per_device(capture.generation) or math.inf
    begin_s = max(capture.begin_s, seen[0].begin_s)
    length_s = min(capture.end_s, max(run.end_s for run in seen)) - begin_s
    return 100 * flops / (peak * length_s * len(capture.devices)) if length_s > 0 else 0.0


def _add_programs(plane: TracedPlane, programs: list[SimulatedProgram]) -> None:
    """What the profiler keeps of each program: here its names alone."""
    for program in programs:
        plane.new_kind(f"{program.name}({program.id})", {"Hlo Proto": _hlo(program)})


def _hlo(program: SimulatedProgram) -> bytes:
    """An HloProto with the names, and a computation that does nothing."""
    token = field(2, 17)
    nothing = field(1, b"after-all.1") + field(2, b"after-all") + field(3, token) + field(35, 1)
    shape, name = field(4, field(2, token)), program.module.encode()
    computation = field(1, name) + field(2, nothing) + shape + field(5, 1) + field(6, 1)
    names = field(1, program.name.encode()) + field(2, name)
    return field(1, names + field(3, computation) + shape + field(5, 1) + field(6, 1))
