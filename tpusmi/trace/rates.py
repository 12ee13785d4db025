"""Ratios, percentages and shares of a peak, each None where it is unknown. Pure."""

from tpusmi.trace.limits import FLOAT_MOST

ABOVE_PEAK_PERCENT = 102.0
"""A rate above this share of the peak is not a measurement: custom kernels declare their own FLOPs
and bytes, and an asynchronous copy moves its bytes after its own time.
"""


def ratio(part: float | None, whole: float | None) -> float | None:
    """None where one of them is not known, or the whole is 0, or no device can do that much."""
    value = None if part is None or not whole else part / whole
    return None if value is None or abs(value) > FLOAT_MOST else value


def percent(part: float | None, whole: float | None) -> float | None:
    """The same, of a hundred."""
    share = ratio(part, whole)
    return None if share is None else 100 * share


def of_peak(rate: float | None, peak: float | None) -> float | None:
    """The rate in percent of the peak; None also where no device can do that much."""
    share = percent(rate, peak)
    return None if share is None or share > ABOVE_PEAK_PERCENT else min(share, 100.0)


def believed(rate: float | None, peak: float | None) -> float | None:
    """The rate; None where no device can do that much."""
    return None if rate is not None and peak and of_peak(rate, peak) is None else rate
