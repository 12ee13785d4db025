"""The fleet as one plain table of groups, for pipes, logs and `--once`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot, HostState
from tpusmi.fleet.groups.fleet_groups import MEMORY_PERCENT, FleetGroup, groups
from tpusmi.fleet.groups.fleet_groups import whole as whole_fleet
from tpusmi.fleet.groups.fleet_orders import in_order
from tpusmi.fleet.groups.group_members import HOST, JOB
from tpusmi.fleet.groups.totals import Total
from tpusmi.fleet.report.group_columns import (
    COLUMNS,
    NAME,
    STATE,
    WORST,
    mean_text,
    problems_text,
    sum_text,
)
from tpusmi.fleet.report.group_states import NOT_LIVE
from tpusmi.report import words
from tpusmi.report.columns import ColumnSpec
from tpusmi.report.text_grid import BOLD, DIM, RED, YELLOW, Sheet, as_text, grid, painted
from tpusmi.text import counted

HOSTS_MOST = 16
"""Hosts that are not live, each with its reason: of more, how many more."""
NAMES_MOST = 2
"""Users and slices that a job is described by."""


class TableOf(NamedTuple):
    """What the table is asked for."""

    by: str
    """One of GROUPINGS."""
    order: str
    """A name of ORDERS."""
    filter: str


def table(
    s: FleetSnapshot, whole: FleetSnapshot, of: TableOf, sheet: Sheet, ascii_only: bool
) -> str:
    """The groups of what the filter has let through of the whole."""
    return as_text(_lines(s, whole, of, sheet), ascii_only)


def _lines(s: FleetSnapshot, whole: FleetSnapshot, of: TableOf, sheet: Sheet) -> Iterator[str]:
    yield from _head(s, whole, of, sheet)
    listed = in_order(groups(s, of.by), of.order)
    if listed:
        yield ""
        yield from _grid(listed, of.by, sheet)
    yield from _not_live(s, sheet)
    for problem in s.problems:
        yield painted(words.shortened(problem, sheet.columns), YELLOW, sheet.color)


def _head(s: FleetSnapshot, whole: FleetSnapshot, of: TableOf, sheet: Sheet) -> Iterator[str]:
    g = whole_fleet(s)
    time = datetime.fromtimestamp(s.at_s).strftime("%Y-%m-%d %H:%M:%S")
    simulated = "SIMULATED  " if any(h.simulated for h in whole.hosts) else ""
    yield painted(
        words.shortened(f"{simulated}{s.source}  {time}", sheet.columns), BOLD, sheet.color
    )
    if of.filter:
        text = f"{len(s.hosts)} of {counted(len(whole.hosts), 'host')}: {of.filter}"
        yield words.shortened(text, sheet.columns)
    states = ", ".join(f"{g.in_state(x)} {x}" for x in HostState if g.in_state(x))
    parts = [
        f"{counted(g.hosts, 'host')} ({states})" if states else "no hosts",
        *(sum_text(total) + what for total, what in _counts(g) if not total.is_unknown),
        f"HBM {mean_text(g, MEMORY_PERCENT)}",
        f"MXU {mean_text(g, 'tensorcore_utilization_percent')}",
    ]
    # A line of dashes says nothing.
    parts = parts if g.in_state(HostState.LIVE) else parts[:-2]
    yield words.shortened(" · ".join(parts), sheet.columns)


def _counts(g: FleetGroup) -> tuple[tuple[Total, str], ...]:
    """The sums of chips, each with what it counts."""
    return (g.chips, " chips"), (g.held_chips, " held"), (g.idle_held_chips, " of them idle")


def _of(g: FleetGroup) -> str:
    """The user and the slice of a job; what tells other groups apart."""
    if g.by != JOB:
        return g.detail or " "
    names = [*g.users[:NAMES_MOST], *g.slices[:NAMES_MOST]]
    return " ".join(names) or g.detail or " "


def _problems(g: FleetGroup) -> str:
    # This table has no column for the slowest host.
    return problems_text(g, {f"slow: {x.name}": 1 for x in g.stragglers[:1]})


_BY_TITLE = {c.title: c for c in COLUMNS}
Text = Callable[[FleetGroup], str]


def _shared(title: str, rank: int) -> tuple[ColumnSpec, Text]:
    """A column that the dashboard has as well."""
    c = _BY_TITLE[title]
    return ColumnSpec(title, rank=rank, right=c.right), c.text


_COLUMNS: tuple[tuple[ColumnSpec, Text], ...] = (
    _shared(NAME, rank=0),
    (ColumnSpec("OF", rank=8, optional=True), _of),
    _shared(STATE, rank=1),
    _shared("HOSTS", rank=2),
    _shared("CHIPS", rank=5),
    (ColumnSpec("HELD", rank=6, right=True), lambda g: sum_text(g.held_chips)),
    _shared("IDLE", rank=3),
    _shared("MEMORY", rank=7),
    _shared("HBM", rank=0),
    _shared("MXU", rank=0),
    _shared("DUTY", rank=4),
    _shared("STEP", rank=3),
    (ColumnSpec(WORST, rank=2, optional=True), _problems),
)


def _grid(listed: tuple[FleetGroup, ...], by: str, sheet: Sheet) -> Iterator[str]:
    columns = [c._replace(title=by.upper()) if c.title == NAME else c for c, _ in _COLUMNS]
    rows = [tuple(text(g) for _, text in _COLUMNS) for g in listed]
    kept = [
        n
        for n, c in enumerate(columns)
        if (by != HOST or c.title != "HOSTS")
        and (not c.optional or any(row[n] not in (" ", words.UNKNOWN) for row in rows))
    ]
    styles = {}
    for number, g in enumerate(listed):
        if g.in_state(HostState.LIVE) < g.hosts or g.unreported_hosts:
            place = kept.index(2)
            styles[number, place] = RED if g.in_state(HostState.DOWN) else YELLOW
    chosen = [columns[n] for n in kept]
    yield from grid(chosen, [tuple(row[n] for n in kept) for row in rows], sheet, (), styles)


def _not_live(s: FleetSnapshot, sheet: Sheet) -> Iterator[str]:
    """The hosts whose numbers are not of the present, each with its reason."""
    hosts = sorted((h for h in s.hosts if h.state != HostState.LIVE), key=_by_state)
    if hosts:
        yield ""
    for host in hosts[:HOSTS_MOST]:
        text = f"{host.name} is {host.state}: {host.reason}"
        yield painted(words.shortened(text, sheet.columns), DIM, sheet.color)
    if len(hosts) > HOSTS_MOST:
        yield f"and {len(hosts) - HOSTS_MOST} more; --group host lists all"


def _by_state(h: FleetHost) -> tuple[int, str]:
    return NOT_LIVE.index(h.state), h.name
