"""The history of a host as graphs over one time axis. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from tpusmi.fleet.fleet_figures import FleetHost, HostHistory, HostState
from tpusmi.fleet.groups.totals import mean, memory
from tpusmi.report import words
from tpusmi.report.quantities import HBM, QUANTITIES, Quantity
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.short_graphs import dated
from tpusmi.tui.draw.time_axis import axis

SPANS_S = (900, 3600, 21_600, 86_400, 604_800)
POINTS = 240
"""Values that are asked for: about as many as a wide graph shows."""
LEAST_HEIGHT = 5
"""The least lines of a graph, with its title."""
_REACH = 1.5
"""A value stands for so many of its steps after it: one that is missing leaves a gap."""


def next_span(span_s: int) -> int:
    """The span after that one."""
    later = [s for s in SPANS_S if s > span_s]
    return later[0] if later else SPANS_S[0]


def span_words(span_s: int) -> str:
    """`15 minutes`, `6 hours`, `7 days`"""
    sizes = ((86_400, "day"), (3600, "hour"), (60, "minute"))
    size, unit = next(((s, u) for s, u in sizes if span_s % s == 0), (1, "second"))
    count = span_s // size
    return f"{count} {unit}{'' if count == 1 else 's'}"


def lines(
    look: Look,
    host: FleetHost,
    past: Mapping[str, HostHistory],
    span: tuple[float, int],
    size: tuple[int, int],
    end: str = "now",
) -> list[Row]:
    """The graphs up to a moment over a span, in a size: as many as have values and room. `end` is
    what the axis calls that moment.
    """
    at_s, span_s = span
    width, height = size
    known = [q for q in QUANTITIES if q.metric in past]
    columns = plot.columns_for(len(known), width, height - 1, LEAST_HEIGHT)
    most = max(1, (height - 1) // LEAST_HEIGHT) * columns
    known = known[:most]
    if not known or height < LEAST_HEIGHT:
        return []
    columns = plot.columns_for(len(known), width, height - 1, LEAST_HEIGHT)
    each = plot.each(width, columns)
    count = plot.values_across(look, each)
    curves = [_curve(host, q, slots(past[q.metric], at_s, span_s, count)) for q in known]
    below = axis(look, span_s, each, end)
    return plot.in_columns(look, dated(curves, span_s), columns, below, size)


def end_of(past: Mapping[str, HostHistory]) -> float | None:
    """The time of its newest value, by the clock of its source; None without values."""
    ends = [h.first_s + h.step_s * (len(h.values) - 1) for h in past.values() if h.values]
    return max(ends, default=None)


def height_for(past: Mapping[str, HostHistory], width: int, height: int) -> int:
    """Lines that the graphs get on a screen of that size."""
    count = sum(q.metric in past for q in QUANTITIES)
    if not count:
        return 0
    across = max(1, min(count, (width + plot.GAP) // (plot.LEAST_WIDTH + plot.GAP)))
    rows = -(-count // across)
    return min(height, rows * (LEAST_HEIGHT + 1 + height // 30) + 1)


def slots(past: HostHistory, at_s: float, span_s: float, count: int) -> list[float | None]:
    """The values over a span up to that moment, in so many places; None where there is none."""
    values: list[float | None] = []
    for n in range(count):
        until_s = at_s - span_s * (count - 1 - n) / count
        values.append(_at(past, until_s))
    return values


def _at(past: HostHistory, at_s: float) -> float | None:
    """The newest value of that moment."""
    if past.step_s <= 0 or not past.values:
        return None
    place = (at_s - past.first_s) / past.step_s
    index = min(int(place), len(past.values) - 1) if place >= 0 else -1
    if index < 0 or place - index > _REACH:
        return None
    value = past.values[index]
    if value is None and index and place - (index - 1) <= _REACH:
        value = past.values[index - 1]
    return value


def _present(host: FleetHost, metric: str) -> float | None:
    """The mean over its devices, as in the table below the graphs: the newest point of the past is
    of a moment up to a whole step ago.
    """
    of_devices = (
        memory(d)[0] if metric == HBM.metric else d.values.get(metric) for d in host.devices
    )
    known = [v for v in of_devices if v is not None]
    return mean(known, len(host.devices)).value


def _newest(host: FleetHost, q: Quantity, values: Sequence[float | None]) -> str:
    """The present value; in parentheses the last one of a host that is not live."""
    is_live = host.state == HostState.LIVE
    last = next((v for v in reversed(values) if v is not None), None)
    value = _present(host, q.metric) if is_live else last
    text = words.size(value) if q is HBM else words.percent(value)
    return text if is_live or value is None else f"({text})"


def _curve(host: FleetHost, q: Quantity, values: Sequence[float | None]) -> plot.Curve:
    newest = _newest(host, q, values)
    if q is not HBM:
        return plot.Curve(q.label, newest, values, 100.0, "100 %")
    limits = [limit for d in host.devices if (limit := memory(d)[1])]
    top = fmean(limits) if limits else max((v for v in values if v is not None), default=1.0)
    return plot.Curve(f"{q.label} of a device", newest, values, top, words.size(top))
