"""Figures that follow from others of a profile, None where they are unknown. Pure."""

from tpusmi import text
from tpusmi.trace.figures import CoreFigures, MemoryPeak, TracedSteps, TraceProfile

PLANE_MOST = 24


def whole_steps(p: TraceProfile | CoreFigures) -> TracedSteps | None:
    """Its step times; None without a whole step."""
    return p.steps if p.steps and p.steps.whole else None


def step_s(p: TraceProfile | CoreFigures) -> float | None:
    """Its median step time in seconds; None without a whole step."""
    steps = whole_steps(p)
    return steps.p50_s if steps and steps.p50_s > 0 else None


def input_percent(p: TraceProfile) -> float | None:
    """Share of the step time that waits for input. Where a stall leaves no whole step in the
    capture, it is that of the captured time in which devices wait for their infeed.
    """
    return p.input_bound_percent if p.input_bound_percent is not None else _infeed_percent(p)


def _infeed_percent(p: TraceProfile) -> float | None:
    """None also for nothing: a device may wait for input without an infeed."""
    return p.shares.infeed_percent or None


def core_name(core: CoreFigures) -> str:
    """Its global id as JAX numbers devices, else its local index, else the name of its plane."""
    if core.id is not None:
        return str(core.id)
    if core.local_index is not None:
        return str(core.local_index)
    return text.clean(core.plane, PLANE_MOST) or "?"


def busy_percent(core: CoreFigures) -> float | None:
    """Percent of its captured time with at least one operation."""
    return _of_captured(core.busy_s, core)


def idle_percent(core: CoreFigures) -> float | None:
    """Percent of its captured time without an operation."""
    return _of_captured(core.idle_s, core)


def collectives_percent(core: CoreFigures) -> float | None:
    """Percent of its captured time in exchanges with other devices."""
    return _of_captured(core.collectives_s, core)


def _of_captured(seconds: float | None, core: CoreFigures) -> float | None:
    if seconds is None or core.captured_s <= 0:
        return None
    return 100 * seconds / core.captured_s


def memory_percent(m: MemoryPeak) -> float | None:
    """Percent of the device's memory that was in use at its peak."""
    return 100 * m.peak_bytes / m.capacity_bytes if m.capacity_bytes else None
