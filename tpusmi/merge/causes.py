"""Why a job does badly, when its numbers say so, and which of that is worth a warning. Pure."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from tpusmi.model import Notice, Phase, Process, Snapshot, State
from tpusmi.model.history import NOTHING_PERCENT
from tpusmi.model.several import fresh_own, mean

BUSY_PERCENT, STARVED_PERCENT = 80.0, 50.0
"""Duty cycles of a chip that has enough to do, and of one that mostly waits."""
HUNG_PERCENT = 95.0
"""Duty cycle of a chip whose program does not end."""
LITTLE_MXU_PERCENT, SOME_MXU_PERCENT = 30.0, 20.0
WARNED_MXU_PERCENT = 5.0
"""Less than this of a busy chip's MXU is worth a warning."""
MUCH_BANDWIDTH_PERCENT = 60.0
RECOMPILATIONS_LEAST = 2
WASTED_RATIO = 0.5
"""MFU this far below the MXU's throughput: the chip computes what the model does not need."""
UNEVEN_RATIO = 1.5
SETTLED_S = 120.0
"""MFU is a mean of the last minute: until then the time before the first step may be in it."""


class Use(NamedTuple):
    """How a job uses its devices: means over them, None where not every device has a value."""

    phase: str | None = None
    stepping: bool = False
    """It runs, and its steps go on."""
    stepped_s: float | None = None
    """For how long, at its present rate."""
    duty_percent: float | None = None
    mxu_percent: float | None = None
    bandwidth_percent: float | None = None
    mfu_percent: float | None = None
    min_s: float | None = None
    mean_s: float | None = None
    p50_s: float | None = None
    p95_s: float | None = None
    recent_compilations: float | None = None
    recompiled: str = ""
    """Names of the functions, in parentheses."""


class Cause(NamedTuple):
    """What slows a job down, and what to do about it."""

    code: str
    why: str
    """In words, which may name the fields of Use."""
    cure: str
    holds: Callable[[Use], bool]
    notice: str = ""
    """Code of the notice that warns of it; empty where it is advice alone."""
    warns: Callable[[Use], bool] = lambda u: True
    """Whether it is bad enough for that notice, where it holds."""


def likeliest(s: Snapshot, p: Process) -> Cause | None:
    """The likeliest reason why the process does badly; None when there is no sign of one."""
    return next((_of(p, cause) for cause in causes(use(s, p))), None)


def warnings(s: Snapshot, p: Process) -> Iterator[Notice]:
    """Every reason that is bad enough for a notice."""
    u = use(s, p)
    for cause in (_of(p, cause) for cause in causes(u)):
        if cause.notice and cause.warns(u):
            yield Notice(cause.notice, cause.why, p.pid, advice=cause.cure)


def _of(p: Process, cause: Cause) -> Cause:
    """The cause with the process's number in what to do."""
    return cause._replace(cure=cause.cure.format(pid=p.pid))


def causes(u: Use) -> Iterator[Cause]:
    """The cases of the table that hold, the likeliest first, their words with the numbers."""
    for cause in CASES:
        if cause.holds(u):
            yield cause._replace(why=cause.why.format(**u._asdict()))


class _Number:
    """Stands for any number, however it is formatted."""

    def __format__(self, spec: str) -> str:
        return "N"


def in_general(cause: Cause) -> str:
    """Its words without the numbers of a job, for the documentation."""
    numbers: dict[str, object] = dict.fromkeys(Use._fields, _Number())
    numbers["recompiled"] = ""
    return cause.why.format(**numbers)


def cure_in_general(cause: Cause) -> str:
    """What to do, without the number of a process."""
    return cause.cure.format(pid="PID")


def use(s: Snapshot, p: Process) -> Use:
    """The fresh numbers of a living process and its devices."""
    if not p.is_living:
        return Use()
    devices = [d for d in s.devices if p.key in d.owners]
    own = partial(fresh_own, s, subject=p.key)
    rate, steps = own("steps_per_s"), own("steps")
    phase = p.phase if p.state == State.LIVE else None
    return Use(
        phase=phase,
        stepping=phase == Phase.RUNNING and bool(rate),
        stepped_s=steps / rate if rate and steps is not None else None,
        duty_percent=mean(s, "duty_cycle_percent", devices),
        mxu_percent=mean(s, "tensorcore_utilization_percent", devices),
        bandwidth_percent=mean(s, "hbm_bandwidth_utilization_percent", devices),
        mfu_percent=own("mfu_percent"),
        min_s=own("step_time_s.min"),
        mean_s=own("step_time_s.mean"),
        p50_s=own("step_time_s.p50"),
        p95_s=own("step_time_s.p95"),
        recent_compilations=own("recent_compilations"),
        recompiled=f" ({p.facts['recompiled']})" if p.facts.get("recompiled") else "",
    )


def _below(value: float | None, limit: float) -> bool:
    return value is not None and value < limit


def _from(value: float | None, limit: float) -> bool:
    return value is not None and value >= limit


