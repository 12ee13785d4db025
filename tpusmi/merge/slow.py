"""Why a job may be slow, when the data say so. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tpusmi.merge.owned import fresh_mean
from tpusmi.model import Phase, Process, Snapshot, State

BUSY_PERCENT, STARVED_PERCENT = 80.0, 50.0
"""Duty cycles of a chip that has enough to do, and of one that mostly waits."""
LITTLE_MXU_PERCENT, SOME_MXU_PERCENT = 30.0, 20.0
MUCH_BANDWIDTH_PERCENT = 60.0
HUNG_PERCENT, NOTHING_PERCENT = 95.0, 0.05
RECOMPILATIONS_LEAST = 2
WASTED_RATIO = 0.5
"""MFU this far below the MXU's throughput: the chip computes what the model does not need."""
UNEVEN_RATIO = 1.5
SETTLED_S = 120.0
"""MFU is a mean of the last minute: until then the time before the first step may be in it."""


class Use(NamedTuple):
    """What is known of how a job uses its devices: means over them, None where not all tell."""

    phase: Phase | None = None
    stepping: bool = False
    """It runs, and its steps go on."""
    stepped_s: float | None = None
    """For how long, at its present rate."""
    duty_percent: float | None = None
    mxu_percent: float | None = None
    bandwidth_percent: float | None = None
    mfu_percent: float | None = None
    p50_s: float | None = None
    p95_s: float | None = None
    recent_compilations: float | None = None
    recompiled: str = ""
    """Names of the functions, in parentheses."""


class Cause(NamedTuple):
    """What slows a job down, and what to do about it."""

    code: str
    why: str
    cure: str
    covers: tuple[str, ...] = ()
    """Codes of notices that say the same with less."""


class _Case(NamedTuple):
    """A cause and when it is told. Its words may name the fields of Use."""

    cause: Cause
    holds: Callable[[Use], bool]


def slow(s: Snapshot, p: Process) -> Cause | None:
    """The likeliest reason why the process is slow; None when nothing speaks for one."""
    return None if p.state != State.LIVE else cause(use(s, p))


def cause(u: Use) -> Cause | None:
    """The first case of the table that holds; None when none does, or the data are missing."""
    found = next((case.cause for case in CASES if case.holds(u)), None)
    return None if found is None else found._replace(why=found.why.format(**u._asdict()))


def use(s: Snapshot, p: Process) -> Use:
    """What is known, and fresh, of a process and its devices."""
    devices = [d for d in s.devices if p.key in d.owners]
    rate = _own(s, p, "steps_per_s")
    steps = _own(s, p, "steps")
    return Use(
        p.phase,
        p.phase == Phase.RUNNING and bool(rate),
        steps / rate if rate and steps is not None else None,
        fresh_mean(s, "duty_cycle_percent", devices),
        fresh_mean(s, "tensorcore_utilization_percent", devices),
        fresh_mean(s, "hbm_bandwidth_utilization_percent", devices),
        _own(s, p, "mfu_percent"),
        _own(s, p, "step_time_s.p50"),
        _own(s, p, "step_time_s.p95"),
        _own(s, p, "recent_compilations"),
        f" ({p.facts['recompiled']})" if p.facts.get("recompiled") else "",
    )


def _own(s: Snapshot, p: Process, name: str) -> float | None:
    found = s.values.get((p.key, name))
    return None if found is None or found.stale else found.value


def _below(value: float | None, limit: float) -> bool:
    return value is not None and value < limit


def _from(value: float | None, limit: float) -> bool:
    return value is not None and value >= limit


def _busy_for_little(u: Use) -> bool:
    return _from(u.duty_percent, BUSY_PERCENT) and _below(u.mxu_percent, LITTLE_MXU_PERCENT)


def _hangs(u: Use) -> bool:
    nothing = (u.mxu_percent, u.bandwidth_percent)
    return _from(u.duty_percent, HUNG_PERCENT) and all(_below(v, NOTHING_PERCENT) for v in nothing)


def _wastes(u: Use) -> bool:
    mxu, mfu = u.mxu_percent, u.mfu_percent
    if mxu is None or not _from(u.stepped_s, SETTLED_S):
        return False
    return _from(mxu, SOME_MXU_PERCENT) and _below(mfu, WASTED_RATIO * mxu)


