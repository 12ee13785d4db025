"""The figures that findings are judged by, each None where the trace does not say. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median, median_high
from typing import NamedTuple

from tpusmi.report import words
from tpusmi.report.profile.capture_evidence import capture_fields
from tpusmi.report.profile.derived_figures import (
    busy_percent,
    collectives_percent,
    core_name,
    memory_percent,
    step_s,
    whole_steps,
)
from tpusmi.report.profile.idle_evidence import idle_fields, recompiled
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

STEPS_LEAST = 5
"""So few steps have no percentiles that say anything."""


class ProfileEvidence(NamedTuple):
    """Percentages are of the captured time of all cores, where nothing else is given."""

    input_percent: float | None = None
    """A share of the step time, where that is known, else of the captured time."""
    input_of: str = "step time"
    idle_percent: float | None = None
    """Without what waiting for input and compiling explain. Only one of these is given."""
    nothing_percent: float | None = None
    """All of it, where nothing else happened."""
    idle_pauses_percent: float | None = None
    """The same where the runs of the main program follow one another without a gap."""
    main_program: str = ""
    idle_small_percent: float | None = None
    """The same where many small programs run."""
    idle_of_all: str = ""
    """How much idle time there is in all, where a part of it is explained."""
    small_per_s: float | None = None
    small_mean: str = ""
    compile_percent: float | None = None
    recompiled: str = ""
    collectives_percent: float | None = None
    hang_percent: float | None = None
    """The same, where no step ended meanwhile."""
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
    quiet_percent: float | None = None
    """Share of the time asked for that is before the first or after the last operation."""
    captured: str = ""
    stepless_s: float | None = None
    """How long the capture was, where no whole step is inside."""
    stepless: str = ""


def evidence(p: TraceProfile) -> ProfileEvidence:
    """All of it, of one profile."""
    fields: dict[str, object] = {}
    for part in (_waiting, idle_fields, _operations, _mxu, _cores, _steps, _memory, capture_fields):
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
        "recompiled": recompiled(p),
        "collectives_percent": p.shares.collectives_percent,
        "hang_percent": None if _goes_on(p) else p.shares.collectives_percent,
        "collectives": named(collectives),
        "host_percent": host,
        "copies_percent": copies if host is None else None,
        "copies": named(which),
        "outfeed_percent": p.shares.outfeed_percent,
        "callbacks_percent": callbacks,
        "callbacks": named(calling),
    }


def _goes_on(p: TraceProfile) -> bool:
    """True if a step has ended, or a program has run again and again."""
    return whole_steps(p) is not None or any(r.runs > 2 for r in p.programs)


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
    """Empty for a CPU: its devices are threads that share the cores of the host by chance."""
    if p.backend == "cpu":
        return {}
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
    runs: Counter[str] = Counter()
    for r in p.programs:  # one that was compiled again goes on counting
        runs[r.name] += r.runs
    too_few = p.steps is None and bool(runs) and max(runs.values()) <= 2
    if not (was_cut or too_few):
        return {}
    return {"stepless_s": p.captured_s, "stepless": words.duration(p.captured_s)}


def _memory(p: TraceProfile) -> Fields:
    fullest = max(p.memory, key=lambda m: memory_percent(m) or 0.0, default=None)
    if fullest is None or not fullest.capacity_bytes:
        return {}
    pair = words.size_pair(fullest.peak_bytes, fullest.capacity_bytes)
    return {
        "memory_percent": memory_percent(fullest),
        "memory": f"{pair} on device {fullest.local_index}",
    }
