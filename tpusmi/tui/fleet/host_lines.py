"""What the page of a host says: who it is, what is wrong, its devices and processes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tpusmi.fleet.fleet_figures import FleetDevice, FleetHost, FleetProcess, HostState, shown_name
from tpusmi.fleet.fleet_series import SHOWN_OF_DEVICES, SHOWN_OF_PROCESSES
from tpusmi.fleet.groups.slice_wide import ABOUT_SLICES
from tpusmi.fleet.groups.totals import LIMIT, USED, memory
from tpusmi.model import (
    CHIP,
    DEVICE,
    DEVICE_METRICS,
    PROCESS,
    PROCESS_METRICS,
    Metric,
    Verdict,
    metric,
)
from tpusmi.model.servers import PASSING_MOST, UNUSABLE
from tpusmi.report import words
from tpusmi.report.columns import ColumnSpec
from tpusmi.report.text_grid import Sheet, grid
from tpusmi.report.verdicts import MARKS
from tpusmi.text import clean, counted
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.notice_lines import notice_rows
from tpusmi.tui.fleet import fleet_notices
from tpusmi.tui.fleet.fleet_chrome import STATE_STYLES

TEXT_MOST = 200
LINKS_SHOWN = 8
HEALTH = ((1, "passing faults"), (PASSING_MOST + 1, "a lasting fault"), (UNUSABLE, "unusable"))
NO_DEVICES = "Its devices are unknown."
NO_PROCESSES = "Its processes are unknown."


class HostColumn(NamedTuple):
    """A column of one of the tables, and its cells."""

    spec: ColumnSpec
    text: Callable[[Any], str]
    has_age: bool = False
    """An old one is in parentheses, which need no color to see."""
    usual: str = ""
    """What says nothing: the column is left out where it has nothing else."""


def head(look: Look, host: FleetHost, width: int) -> Iterator[Row]:
    """Its state and why, then the facts about the machine."""
    state = [(str(host.state), STATE_STYLES[host.state])]
    if host.age_s is not None:
        state.append((f", {words.elapsed(host.age_s)} old", "dim"))
    yield look.line(("state ", "plain"), *state)
    if host.reason:
        yield from look.wrapped(clean(host.reason, TEXT_MOST), width, "warn")
    facts = [
        ("exporter", host.address),
        ("slice", host.slice),
        ("worker", None if host.worker is None else str(host.worker)),
        ("topology", host.topology),
        ("type", host.accelerator_type),
        ("chips", _chips(host)),
    ]
    text = look.joined(f"{name} {clean(fact, TEXT_MOST)}" for name, fact in facts if fact)
    yield from look.wrapped(text, width, "plain")


def _chips(host: FleetHost) -> str | None:
    if host.chips is None:
        return None
    held = "" if host.held_chips is None else f" ({host.held_chips} held)"
    return f"{host.chips}{held}"


def notices(
    look: Look, host: FleetHost, width: int, of_slice: Sequence[FleetHost] = ()
) -> Iterator[Row]:
    """What is wrong with it, and what to do; then once what all hosts of its slice have, and which
    of them it is about.
    """
    for notice in host.notices:
        if notice.code not in ABOUT_SLICES:
            yield from notice_rows(look, fleet_notices.of_host(notice), width, with_pid=True)
    for about in fleet_notices.about_slice(host, of_slice):
        yield from notice_rows(look, about, width)
    bad = sorted((link for link in host.links if link.health), key=lambda link: -link.health)
    for link in bad[:LINKS_SHOWN]:
        what = next(text for least, text in reversed(HEALTH) if link.health >= least)
        text = (
            f"chip {link.chip}, link {clean(link.name, 40)}: {what} ({link.health} of {UNUSABLE})"
        )
        yield look.line(("! ", "bad"), (text, "warn"))
    if len(bad) > LINKS_SHOWN:
        yield look.line((f"  {counted(len(bad) - LINKS_SHOWN, 'more link')}", "dim"))


def devices(look: Look, host: FleetHost, width: int) -> Iterator[Row]:
    """The table of its devices."""
    yield look.line((f"DEVICES ({len(host.devices)})", "title"))
    is_old = host.state != HostState.LIVE
    columns = [*_DEVICE_COLUMNS, *_more(DEVICE_METRICS, SHOWN_OF_DEVICES, host.devices)]
    yield from _table(look, columns, host.devices, width, is_old) or [_none(look, NO_DEVICES)]


def processes(look: Look, host: FleetHost, width: int) -> Iterator[Row]:
    """The table of its processes."""
    yield look.line((f"PROCESSES ({len(host.processes)})", "title"))
    is_old = host.state != HostState.LIVE
    more = _more(PROCESS_METRICS, SHOWN_OF_PROCESSES, host.processes)
    columns = [*_PROCESS_COLUMNS, *more, _COMMAND]
    yield from _table(look, columns, host.processes, width, is_old) or [_none(look, NO_PROCESSES)]


def _none(look: Look, text: str) -> Row:
    return look.line((text, "dim"))


def _table(
    look: Look, columns: Sequence[HostColumn], things: Sequence[Any], width: int, is_old: bool
) -> list[Row]:
    """The titles and a line for each thing, old ones gray; columns without any value are left
    out.
    """
    if not things:
        return []
    cells = [[_cell(c, thing, is_old) for c in columns] for thing in things]
    kept = [
        n
        for n, c in enumerate(columns)
        if not c.spec.optional or any(_says_something(c, thing) for thing in things)
    ]
    sheet = Sheet(color=False, columns=width)
    specs = [columns[n].spec for n in kept]
    titles, *lines = grid(specs, [tuple(row[n] for n in kept) for row in cells], sheet)
    style = "dim" if is_old else "plain"
    return [look.line((titles, "bold")), *(look.line((line, style)) for line in lines)]


def _says_something(c: HostColumn, thing: Any) -> bool:
    return c.text(thing) not in (words.UNKNOWN, c.usual)


def _cell(c: HostColumn, thing: Any, is_old: bool) -> str:
    text = clean(c.text(thing), TEXT_MOST)
    return f"({text})" if is_old and c.has_age and text != words.UNKNOWN else text


def _more(
    metrics: Sequence[Metric], shown: Sequence[str], things: Sequence[FleetDevice | FleetProcess]
) -> list[HostColumn]:
    """Columns of all other metrics that are known."""
    known = {name for thing in things for name in thing.values}
    return [
        _of_metric(m, rank=20 + n)
        for n, m in enumerate(metrics)
        if m.name in known and m.name not in shown
    ]


def _of_metric(m: Metric, rank: int) -> HostColumn:
    read = words.idle if m.name == "idle_s" else words.reader(m.unit)
    spec = ColumnSpec(m.title, m.help, rank=rank, right=True, optional=True)
    return HostColumn(spec, lambda thing: read(thing.values.get(m.name)), has_age=True)


def _memory_text(d: FleetDevice) -> str:
    return words.size_pair(*memory(d))


def _coords(d: FleetDevice) -> str:
    return words.UNKNOWN if d.coords is None else ",".join(map(str, d.coords))


def _or_dash(value: object) -> str:
    return words.UNKNOWN if value is None or value == "" else str(value)


def _held(d: FleetDevice) -> str:
    if d.pid is not None:
        return str(d.pid)
    return words.UNKNOWN if d.holders is None else f"{d.holders} held" if d.holders else "free"


def _verdict(p: FleetProcess) -> str:
    return words.UNKNOWN if p.verdict is None else MARKS.get(p.verdict, p.verdict)


def _rank(p: FleetProcess) -> str:
    if p.process_index is None:
        return words.UNKNOWN
    return f"{p.process_index}" + (f"/{p.process_count}" if p.process_count else "")


_OF_DEVICE = tuple(name for name in SHOWN_OF_DEVICES if name not in (USED, LIMIT))
# fmt: off
_DEVICE_COLUMNS = (
    HostColumn(ColumnSpec("DEVICE"), shown_name),
    HostColumn(ColumnSpec("CHIP", rank=8, right=True, optional=True), lambda d: _or_dash(d.chip)),
    HostColumn(ColumnSpec("PID", rank=4, right=True, optional=True), _held),
    HostColumn(ColumnSpec("KIND", rank=12, optional=True), lambda d: _or_dash(d.kind)),
    HostColumn(ColumnSpec("COORDS", rank=10, optional=True), _coords),
    HostColumn(ColumnSpec("MEMORY", rank=1, right=True), _memory_text, has_age=True),
    *(_of_metric(metric(DEVICE, name), rank) for rank, name in enumerate(_OF_DEVICE, 2)),
    _of_metric(metric(CHIP, "throttle_percent"), rank=6)._replace(usual=words.percent(0)),
    HostColumn(ColumnSpec("JOB", rank=9, optional=True), lambda d: _or_dash(d.job)),
)
_PROCESS_COLUMNS = (
    HostColumn(ColumnSpec("PID", right=True), lambda p: str(p.pid)),
    HostColumn(ColumnSpec("USER", rank=6, optional=True), lambda p: _or_dash(p.user)),
    HostColumn(ColumnSpec("JOB", rank=2, optional=True), lambda p: _or_dash(p.job)),
    HostColumn(ColumnSpec("STATE", rank=5, optional=True), lambda p: _or_dash(p.state),
        has_age=True),
    HostColumn(ColumnSpec("PHASE", rank=4, optional=True), lambda p: _or_dash(p.phase),
        has_age=True),
    HostColumn(ColumnSpec("VERDICT", rank=8, optional=True), _verdict, has_age=True,
        usual=MARKS[Verdict.NOT_STALE]),
    HostColumn(ColumnSpec("PROC", rank=9, right=True, optional=True), _rank),
    *(_of_metric(metric(PROCESS, name), rank) for rank, name in enumerate(SHOWN_OF_PROCESSES, 3)),
)
_COMMAND = HostColumn(ColumnSpec("COMMAND", rank=7, optional=True),
    lambda p: words.command(p.command) if p.command else words.UNKNOWN)
# fmt: on
