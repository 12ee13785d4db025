"""Sums over the devices of a trace: their figures, operations, programs and shares of time."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tpusmi.trace.core_trace import PS_PER_S, CoreTrace, OperationRow
from tpusmi.trace.figures import CoreFigures, Operation, ProgramRuns, TimeShares
from tpusmi.trace.operation_facts import (
    COLLECTIVES,
    COMPUTE,
    HOST,
    INFEED,
    OUTFEED,
    OperationFacts,
)
from tpusmi.trace.step_times import steps_of_core

PERIOD_RUNS_LEAST = 3


class Work(NamedTuple):
    """What operations did; None when the trace does not say."""

    flops: float | None
    hbm_bytes: float | None


def work_of(operations: Sequence[OperationRow]) -> Work:
    """The sum over all runs."""
    flops = [o.facts.flops * o.runs for o in operations if o.facts.flops is not None]
    sizes = [o.facts.hbm_bytes * o.runs for o in operations if o.facts.hbm_bytes is not None]
    return Work(sum(flops) if flops else None, sum(sizes) if sizes else None)


def core_figures(core: CoreTrace) -> CoreFigures:
    """The figures of one device."""
    captured_s = core.captured_ps / PS_PER_S
    work = work_of(core.operations)
    flops_per_s = ratio(work.flops, captured_s)
    return CoreFigures(
        plane=core.plane,
        local_index=core.local_index,
        id=core.id,
        captured_s=captured_s,
        busy_s=core.busy_ps / PS_PER_S,
        idle_s=(core.captured_ps - core.busy_ps) / PS_PER_S,
        duty_cycle_percent=percent(core.duty_ps, core.duty_span_ps),
        mxu_percent=percent(flops_per_s, core.peak_flops_per_s),
        hbm_bandwidth_percent=percent(ratio(work.hbm_bytes, captured_s), core.peak_hbm_bytes_per_s),
        flops_per_s=flops_per_s,
        peak_flops_per_s=core.peak_flops_per_s,
        peak_hbm_bytes_per_s=core.peak_hbm_bytes_per_s,
        steps=steps_of_core(core),
        collectives_s=_in_collectives(core),
    )


def _in_collectives(core: CoreTrace) -> float | None:
    """Seconds in collectives; None without operations."""
    times = [o.self_ps for o in core.operations if o.facts.share == COLLECTIVES]
    return sum(times) / PS_PER_S if core.operations else None


def ratio(part: float | None, whole: float | None) -> float | None:
    """None where one of them is not known, or the whole is 0."""
    return None if part is None or not whole else part / whole


def percent(part: float | None, whole: float | None) -> float | None:
    """The same, of a hundred."""
    share = ratio(part, whole)
    return None if share is None else 100 * share


class _Sum:
    """One operation, summed over devices."""

    def __init__(self, facts: OperationFacts) -> None:
        self.facts = facts
        self.runs = self.self_ps = 0


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
            for facts, runs, self_ps in core.operations:
                key = facts._replace(flops=None, hbm_bytes=None, source=None)
                one = sums.setdefault(key, _Sum(facts))
                one.runs += runs
                one.self_ps += self_ps
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
            ratio(amount * one.runs, self_s) if has_rate and amount is not None else None
            for amount in (facts.flops, facts.hbm_bytes)
        ]
        return Operation(
            name=facts.name,
            category=facts.category,
            program=facts.program or programs.get(facts.program_id),
            framework_name=facts.framework_name,
            source=facts.source,
            runs=one.runs,
            self_s=self_s,
            self_percent=percent(one.self_ps, self.captured_ps) or 0.0,
            flops_per_s=rates[0],
            mxu_percent=_most(percent(rates[0], self.peak_flops_per_s)),
            hbm_bytes_per_s=rates[1],
            hbm_bandwidth_percent=_most(percent(rates[1], self.peak_hbm_bytes_per_s)),
            bound_by=None,
        )

    def programs(self) -> tuple[ProgramRuns, ...]:
        """All programs, busiest first."""
        rows: dict[tuple[str, int | None], list[tuple[int, int, tuple[int, ...]]]] = {}
        for core in self._cores:
            for p in core.programs:
                rows.setdefault((p.name, p.id), []).append((p.runs, p.total_ps, p.starts))
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
        return work_of([operation for core in self._cores for operation in core.operations])

    def shares(self) -> TimeShares:
        """Where the time went. Where streams overlap, they share the time between them."""
        times = dict.fromkeys((COMPUTE, COLLECTIVES, INFEED, OUTFEED, HOST), 0)
        for one in self._sums:
            times[one.facts.share] += one.self_ps
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

    def custom_percent(self) -> float:
        """Share of the busy time in kernels whose FLOPs are not counted."""
        custom = sum(
            one.self_ps for one in self._sums if one.facts.is_custom and not one.facts.flops
        )
        return percent(custom, self.busy_ps) or 0.0


def _most(value: float | None) -> float | None:
    return None if value is None else min(value, 100.0)


def _period(starts: Sequence[int]) -> float | None:
    if len(starts) < PERIOD_RUNS_LEAST:
        return None
    return statistics.median(b - a for a, b in pairwise(starts)) / PS_PER_S
