"""What a capture cost the job, and how much of it the devices ran nothing: for findings. Pure."""

from __future__ import annotations

from tpusmi.report import words
from tpusmi.trace.figures import CaptureCost, TraceProfile

Fields = dict[str, object]


def capture_fields(p: TraceProfile) -> Fields:
    """The fields of the evidence that are about the capture; without those that are unknown."""
    return {**_quiet(p), **_cost(p.capture.cost)}


def _quiet(p: TraceProfile) -> Fields:
    """All figures are of the time between the first and the last operation, which is less."""
    asked_s, captured_s = p.capture.asked_s, p.captured_s
    if not asked_s or captured_s is None:
        return {}
    return {
        "quiet_percent": 100 * max(0.0, 1 - captured_s / asked_s),
        "captured": words.duration(captured_s),
    }


def _cost(cost: CaptureCost) -> Fields:
    before, during = cost.steps_per_s_before, cost.steps_per_s_during
    if not before or during is None:
        return {"paused_s": cost.paused_s}
    return {
        "slowed_percent": 100 * (1 - during / before),
        "before": words.rate(before),
        "during": words.rate(during),
        "paused_s": cost.paused_s,
    }