def _moves_nothing(u: Use) -> bool:
    return all(_below(v, NOTHING_PERCENT) for v in (u.mxu_percent, u.bandwidth_percent))


def _hangs(u: Use) -> bool:
    return _from(u.duty_percent, HUNG_PERCENT) and _moves_nothing(u)


def _is_starved(u: Use) -> bool:
    waits = u.stepping and _below(u.duty_percent, STARVED_PERCENT)
    return waits and not _from(u.mxu_percent, LITTLE_MXU_PERCENT)


def _is_busy_for_little(u: Use) -> bool:
    # A job that has just stopped still has the duty cycle of its last minute.
    is_busy = _from(u.duty_percent, BUSY_PERCENT) and not _moves_nothing(u)
    return is_busy and _below(u.mxu_percent, LITTLE_MXU_PERCENT)


def _wastes(u: Use) -> bool:
    mxu, mfu = u.mxu_percent, u.mfu_percent
    if mxu is None or not _from(u.stepped_s, SETTLED_S) or _has_varied(u):
        return False
    return _from(mxu, SOME_MXU_PERCENT) and _below(mfu, WASTED_RATIO * mxu)


def _has_varied(u: Use) -> bool:
    """Whether the last minute had pauses or slow steps: they lower the MFU, which is its mean, and
    not the MXU, which is current.
    """
    return u.min_s is not None and _from(u.mean_s, UNEVEN_RATIO * u.min_s)


def _little_mxu(code: str, why: str, cure: str, suits: Callable[[Use], bool]) -> Cause:
    """A busy job that makes little use of the MXU, if its bandwidth `suits`."""
    return Cause(
        code=code,
        why="busy {duty_percent:.0f} %, MXU {mxu_percent:.0f} %" + why,
        cure=cure,
        holds=lambda u: _is_busy_for_little(u) and suits(u),
        notice="busy_without_mxu",
        warns=lambda u: _below(u.mxu_percent, WARNED_MXU_PERCENT),
    )


CASES = (
    Cause(
        code="hangs",
        why="busy {duty_percent:.0f} %, but MXU and HBM bandwidth are at 0: "
        "its program hangs, or waits for another host",
        cure="see where it hangs, on each host of the slice: `py-spy dump --pid {pid}`",
        holds=_hangs,
        notice="busy_for_nothing",
    ),
    Cause(
        code="recompiles",
        why="{recent_compilations:.0f} compilations in the last minute{recompiled}: shapes, dtypes "
        "or static arguments that change make XLA compile again",
        cure="pad batches to a few fixed shapes, keep dtypes the same, pass what changes as an "
        "array and only what stays in static_argnums",
        holds=lambda u: _from(u.recent_compilations, RECOMPILATIONS_LEAST),
        notice="recompiling",
    ),
    Cause(
        code="compiles",
        why="it compiles, and takes no step meanwhile",
        cure="JAX's persistent compilation cache saves this at the next start",
        holds=lambda u: u.phase == Phase.COMPILING,
    ),
    Cause(
        code="idle",
        why="it takes no steps: it evaluates, saves, waits for input or for another host",
        cure="see when its phase changed, and what it writes to its log",
        holds=lambda u: u.phase == Phase.IDLE,
    ),
    Cause(
        code="starved",
        why="its chips are busy only {duty_percent:.0f} % of the time: they wait for input or "
        "for the host",
        cure="prefetch, more data workers, fewer block_until_ready()",
        holds=_is_starved,
        notice="starved",
    ),
    _little_mxu(
        "memory_bound",
        ", bandwidth {bandwidth_percent:.0f} %: bound by memory",
        "larger batches, fused or quantized kernels",
        lambda u: _from(u.bandwidth_percent, MUCH_BANDWIDTH_PERCENT),
    ),
    _little_mxu(
        "communication",
        ", bandwidth {bandwidth_percent:.0f} %: communication, tiny programs, or small shapes",
        "look at collectives; pad to multiples of 128 (256 on v6e and 7x)",
        lambda u: _below(u.bandwidth_percent, MUCH_BANDWIDTH_PERCENT),
    ),
    _little_mxu(
        "little_mxu",
        ": bound by memory or communication, or small shapes",
        "larger batches; look at collectives; pad to multiples of 128",
        lambda u: u.bandwidth_percent is None,
    ),
    Cause(
        code="wastes",
        why="MXU {mxu_percent:.0f} %, but MFU {mfu_percent:.0f} %: it computes more than the "
        "model needs",
        cure="check rematerialization and padding",
        holds=_wastes,
    ),
    Cause(
        code="uneven",
        why="one step in twenty takes much longer than the median",
        cure="look for checkpoints, evaluation, input that stalls, other load on the host",
        holds=lambda u: (
            u.stepping and bool(u.p50_s) and _from(u.p95_s, UNEVEN_RATIO * (u.p50_s or 0.0))
        ),
    ),
)
"""In the order of the job page, which shows the first that holds: what stops a job comes before
what slows it down.
"""
