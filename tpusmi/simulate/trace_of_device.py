"""One device in the trace of a simulated capture: its steps, its programs and their operations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tpusmi.chips import Generation, peak_flops_per_device, peak_hbm_bytes_per_s_per_device
from tpusmi.simulate.trace_bytes import (
    Reference,
    Stats,
    TracedLine,
    TracedPlane,
    Unsigned,
    field,
)
from tpusmi.simulate.trace_capture import LAUNCH, SimulatedCapture, context_of
from tpusmi.simulate.trace_programs import (
    ALL_REDUCE,
    WHILE,
    Loop,
    SimulatedOperation,
    SimulatedProgram,
    source,
)
from tpusmi.simulate.trace_timeline import (
    BARRIER_S,
    DeviceShares,
    OperationRun,
    TracedRun,
    device_shares,
    events,
)

TRACE_KIND = {
    "v2": "TPU v2", "v3": "TPU v3", "v4": "TPU v4", "v5e": "TPU v5 Lite", "v5p": "TPU v5",
    "v6e": "TPU v6 Lite", "7x": "TPU7x",
}  # fmt: skip
"""How a trace calls the device of each generation."""
MEGACORE = ("v4", "v5p")
TRAFFIC_MOST = 0.95
"""An operation uses no more of the memory bandwidth while it runs."""
ALMOST_ALL = 1 - 1e-6
"""From this part on, an operation counts as whole."""
READ, WRITTEN, IN_HBM = 1, 2, 1


def about_device(generation: Generation, ordinal: int, device: dict[str, Any]) -> Stats:
    """The stats of a device's plane."""
    details = (ordinal, device["core"], device["chip"], device["id"] // generation.devices_per_chip)
    packed = b"".join(
        field(number, value) for number, value in enumerate((*details, device["id"]), 2)
    )
    peak = peak_flops_per_device(generation) or 0.0
    return {
        "core_details": packed,
        "device_type_string": TRACE_KIND[generation.name],
        "peak_teraflops_per_second": peak / 1e12,
        "peak_hbm_bw_gigabytes_per_second": peak_hbm_bytes_per_s_per_device(generation) / 1e9,
        "peak_cmem_rd_bw_gigabytes_per_second": 0.0,
        "peak_cmem_wr_bw_gigabytes_per_second": 0.0,
        "has_megacore": int(generation.name in MEGACORE),
        "has_merged_vmem": 1,
    }


class DevicePlane:
    """Writes the lines of one device."""

    def __init__(
        self, capture: SimulatedCapture, device: dict[str, Any], plane: TracedPlane, layers: int
    ) -> None:
        self._capture = capture
        self._device = device
        self._plane = plane
        self._layers = layers
        self._steps = plane.line("Steps")
        self._modules = plane.line("XLA Modules")
        self._operations = plane.line("XLA Ops")
        self._async = plane.line("Async XLA Ops")
        self._messages = plane.line("XLA TraceMe")
        self._kinds: dict[tuple[str, str, float], int] = {}
        self._flops: dict[int, int] = {}
        """FLOPs of the operations of each kind."""
        self.flops = 0.0
        """Done during the capture."""

    def write(self, runs: list[TracedRun]) -> None:
        """Write what the device did in these runs."""
        for number, run in enumerate(runs):
            shares = device_shares(self._capture.running, run, self._device["chip"])
            done = list(events(run, shares, self._layers))
            self._write_run(run, number, done[-1].end_s)
            costs = _costs(self._capture, self._device["id"], run, shares)
            for event in done:
                seen = self._seen_ratio(event)
                kind = self._kind(run, event.what, costs, seen)
                self._add(self._operations, kind, event, self._own_stats(event, number))
                self.flops += self._flops[kind] if seen else 0
            self._write_beside(run, done)

    def _write_run(self, run: TracedRun, number: int, end_s: float) -> None:
        module = f"{run.program.name}({run.program.id})"
        context = {"_ct": LAUNCH, "_c": context_of(number, self._device["index"])}
        stats = {
            "run_id": Unsigned(number + 1),
            "replica_id": 0,
            "queue_id": Unsigned(0),
            **context,
        }
        if (place := self._capture.clipped_ps(run.begin_s, end_s)) is not None:
            self._modules.event(module, *place, stats)
        place = self._capture.clipped_ps(run.begin_s, run.end_s)
        is_begun = run.begin_s >= self._capture.begin_s  # a profiler marks a step at its begin
        if run.number is not None and is_begun and place is not None:
            self._steps.event(str(run.number), *place)

    def _write_beside(self, run: TracedRun, done: list[OperationRun]) -> None:
        """What runs beside the operations, and a message of the runtime."""
        first = done[0]
        middle_s = (run.begin_s + done[-1].end_s) / 2
        self._add(
            self._async,
            self._plane.kind("%copy-start.1"),
            OperationRun(first.what, run.begin_s, middle_s),
        )
        wait = OperationRun(first.what, run.begin_s, run.begin_s + BARRIER_S)
        self._add(self._messages, self._plane.kind("barrier-cores"), wait)

    def _add(
        self, line: TracedLine, kind: int, event: OperationRun, stats: Stats | None = None
    ) -> None:
        place = self._capture.clipped_ps(event.begin_s, event.end_s)
        if place is None:
            return
        line.event(kind, *place, stats)

    def _own_stats(self, event: OperationRun, number: int) -> Stats | None:
        if getattr(event.what, "category", "") != ALL_REDUCE:
            return None
        return {"all_reduce_unique_id": Unsigned(number + 1)}

    def _seen_ratio(self, event: OperationRun) -> float:
        """Which part of an event the capture sees, 0 to 1."""
        seen_s = self._capture.seen_s(event.begin_s, event.end_s)
        ratio = seen_s / (event.end_s - event.begin_s) if seen_s else 0.0
        return 1.0 if ratio > ALMOST_ALL else ratio

    def _kind(
        self, run: TracedRun, what: SimulatedOperation | Loop, costs: _Costs, seen: float
    ) -> int:
        """The kind of an operation; one of its own where an end of the capture cuts it off: it did
        only a part of its work there.
        """
        key = (run.activity, what.name, seen or 1.0)
        if key not in self._kinds:
            self._kinds[key] = self._new_kind(run.program, what, costs, seen or 1.0)
        return self._kinds[key]

    def _new_kind(
        self, program: SimulatedProgram, what: SimulatedOperation | Loop, costs: _Costs, seen: float
    ) -> int:
        stats: dict[str, Any] = {
            "hlo_category": WHILE,
            "program_id": Unsigned(program.id),
            "symbol_id": Unsigned(len(self._kinds) + 1),
        }
        text, flops = f"%{what.name} = (s32[], bf16[8,4096,4096]) while(%tuple.1)", 0
        if isinstance(what, SimulatedOperation):
            runs_here = self._layers if _is_in_loop(program, what) else 1
            flops, moved = (round(cost * seen / runs_here) for cost in costs.of(what))
            text = what.hlo
            stats |= _measured(what, flops, moved)
        stats["tf_op"] = f"jit({program.function})/jit(main)/{what.path}:"
        kind = self._plane.new_kind(text, stats, display_name=what.name)
        self._flops[kind] = flops
        return kind


def _measured(operation: SimulatedOperation, flops: int, moved: int) -> Stats:
    """What the compiler knows of an operation."""
    return {
        "hlo_category": operation.category,
        "flops": flops,
        "model_flops": flops,
        "bytes_accessed": moved,
        "raw_bytes_accessed": moved,
        "memory_access_breakdown": _breakdown(moved),
        "source": Reference(source(operation.line)),
        "shape_with_layout": "bf16[8,4096,4096]{2,1,0:T(8,128)(2,1)}",
    }


def _is_in_loop(program: SimulatedProgram, operation: SimulatedOperation) -> bool:
    return any(isinstance(part, Loop) and operation in part.body for part in program.parts)


def _breakdown(moved: int) -> bytes:
    """How many bytes of HBM are read and written."""
    return b"".join(
        field(1, field(1, how) + field(2, IN_HBM) + field(3, size))
        for how, size in ((READ, moved - moved // 3), (WRITTEN, moved // 3))
    )


class _Costs(NamedTuple):
    """FLOPs and bytes of a run, to be split among its operations."""

    flops: float
    moved: float
    """In bytes."""
    moved_most: float
    """In bytes, if all of the run moved data as fast as the memory allows."""
    shares: DeviceShares
    operations: tuple[SimulatedOperation, ...]

    def of(self, operation: SimulatedOperation) -> tuple[float, float]:
        """The FLOPs and bytes of an operation in the whole run, all layers together."""
        length = self._length(operation)
        flops = sum(self._length(o) * o.intensity for o in self.operations)
        traffic = sum(self._length(o) * o.traffic for o in self.operations)
        moved = self.moved * length * operation.traffic / traffic if traffic else 0.0
        return (
            self.flops * length * operation.intensity / flops if flops else 0.0,
            min(moved, TRAFFIC_MOST * self.moved_most * length),
        )

    def _length(self, operation: SimulatedOperation) -> float:
        """Which share of the run it takes."""
        alike = [o.share for o in self.operations if o.is_collective == operation.is_collective]
        of = self.shares.collects if operation.is_collective else self.shares.computes
        return of * operation.share / sum(alike)


def _costs(
    capture: SimulatedCapture, device_id: int, run: TracedRun, shares: DeviceShares
) -> _Costs:
    """As many FLOPs and bytes as the host's columns show at that moment, noise included."""
    job, at_s = capture.running.workload, capture.moment_s(run)
    flops = moved = moved_most = 0.0
    if run.end_s < math.inf:  # else it hangs, and computes nothing
        length_s = run.length_s if run.number is None else 1 / job.steps_per_s(at_s)
        moved_most = peak_hbm_bytes_per_s_per_device(capture.generation) * length_s
        flops_most = (peak_flops_per_device(capture.generation) or 0.0) * length_s
        flops = job.mxu(at_s, device_id) * flops_most
        moved = job.bandwidth(at_s, device_id) * moved_most
    return _Costs(
        flops=flops,
        moved=moved,
        moved_most=moved_most,
        shares=shares,
        operations=run.program.operations,
    )
