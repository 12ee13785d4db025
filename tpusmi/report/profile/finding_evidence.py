"""The figures that findings are judged by, each None where the trace does not say. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median, median_high
from typing import NamedTuple

from tpusmi.report import words
from tpusmi.report.profile.derived_figures import (
    busy_percent,
    collectives_percent,
    core_name,
    memory_percent,
    step_s,
    whole_steps,
)
from tpusmi.report.profile.operation_kinds import (
    CALLBACKS,
    LAYOUT,
    MATMULS,
    is_collective,
    is_of,
    is_wait,
    named,
)
from tpusmi.trace.figures import CoreFigures, Operation, TraceProfile

SMALL_PROGRAM_S = 1e-3
MANY_PER_S = 200.0
"""Short programs, one after the other, at this rate per core: starting them takes the time."""
STEPS_LEAST = 5
"""So few steps have no percentiles that say anything."""


class ProfileEvidence(NamedTuple):
    """Percentages are of the captured time of all cores, where nothing else is given."""

    input_percent: float | None = None
    """A share of the step time, where that is known, else of the captured time."""
    input_of: str = "step time"
    idle_percent: float | None = None
    """Without what already counts as waiting for input, or as starting small programs."""
    idle_small_percent: float | None = None
    small_per_s: float | None = None
    small_mean: str = ""
    compile_percent: float | None = None
    collectives_percent: float | None = None
    collectives: str = ""
    host_percent: float | None = None
    copies_percent: float | None = None
    """Waiting for copies, where the trace does not say whether they are to the host."""
    copies: str = ""
    outfeed_percent: float | None = None
    callbacks_percent: float | None = None
    callbacks: str = ""
    slow_core_percent: float | None = None
    """How much longer the steps of the slowest core are than those of the median core."""
    slow_core: str = ""
    awaited_core_points: float | None = None
    """How much less of its time the core is in collectives, which has least of it."""
    awaited_core: str = ""
    busy_core_points: float | None = None
    """How much more of its time the busiest core is busy than the median one."""
    busy_core: str = ""
    unused_core_points: float | None = None
    unused_core: str = ""
    layout_percent: float | None = None
    layout: str = ""
    hbm_bound_percent: float | None = None
    hbm_bound: str = ""
    low_mxu_loss_percent: float | None = None
    """Computing time times the unused part of the MXU meanwhile, where computing is most of it."""
    matmul_loss_percent: float | None = None
    """The same where the matrix multiplications themselves are slow."""
    mxu_percent: float | None = None
    compute_percent: float | None = None
    matmul_mxu_percent: float | None = None
    matmuls: str = ""
    top_percent: float | None = None
    top: str = ""
    overclaimed_percent: float | None = None
    """FLOP/s over the peak of an operation that claims more than a device can do."""
    overclaimed: str = ""
    uneven_ratio: float | None = None
    """p95 of the step times over p50."""
    p50: str = ""
    p95: str = ""
    memory_percent: float | None = None
    memory: str = ""
    slowed_percent: float | None = None
    """How much slower the job was during the capture."""
    before: str = ""
    during: str = ""
    paused_s: float | None = None
    stepless_s: float | None = None
    """How long the capture was, where no whole step is inside."""


def evidence(p: TraceProfile) -> ProfileEvidence:
    """All of it, of one profile."""
    fields: dict[str, object] = {}
    for part in (_waiting, _idle, _operations, _mxu, _cores, _steps, _memory, _capture):
        fields.update(part(p))
    return ProfileEvidence(**fields)  # type: ignore[arg-type]


Fields = dict[str, object]


def _sum(
    p: TraceProfile, is_meant: Callable[[Operation], bool]
) -> tuple[float | None, list[Operation]]:
    """The time of some operations together, and which they are; None without operations."""
    chosen = [o for o in p.operations if is_meant(o)]
    return (sum(o.self_percent for o in chosen) if p.operations else None), chosen


def _waiting(p: TraceProfile) -> Fields:
    copies, which = _sum(p, lambda o: is_of(o.category, ("copy-done", "copy-start")))
    host = p.shares.host_percent
    callbacks, calling = _sum(
        p,
        lambda o: any(c in f"{o.name} {o.framework_name or ''}".lower() for c in CALLBACKS),
    )
    _, collectives = _sum(p, is_collective)
    bound = p.input_bound_percent
    return {
        "input_percent": p.shares.infeed_percent if bound is None else bound,
        "input_of": "captured time" if bound is None else "step time",
        "compile_percent": p.shares.compile_percent,
        "collectives_percent": p.shares.collectives_percent,
        "collectives": named(collectives),
        "host_percent": host,
        "copies_percent": copies if host is None else None,
        "copies": named(which),
        "outfeed_percent": p.shares.outfeed_percent,
        "callbacks_percent": callbacks,
        "callbacks": named(calling),
    }


def _idle(p: TraceProfile) -> Fields:
    idle = p.idle_percent if p.idle_percent is not None else p.shares.idle_percent
    if idle is None:
        return {}
    # What waits for input is idle as well, except for the time of infeed operations.
    beyond_infeed = (p.input_bound_percent or 0.0) - (p.shares.infeed_percent or 0.0)
    rest = max(0.0, idle - max(0.0, beyond_infeed))
    small = [r for r in p.programs if r.mean_s < SMALL_PROGRAM_S]
    runs = sum(r.runs for r in small)
    if not runs or not p.captured_s or runs / p.captured_s < MANY_PER_S:
        return {"idle_percent": rest}
    return {
        "idle_small_percent": rest,
        "small_per_s": runs / p.captured_s,
        "small_mean": words.duration(sum(r.runs * r.mean_s for r in small) / runs),
    }


def _operations(p: TraceProfile) -> Fields:
    layout, moving = _sum(p, lambda o: is_of(o.category, LAYOUT))
    bound, slow = _sum(
        p,
        lambda o: (
            (o.bound_by or "").upper() == "HBM" and not (is_wait(o) or is_of(o.category, LAYOUT))
        ),
    )
    own = [o for o in p.operations if not is_wait(o)]
    most = max(own, key=lambda o: o.self_percent, default=None)
    claims = max(p.operations, key=lambda o: _claimed_percent(p, o), default=None)
    judged = any(o.bound_by for o in p.operations)
    return {
        "layout_percent": layout,
        "layout": named(moving),
        "hbm_bound_percent": bound if judged else None,
        "hbm_bound": named(slow),
        "top_percent": most and most.self_percent,
        "top": named([most]) if most else "",
        "overclaimed_percent": claims and _claimed_percent(p, claims),
        "overclaimed": named([claims]) if claims else "",
    }


def _claimed_percent(p: TraceProfile, o: Operation) -> float:
    """What of the peak the FLOP rate is that an operation claims; 0 where it claims none."""
    peak = p.peak_flops_per_s
    rate = 100 * o.flops_per_s / peak if o.flops_per_s and peak else 0.0
    return max(rate, o.mxu_percent or 0.0)


def _mxu(p: TraceProfile) -> Fields:
    busy = None if p.idle_percent is None else 100.0 - p.idle_percent
    compute = p.shares.compute_percent
    compute = busy if compute is None else compute
    if p.mxu_percent is None or not compute:
        return {}
    matmuls = [o for o in p.operations if is_of(o.category, MATMULS) and o.mxu_percent is not None]
    share = sum(o.self_percent for o in matmuls)
    speed = sum(o.self_percent * (o.mxu_percent or 0.0) for o in matmuls) / share if share else None
    meanwhile = min(100.0, 100.0 * p.mxu_percent / compute)
    loss = compute * (1 - meanwhile / 100) / 2 if meanwhile < LOW_MXU_PERCENT else None
    is_slow = speed is not None and speed < SLOW_MATMUL_PERCENT
    return {
        "low_mxu_loss_percent": None if is_slow else loss,
        "matmul_loss_percent": loss if is_slow else None,
        "mxu_percent": p.mxu_percent,
        "compute_percent": compute,
        "matmul_mxu_percent": speed,
        "matmuls": named(matmuls),
    }


LOW_MXU_PERCENT, SLOW_MATMUL_PERCENT = 30.0, 40.0
"""Percent of the peak: while computing, and within the matrix multiplications."""


def _cores(p: TraceProfile) -> Fields:
    return {**_slow_core(p.cores), **_uneven_cores(p.cores), **_awaited_core(p.cores)}


def _slow_core(cores: Sequence[CoreFigures]) -> Fields:
    timed = [(step, c) for c in cores if (step := step_s(c)) is not None]
    if len(timed) < 2:
        return {}
    slowest, core = max(timed, key=lambda pair: pair[0])
    others = median(s for s, c in timed if c is not core)
    return {"slow_core_percent": 100 * (slowest / others - 1), "slow_core": core_name(core)}


def _uneven_cores(cores: Sequence[CoreFigures]) -> Fields:
    busy = [(share, c) for c in cores if (share := busy_percent(c)) is not None]
    if len(busy) < 2:
        return {}
    (least, idlest), *_, (most, busiest) = sorted(busy, key=lambda pair: pair[0])
    # The higher one of an even number: with two cores, one has less to do, and none has more.
    usual = median_high(share for share, _ in busy)
    return {
        "busy_core_points": most - usual,
        "busy_core": core_name(busiest),
        "unused_core_points": usual - least,
        "unused_core": core_name(idlest),
    }


def _awaited_core(cores: Sequence[CoreFigures]) -> Fields:
    """All cores leave an exchange together: the one that was least in it came last."""
    shares = [(s, c) for c in cores if (s := collectives_percent(c)) is not None]
    if len(shares) < len(cores) or len(shares) < 2:
        return {}
    least, core = min(shares, key=lambda pair: pair[0])
    usual = median_high(share for share, _ in shares)
    return {"awaited_core_points": usual - least, "awaited_core": core_name(core)}


def _steps(p: TraceProfile) -> Fields:
    steps = whole_steps(p)
    if steps is None:
        return _stepless(p)
    if steps.whole < STEPS_LEAST or steps.p50_s <= 0:
        return {}
    return {
        "uneven_ratio": steps.p95_s / steps.p50_s,
        "p50": words.duration(steps.p50_s),
        "p95": words.duration(steps.p95_s),
    }


def _stepless(p: TraceProfile) -> Fields:
    """Without step markers, a program that ran at most twice is all that there is of the steps."""
    was_cut = p.steps is not None and p.steps.cut_off > 0
    too_few = p.steps is None and bool(p.programs) and max(r.runs for r in p.programs) <= 2
    return {"stepless_s": p.captured_s} if was_cut or too_few else {}


def _memory(p: TraceProfile) -> Fields:
    fullest = max(p.memory, key=lambda m: memory_percent(m) or 0.0, default=None)
    if fullest is None or not fullest.capacity_bytes:
        return {}
    pair = words.size_pair(fullest.peak_bytes, fullest.capacity_bytes)
    return {
        "memory_percent": memory_percent(fullest),
        "memory": f"{pair} on device {fullest.local_index}",
    }


def _capture(p: TraceProfile) -> Fields:
    cost = p.capture.cost
    before, during = cost.steps_per_s_before, cost.steps_per_s_during
    if not before or during is None:
        return {"paused_s": cost.paused_s}
    return {
        "slowed_percent": 100 * (1 - during / before),
        "before": words.rate(before),
        "during": words.rate(during),
        "paused_s": cost.paused_s,
    }
