"""How far the simulated job has come, as an agent in it would measure: a pure function of time."""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.model import PHASES, Phase
from tpusmi.simulate.workload import (
    COMPILE_S,
    COMPILING,
    HUNG,
    IDLE,
    LOAD_S,
    LOADING,
    MXU,
    SAVE,
    STEPS_PER_S,
    Workload,
)

WINDOW_S = 60
PROGRAMS, MORE_PROGRAMS, MORE_EVERY_S = 6, 4, 75.0
"""Compiled before the first step, and one by one later on."""
COMPILE_EACH_S = COMPILE_S / PROGRAMS
MODEL_SHARE = 0.93
"""Of what the MXUs do: the rest is done twice, to save memory."""
UNEVEN = 0.07
"""How much the time of a step varies."""
_PHASES = {
    LOADING: Phase.STARTING,
    COMPILING: Phase.COMPILING,
    IDLE: Phase.IDLE,
    HUNG: Phase.IDLE,
}


def progress(job: Workload, t_s: float, peak_flops_per_s: float | None) -> dict[str, float | None]:
    """The fields of the process in a sample; those that nobody knows yet are None or missing.

    `peak_flops_per_s` is that of all the job's devices.
    """
    activity = job.activity(t_s)
    compiled = _compiled(t_s)
    mfu = MODEL_SHARE * sum(_in_window(job, t_s, MXU)) / WINDOW_S
    steps = job.steps(t_s)
    fields: dict[str, float | None] = {
        "phase": PHASES.index(_PHASES.get(activity, Phase.RUNNING)),
        "steps": steps or None,
        "compilations": compiled,
        "compile_s": compiled * COMPILE_EACH_S,
        "recent_compilations": compiled - _compiled(max(t_s - WINDOW_S, min(t_s, WINDOW_S))),
        "agent_cost_percent": 0.04,
        "agent_sample_s": 0.0004,
        "profile_cost_s": 0.003,
    }
    if steps:
        fields["flops_per_s"] = None if peak_flops_per_s is None else mfu * peak_flops_per_s
        fields["mfu_percent"] = None if peak_flops_per_s is None else 100 * mfu
        fields |= _steps(job, t_s)
    return fields


def _steps(job: Workload, t_s: float) -> dict[str, float | None]:
    """Rate and times of the steps of the last minute; nothing when there was none."""
    rates = sorted((r for r in _in_window(job, t_s, STEPS_PER_S) if r > 0), reverse=True)
    if not rates:
        return {}
    uneven = [1 + UNEVEN * (2 * i / len(rates) - 1) for i in range(len(rates))]
    times = [spread / rate for spread, rate in zip(uneven, rates, strict=True)]
    per_s = sum(rates) / min(WINDOW_S, max(1.0, t_s - LOAD_S - COMPILE_S))
    at_rest = job.activity(t_s) in (SAVE, IDLE, HUNG)
    return {
        "steps_per_s": per_s,
        "step_time_s.min": times[0],
        "step_time_s.mean": 1 / per_s,
        "step_time_s.p50": _quantile(times, rates, 0.5),
        "step_time_s.p95": _quantile(times, rates, 0.95),
        "step_time_s.max": times[-1],
        "since_last_step_s": job.idle_s(t_s, 0) if at_rest else (t_s * rates[0]) % 1 / rates[0],
    }


def _in_window(job: Workload, t_s: float, by_activity: dict[str, float]) -> Iterator[float]:
    """Of each second of the last minute of training."""
    for ago_s in range(WINDOW_S):
        at_s = t_s - ago_s
        if at_s >= LOAD_S + COMPILE_S:
            yield by_activity.get(job.activity(at_s), 0.0)


def _quantile(times: list[float], weights: list[float], share: float) -> float:
    """Of times in order, of which each stands for so many."""
    left = share * sum(weights)
    for time, weight in zip(times, weights, strict=True):
        left -= weight
        if left <= 0:
            return time
    return times[-1]


def _compiled(t_s: float) -> int:
    """Programs compiled until then."""
    into_s = t_s - LOAD_S
    if into_s < COMPILE_S:
        return max(0, int(into_s / COMPILE_EACH_S))
    return PROGRAMS + min(MORE_PROGRAMS, int((into_s - COMPILE_S) / MORE_EVERY_S))