def _uneven(u: Use) -> bool:
    return u.stepping and bool(u.p50_s) and _from(u.p95_s, UNEVEN_RATIO * (u.p50_s or 0.0))


CASES = (
    _Case(  # duty at its most while neither the MXU nor the memory moves
        Cause(
            "hangs",
            "busy {duty_percent:.0f} %, but neither MXU nor memory moves: "
            "its program hangs, or waits for another host",
            "look at the other hosts of the slice",
            ("busy_for_nothing", "busy_without_mxu"),
        ),
        _hangs,
    ),
    _Case(  # compilations that go on after the job's first minute
        Cause(
            "recompiles",
            "{recent_compilations:.0f} compilations in the last minute{recompiled}: shapes, dtypes "
            "or static arguments that change make XLA compile again",
            "pad batches to a few fixed shapes, keep dtypes the same, pass what changes as an "
            "array and only what stays in static_argnums",
            ("recompiling",),
        ),
        lambda u: _from(u.recent_compilations, RECOMPILATIONS_LEAST),
    ),
    _Case(  # its phase says so
        Cause(
            "compiles",
            "it compiles, and takes no step meanwhile",
            "JAX's persistent compilation cache saves this at the next start",
        ),
        lambda u: u.phase == Phase.COMPILING,
    ),
    _Case(  # its phase says so
        Cause(
            "idle",
            "it takes no steps: it evaluates, saves, waits for input or for another host",
            "see when its phase changed, and what it writes to its log",
        ),
        lambda u: u.phase == Phase.IDLE,
    ),
    _Case(  # steps go on while the chips wait; MXU low, or not told
        Cause(
            "starved",
            "its chips are busy only {duty_percent:.0f} % of the time: they wait for input or "
            "for the host",
            "prefetch, more data workers, fewer block_until_ready()",
            ("starved",),
        ),
        lambda u: (
            u.stepping
            and _below(u.duty_percent, STARVED_PERCENT)
            and not _from(u.mxu_percent, LITTLE_MXU_PERCENT)
        ),
    ),
    _Case(  # busy, little MXU, much bandwidth
        Cause(
            "memory_bound",
            "busy {duty_percent:.0f} %, MXU {mxu_percent:.0f} %, bandwidth "
            "{bandwidth_percent:.0f} %: bound by memory",
            "larger batches, fused or quantized kernels",
            ("busy_without_mxu",),
        ),
        lambda u: _busy_for_little(u) and _from(u.bandwidth_percent, MUCH_BANDWIDTH_PERCENT),
    ),
    _Case(  # busy, little MXU, little bandwidth
        Cause(
            "communication",
            "busy {duty_percent:.0f} %, MXU {mxu_percent:.0f} %, bandwidth "
            "{bandwidth_percent:.0f} %: communication, tiny programs, or small shapes",
            "look at collectives; pad to multiples of 128 (256 on v6e and 7x)",
            ("busy_without_mxu",),
        ),
        lambda u: _busy_for_little(u) and _below(u.bandwidth_percent, MUCH_BANDWIDTH_PERCENT),
    ),
    _Case(  # busy, little MXU, nobody tells the bandwidth
        Cause(
            "little_mxu",
            "busy {duty_percent:.0f} %, MXU {mxu_percent:.0f} %: bound by memory or "
            "communication, or small shapes",
            "larger batches; look at collectives; pad to multiples of 128",
            ("busy_without_mxu",),
        ),
        lambda u: _busy_for_little(u) and u.bandwidth_percent is None,
    ),
    _Case(  # the MXU does twice what the model needs, or more
        Cause(
            "wastes",
            "MXU {mxu_percent:.0f} %, but MFU {mfu_percent:.0f} %: it computes more than the "
            "model needs",
            "check rematerialization and padding",
        ),
        _wastes,
    ),
    _Case(  # one step in twenty takes half as long again as the usual one
        Cause(
            "uneven",
            "one step in twenty takes much longer than the median",
            "look for checkpoints, evaluation, input that stalls, other load on the host",
        ),
        _uneven,
    ),
)
"""The first that holds is told: what stops a job before what slows it down."""
