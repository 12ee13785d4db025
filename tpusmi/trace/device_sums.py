"""Sums over the devices of a trace: their figures, operations, programs and shares of time."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from tpusmi.trace.core_trace import PS_PER_S, CoreTrace, OperationRow
from tpusmi.trace.counted_work import Work, work_of
from tpusmi.trace.figures import CoreFigures, Operation, ProgramRuns, TimeShares
from tpusmi.trace.operation_facts import (
    COLLECTIVES,
    COMPUTE,
    HOST,
    INFEED,
    OUTFEED,
    OperationFacts,
)
from tpusmi.trace.rates import believed, of_peak, percent, ratio
from tpusmi.trace.step_times import steps_of_core

PERIOD_RUNS_LEAST = 3


def core_figures(core: CoreTrace) -> CoreFigures:
    """The figures of one device."""
    captured_s = core.captured_ps / PS_PER_S
    work = work_of([core])
    flops_per_s = believed(ratio(work.flops, captured_s), core.peak_flops_per_s)
    return CoreFigures(
        plane=core.plane,
        local_index=core.local_index,
        id=core.id,
        captured_s=captured_s,
        busy_s=core.busy_ps / PS_PER_S,
        idle_s=(core.captured_ps - core.busy_ps) / PS_PER_S,
        duty_cycle_percent=percent(core.duty_ps, core.duty_span_ps),
        mxu_percent=of_peak(flops_per_s, core.peak_flops_per_s),
        hbm_bandwidth_percent=of_peak(ratio(work.hbm_bytes, captured_s), core.peak_hbm_bytes_per_s),
        flops_per_s=flops_per_s,
        peak_flops_per_s=core.peak_flops_per_s,
        peak_hbm_bytes_per_s=core.peak_hbm_bytes_per_s,
        steps=steps_of_core(core),
        collectives_s=_in_collectives(core),
    )


def _in_collectives(core: CoreTrace) -> float | None:
    """Seconds in collectives; None without operations."""
    times = [o.self_ps for o in core.operations if o.facts.share == COLLECTIVES]
    return _overlap(core) * sum(times) / PS_PER_S if core.operations else None


def _overlap(core: CoreTrace) -> float:
    """What a moment of an operation counts, since operations of several streams, or threads, share
    the moments in which they run side by side.
    """
    total_ps = sum(operation.self_ps for operation in core.operations)
    return min(1.0, core.busy_ps / total_ps) if total_ps else 1.0


class _Sum:
    """One operation, summed over devices."""

    def __init__(self, facts: OperationFacts) -> None:
        self.facts = facts
        self.runs = self.self_ps = 0
        self.shared_ps = 0.0
        """Where streams overlap, each moment counts once for all of them."""
        self.flops: float | None = None
        self.hbm_bytes: float | None = None

    def add(self, row: OperationRow, overlap: float) -> None:
        """Add its runs on one device, where a moment of it counts that much."""
        self.runs += row.runs
        self.self_ps += row.self_ps
        self.shared_ps += overlap * row.self_ps
        self.flops = _plus(self.flops, row.facts.flops, row.runs)
        self.hbm_bytes = _plus(self.hbm_bytes, row.facts.hbm_bytes, row.runs)


def _plus(amount: float | None, of_run: float | None, runs: int) -> float | None:
    return amount if of_run is None else (amount or 0.0) + of_run * runs


class DeviceSums:
    """Sums over all devices of one trace."""

    def __init__(self, cores: Sequence[CoreTrace]) -> None:
        self._cores = cores
        self.captured_ps = sum(core.captured_ps for core in cores)
        self.busy_ps = sum(core.busy_ps for core in cores)
        self.peak_flops_per_s = max((c.peak_flops_per_s or 0 for c in cores), default=0) or None
        self.peak_hbm_bytes_per_s = (
            max((c.peak_hbm_bytes_per_s or 0 for c in cores), default=0) or None
        )
        self._sums = self._by_operation()

    def _by_operation(self) -> list[_Sum]:
        sums: dict[OperationFacts, _Sum] = {}
        for core in self._cores:
            overlap = _overlap(core)
            for row in core.operations:
                key = row.facts._replace(flops=None, hbm_bytes=None, source=None)
                sums.setdefault(key, _Sum(row.facts)).add(row, overlap)
        return sorted(sums.values(), key=lambda one: -one.self_ps)

    def operations(self) -> tuple[Operation, ...]:
        """All operations, most self time first."""
        rows = [program for core in self._cores for program in core.programs]
        names: dict[int | None, str] = {p.id: p.name for p in rows if p.id is not None}
        return tuple(self._operation(one, names) for one in self._sums)

    def _operation(self, one: _Sum, programs: dict[int | None, str]) -> Operation:
        facts, self_s = one.facts, one.self_ps / PS_PER_S
        # What starts a copy has ended long before its bytes have moved.
        has_rate = not (facts.category or "").endswith("-start")
        rates = [
            ratio(amount, self_s) if has_rate else None for amount in (one.flops, one.hbm_bytes)
        ]
        return Operation(
            name=facts.name,
            category=facts.category,
            program=facts.program or programs.get(facts.program_id),
            framework_name=facts.framework_name,
            source=facts.source,
            runs=one.runs,
            self_s=self_s,
            self_percent=percent(one.shared_ps, self.captured_ps) or 0.0,
            flops_per_s=rates[0],
            mxu_percent=of_peak(rates[0], self.peak_flops_per_s),
            hbm_bytes_per_s=believed(rates[1], self.peak_hbm_bytes_per_s),
            hbm_bandwidth_percent=of_peak(rates[1], self.peak_hbm_bytes_per_s),
            bound_by=None,
        )

    def programs(self) -> tuple[ProgramRuns, ...]:
        """All programs, busiest first."""
        rows: dict[tuple[str, int | None], list[tuple[int, float, tuple[int, ...]]]] = {}
        for core in self._cores:
            whole_ps = sum(p.total_ps for p in core.programs)
            overlap = min(_overlap(core), ratio(core.captured_ps, whole_ps) or 1.0)
            for p in core.programs:
                rows.setdefault((p.name, p.id), []).append((p.runs, overlap * p.total_ps, p.starts))
        programs = [
            ProgramRuns(
                name=name,
                runs=max(runs for runs, _, _ in of_cores),
                mean_s=total_ps / sum(runs for runs, _, _ in of_cores) / PS_PER_S,
                period_s=_period(max(of_cores)[2]),
                busy_percent=percent(total_ps, self.captured_ps) or 0.0,
            )
            for (name, _), of_cores in rows.items()
            for total_ps in (sum(total for _, total, _ in of_cores),)
        ]
        return tuple(sorted(programs, key=lambda program: -program.busy_percent))

    def work(self) -> Work:
        """What all devices did together."""
        return work_of(self._cores)

    def shares(self) -> TimeShares:
        """Where the time went. Where streams overlap, they share the time between them."""
        times = dict.fromkeys((COMPUTE, COLLECTIVES, INFEED, OUTFEED, HOST), 0.0)
        for one in self._sums:
            times[one.facts.share] += one.shared_ps
        total = sum(times.values())
        scale = self.busy_ps / total if total else 0.0
        of_all = {share: percent(scale * time, self.captured_ps) for share, time in times.items()}
        return TimeShares(
            compute_percent=of_all[COMPUTE],
            collectives_percent=of_all[COLLECTIVES],
            infeed_percent=of_all[INFEED],
            outfeed_percent=of_all[OUTFEED],
            host_percent=of_all[HOST],
            idle_percent=percent(self.captured_ps - self.busy_ps, self.captured_ps),
        )


def _period(starts: Sequence[int]) -> float | None:
    if len(starts) < PERIOD_RUNS_LEAST:
        return None
    return statistics.median(b - a for a, b in pairwise(starts)) / PS_PER_S
