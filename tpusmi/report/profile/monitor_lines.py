"""The lines that `capture_tpu_profile --monitoring_level` printed, in its words. Pure.

Programs read them, so the words and the form of the numbers are exactly the old ones; only an
unknown value is a dash. The old command also named replicas and the batch size, which a trace does
not say.
"""

from __future__ import annotations

from tpusmi import text
from tpusmi.report import words
from tpusmi.report.profile.capture_words import local_time
from tpusmi.report.profile.derived_figures import whole_steps
from tpusmi.trace.figures import TraceProfile

BASIC = 1
HARDLY_IDLE_PERCENT = 5.0
NAMES = ("avg", "min", "max")


def lines(profile: TraceProfile, level: int) -> list[str]:
    """The lines of level 1 (type and MXU) or 2 (also cores, idle time, steps and infeed)."""
    p = profile
    moment = local_time(p.capture.captured_at_s, "%H:%M:%S") or words.UNKNOWN
    kind = text.clean(p.device_type or "", 40) or words.UNKNOWN
    mxu = f"  Utilization of TPU Matrix Units (higher is better): {_percent(p.mxu_percent)}"
    start = [f"Timestamp: {moment}", f"  TPU type: {kind}"]
    if level <= BASIC:
        return [*start, mxu]
    return [
        *start,
        f"  Number of TPU cores: {len(p.cores) or words.UNKNOWN}",
        f"  TPU idle time (lower is better): {_percent(p.idle_percent)}",
        mxu,
        f"  Step time: {_steps(p)}",
        f"  Infeed percentage: {_infeed(p)}",
    ]


def _infeed(p: TraceProfile) -> str:
    """The waits for input; their extremes are unknown where their mean is. A device that is often
    idle may wait for input without any infeed.
    """
    mean, steps = p.input_bound_percent, whole_steps(p)
    if mean is None or steps is None:
        ends: tuple[float | None, float | None] = (None, None)
    else:
        ends = (steps.input_least_percent, steps.input_most_percent)
    infeed = p.shares.infeed_percent
    is_busy = p.idle_percent is not None and p.idle_percent < HARDLY_IDLE_PERCENT
    mean = infeed if mean is None and (infeed or is_busy) else mean
    values = zip((mean, *ends), NAMES, strict=True)
    return ", ".join(f"{_percent(value)} ({name})" for value, name in values)


def _steps(p: TraceProfile) -> str:
    steps = whole_steps(p)
    times = (steps.mean_s, steps.min_s, steps.max_s) if steps else (None, None, None)
    return ", ".join(f"{_ms(t)} ({name})" for t, name in zip(times, NAMES, strict=True))


def _percent(value: float | None) -> str:
    return words.UNKNOWN if value is None else f"{_three(value)}%"


def _ms(value: float | None) -> str:
    return words.UNKNOWN if value is None else f"{_three(1e3 * value)}ms"


def _three(value: float) -> str:
    """Three digits, as in `0.091`, `1.59`, `36.9` and `342`."""
    for below, decimals in ((0.9995, 3), (9.995, 2), (99.95, 1)):
        if abs(value) < below:
            return f"{value:.{decimals}f}"
    return f"{value:.0f}"
