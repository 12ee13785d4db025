"""A capture as one line under a header, for captures that are repeated. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tpusmi import text
from tpusmi.report import words
from tpusmi.report.profile.capture_words import label, local_time
from tpusmi.report.profile.derived_figures import input_percent, whole_steps
from tpusmi.report.profile.figure_lines import step_time
from tpusmi.report.profile.styled import cut_middle, padded
from tpusmi.trace.figures import TraceProfile

HOST_WIDTH = 18
OPERATION_WIDTH = 40
GAP = "  "


def _step(field: str) -> Callable[[TraceProfile], str]:
    return lambda p: step_time(getattr(whole_steps(p), field, None))


def _percent(field: str) -> Callable[[TraceProfile], str]:
    return lambda p: words.percent(getattr(p, field))


def _top(p: TraceProfile) -> str:
    """The operation with the most self time, and its share."""
    if not p.operations:
        return words.UNKNOWN
    first = p.operations[0]
    name = text.clean(first.name, 400)
    return f"{words.percent(first.self_percent)} {cut_middle(name, OPERATION_WIDTH)}"


class Place(NamedTuple):
    """A column of the line."""

    title: str
    width: int
    of: Callable[[TraceProfile], str]


PLACES = (
    Place("TIME", 8, lambda p: local_time(p.capture.captured_at_s, "%H:%M:%S") or words.UNKNOWN),
    Place("IDLE", 6, _percent("idle_percent")),
    Place("MXU", 6, _percent("mxu_percent")),
    Place("HBM BW", 6, _percent("hbm_bandwidth_percent")),
    Place("STEP p50", 8, _step("p50_s")),
    Place("MIN", 8, _step("min_s")),
    Place("MAX", 8, _step("max_s")),
    Place("INPUT", 6, lambda p: words.percent(input_percent(p))),
)


def header(with_host: bool = False) -> str:
    """The titles above the lines."""
    titles = [padded(place.title, place.width, right=True) for place in PLACES]
    return _line(titles, "HOST" if with_host else None, "TOP OPERATION")


def line(profile: TraceProfile, with_host: bool = False, host: str = "") -> str:
    """One capture; with several hosts, each has a line with its name, which may be given."""
    cells = [padded(place.of(profile), place.width, right=True) for place in PLACES]
    return _line(cells, (host or label(profile)) if with_host else None, _top(profile))


def _line(cells: list[str], host: str | None, last: str) -> str:
    name = [] if host is None else [padded(cut_middle(host, HOST_WIDTH), HOST_WIDTH)]
    return GAP.join([cells[0], *name, *cells[1:], last])
