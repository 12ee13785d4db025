"""Whether memory only grows, by the least of each short window: peaks do not count. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

WINDOW_S = 20
"""The least amount of each window of this length is kept: what was held all the time."""
WINDOWS_MOST = 30
"""Windows that are kept: ten minutes."""
SHORTEST = 15
"""The fewest windows in which growth shows: five minutes."""
SLOWER_LEAST = 0.8
"""Growth of the second half over that of the first: a cache that fills grows less and less."""
RATED_LEAST = 6
"""Windows without which no rate is known: two minutes."""
STAYING = 15
"""Windows in which growth that is known must go on, at a quarter of its rate or more."""
MIB_PER_MIN = (1 << 20) / 60
"""In bytes per second."""
LEAST_RATE = 0.05 * MIB_PER_MIN
"""Slower growth does not count: a chip takes months to be full."""
LEAST_BYTES = 128 << 10
"""Less growth than this does not count either: some arrays more or less."""


class Span(NamedTuple):
    """The newest windows, in parts: their least amounts have to be on a straight line."""

    windows: int
    in_a_part: int
    """Windows in each part. Memory that goes up and down needs parts as long as its period."""
    stray: float
    """How far a part may be from the line, as a share of the growth: root mean square."""


SPANS = (Span(30, 6, 0.04), Span(30, 3, 0.06), Span(20, 2, 0.04), Span(15, 1, 0.04))
"""Where growth is looked for, the longest first."""


class Rise(NamedTuple):
    """Growth over the newest windows."""

    bytes_per_s: float
    lasted_s: float


def rate_of(lows: Sequence[float]) -> float | None:
    """Bytes per second, of the least of each window, the oldest first; None for too few windows.

    Of the last five minutes: neither a peak nor one step changes it.
    """
    lows = lows[-SHORTEST:]
    if len(lows) < RATED_LEAST:
        return None
    if lows[0] == lows[-1] and min(lows) == max(lows):  # most lines, most of the time
        return 0.0
    return _median_slope(lows) / WINDOW_S


def rise_of(lows: Sequence[float]) -> Rise | None:
    """How fast and for how long it has grown; None where it does not only grow."""
    if len(lows) < SHORTEST or lows[-1] - min(lows) < LEAST_BYTES:
        return None
    for span in SPANS:
        count = span.windows
        if len(lows) < count:
            continue
        rate = _steady_rate(lows[-count:], span)
        if rate is not None and _is_news(rate, lows[:-count], lows[-1]):
            return Rise(rate, float(count * WINDOW_S))
    return None


def _is_news(rate: float, before: Sequence[float], now: float) -> bool:
    """False where it goes where it has been before, and where it grew faster before."""
    if before and max(before) > now:
        return False
    return len(before) < 4 or rate * WINDOW_S >= SLOWER_LEAST * _median_slope(before[-SHORTEST:])


def goes_on(lows: Sequence[float], rate: float) -> bool:
    """Whether growth at that rate has gone on in the last minutes."""
    recent = lows[-STAYING:]
    half = len(recent) // 2
    grown = min(recent[half:]) - min(recent[:half])
    return grown >= rate * half * WINDOW_S / 4


def _steady_rate(lows: Sequence[float], span: Span) -> float | None:
    """The rate at which the least of each part rises, if it does so in a straight line."""
    times, values = [], []
    for start in range(0, len(lows), span.in_a_part):
        value = min(lows[start : start + span.in_a_part])
        times.append(lows.index(value, start))
        values.append(value)
    if values[-1] - values[0] < LEAST_BYTES:
        return None
    slope, residual = _line(times, values)
    if residual > span.stray * slope * len(lows):
        return None
    half = len(times) // 2
    first, _ = _line(times[: half + 1], values[: half + 1])
    second, _ = _line(times[half:], values[half:])
    rate = slope / WINDOW_S
    return rate if second >= SLOWER_LEAST * first and rate >= LEAST_RATE else None


def _median_slope(lows: Sequence[float]) -> float:
    """Bytes in each window: the median slope between each of the first half and its counterpart in
    the second.
    """
    far = len(lows) // 2
    slopes = sorted(b - a for a, b in zip(lows, lows[-far:], strict=False))
    middle = len(slopes) // 2
    return (slopes[middle] + slopes[~middle]) / 2 / (len(lows) - far)


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """The slope of the line through the points, and how far they are from it, root mean square."""
    n, mean_x, mean_y = len(x), sum(x) / len(x), sum(y) / len(y)
    across, up = [v - mean_x for v in x], [v - mean_y for v in y]
    both = sum(map(mul, across, up))
    slope = both / sum(map(mul, across, across))
    return slope, (max(0.0, sum(map(mul, up, up)) - slope * both) / n) ** 0.5
