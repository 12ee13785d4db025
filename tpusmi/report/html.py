"""A Snapshot as a fragment of HTML for notebooks: no script, no link, nothing from elsewhere.

Devices and processes have a row each; many devices are a heat map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tpusmi.model import Device, Notice, Process, Snapshot
from tpusmi.report import concerns, rows, verdicts, words
from tpusmi.report.columns import DEVICE_COLUMNS, PROCESS_COLUMNS, Cell, ColumnSpec, filled
from tpusmi.report.concerns import OF_VERDICT
from tpusmi.report.html_heat_map import SHARES, cell_of, maps
from tpusmi.report.html_slices import slices
from tpusmi.report.markup import ENDED, OLD, STYLE, Markup, bar, joined, tag
from tpusmi.report.select import Remark, recent, remarks
from tpusmi.report.text_grid import fitting
from tpusmi.text import counted

NOTICES_MOST = 6
ROWS_MOST = 32
"""More devices than these are a heat map."""
PROCESSES_MOST = 12
ROOM = 106
"""Characters of a row: with the space around cells these are 800 pixels."""
COMMAND, COMMAND_ROOM = "COMMAND", 20
"""The column that gets the room that is left, and its characters before another has to go for it.
"""
TEXT_ROOM = 24
"""The most characters of another text, as the style has them."""
BAR_ROOM, MEMORY_ROOM = 6, 15  # as the style has them

# Else notebooks take what stands between two dollars of a command line for a formula.
_NO_FORMULAS = "tex2jax_ignore mathjax_ignore"


def fragment(snapshot: Snapshot, standing: str = "", ended: bool = False) -> str:
    """The panel. `standing` says whether it is live; one that has ended is gray as a whole."""
    s = recent(snapshot)
    body = (_devices(s), _processes(s), *slices(s.slices, ROOM), *_notices(s))
    return tag(
        "div",
        Markup(f"<style>{STYLE}</style>"),
        _headline(s, standing, ended),
        tag("div", *body, class_=ENDED if ended else ""),
        class_=f"tpusmi {_NO_FORMULAS}",
    )


def _headline(s: Snapshot, standing: str, ended: bool) -> Markup:
    # With the date: a notebook is opened again later.
    time = words.local_time(s.host.time, "%Y-%m-%d %H:%M:%S %Z")
    libtpu = f"libtpu {s.host.libtpu_version}" if s.host.libtpu_version else ""
    facts = [tag("b", s.host.name), _hardware(s), libtpu, f"as of {time}"]
    if s.simulated:
        facts.insert(0, tag("span", "SIMULATED", class_="tag sim"))
    if standing:
        facts.append(tag("span", standing, class_="tag" if ended else ""))
    return tag("div", joined(filter(None, facts), " · "))


def _hardware(s: Snapshot) -> str:
    """`8 × TPU v5e`, and how many devices those are when it is another number."""
    kinds = Counter(c.kind for c in s.chips) or Counter(d.kind or "device" for d in s.devices)
    text = ", ".join(f"{n} × {kind}" for kind, n in kinds.items()) or "no TPU"
    more = s.chips and len(s.devices) not in (0, len(s.chips))
    return f"{text} ({counted(len(s.devices), 'device')})" if more else text


def _notices(s: Snapshot) -> Iterator[Markup]:
    """What a person can act on, sources that failed, and what to do where nothing is."""
    if not s.devices and not s.processes:
        yield tag("div", "No TPU job seen. In training code: import tpusmi; tpusmi.start()")
    lines = _remarks(s)
    for text, notice, _ in lines[:NOTICES_MOST]:
        for line in [f"! {text}"] if notice is None else concerns.marked(notice):
            yield tag("div", line, class_="warn")
    if len(lines) > NOTICES_MOST:
        yield tag("div", f"and {len(lines) - NOTICES_MOST} more: see tpusmi --once")


def _remarks(s: Snapshot) -> list[Remark]:
    """Each once. The verdict on a stale holder is already below its row."""
    listed = {p.pid for p in s.processes}
    return [
        remark
        for remark in remarks(s)
        if (notice := remark.notice) is None
        or notice.code not in OF_VERDICT
        or notice.pid not in listed
    ]


# -- the tables


def _devices(s: Snapshot) -> Markup:
    """The table or the heat map, with the averages of all; empty when there is no device."""
    if not s.devices:
        return Markup("")
    at = rows.IndexedSnapshot(s)
    if len(s.devices) > ROWS_MOST:
        return joined((maps(at), tag("div", _summary(at))))
    columns, table = _fitted(DEVICE_COLUMNS, at, s.devices, lambda c: _average_text(at, c))
    body = [
        tag("tr", *(_device_cell(s, d, c, cell) for c, cell in zip(columns, cells, strict=True)))
        for d, cells in zip(s.devices, table, strict=True)
    ]
    if len(s.devices) > 1:
        averages = (_average(at, c) for c in columns)
        body.append(tag("tr", *averages, class_="all"))
    return tag("table", _titles(columns), *body)


def _processes(s: Snapshot) -> Markup:
    """A table of them, the dead last; empty when there is none."""
    ordered = sorted(s.processes, key=lambda p: (not p.is_living, not p.is_verified, not p.stale))
    if not ordered:
        return Markup("")
    listed = ordered[:PROCESSES_MOST]
    columns, table = _fitted(PROCESS_COLUMNS, rows.IndexedSnapshot(s), listed, lambda c: "")
    advice = {n.pid: n for n in s.warnings if n.code in OF_VERDICT}
    body = [
        row
        for p, cells in zip(listed, table, strict=True)
        for row in _process(p, columns, cells, advice.get(p.pid))
    ]
    hidden = len(ordered) - PROCESSES_MOST
    more = tag("div", f"and {hidden} more") if hidden > 0 else ""
    return joined((tag("table", _titles(columns), *body), more))


class _HtmlCell(NamedTuple):
    """A cell, and the text in it."""

    cell: Cell
    text: str

    @property
    def title(self) -> str:
        """What the text leaves out."""
        if _is_old(self.cell):
            return _age(self.cell)
        return self.text if len(self.text) > TEXT_ROOM else ""

    @property
    def markup(self) -> str:
        """The text, paler when it is old."""
        return tag("span", self.text, class_=OLD) if _is_old(self.cell) else self.text


def _fitted(
    all_columns: Sequence[ColumnSpec],
    at: rows.IndexedSnapshot,
    items: Sequence[Device | Process],
    below: Callable[[ColumnSpec], str],
) -> tuple[list[ColumnSpec], list[list[_HtmlCell]]]:
    """The columns that a notebook has room for, and the cells of each item. `below` is the text
    under them.
    """
    columns, cells = filled(all_columns, at, items)
    table = [_written(row, any(c.title == "AGE" for c in columns)) for row in cells]
    needs = [
        _need(c, (c.title, below(c), *(row[n].text for row in table)))
        for n, c in enumerate(columns)
    ]
    kept = fitting(columns, needs, ROOM, gap=2)
    return [columns[n] for n in kept], [[row[n] for n in kept] for row in table]


def _written(row: Sequence[Cell], has_age: bool) -> list[_HtmlCell]:
    """The first old value of a row has its age beside it, unless a column shows it. All have it as
    a title.
    """
    first = None if has_age else next((n for n, cell in enumerate(row) if _is_old(cell)), None)
    return [
        _HtmlCell(cell, f"{cell.text} ({_age(cell)})" if n == first else cell.text)
        for n, cell in enumerate(row)
    ]


def _need(column: ColumnSpec, texts: Iterable[str]) -> int:
    """Characters of that column: no number is cut, and nothing is broken into lines."""
    longest = max(map(len, texts))
    if not column.right:
        return min(longest, COMMAND_ROOM if column.title == COMMAND else TEXT_ROOM)
    least = MEMORY_ROOM if column.title == "MEMORY" else BAR_ROOM if column.is_share else 0
    return max(longest, least)


def _titles(columns: Sequence[ColumnSpec]) -> Markup:
    return tag("tr", *(tag("th", c.title, class_=_side(c)) for c in columns))


def _side(column: ColumnSpec) -> str:
    """The class of its cells: numbers are at the right."""
    if column.title == COMMAND:
        return "l c"
    return "" if column.right else "l"


def _is_old(cell: Cell) -> bool:
    return cell.value is not None and not cell.is_fresh and not cell.repeats


def _age(cell: Cell) -> str:
    return "" if cell.value is None else f"{words.elapsed(cell.value.age_s)} old"


def _device_cell(s: Snapshot, d: Device, column: ColumnSpec, written: _HtmlCell) -> Markup:
    cell, text = written.cell, written.markup
    is_drawn = cell.is_fresh and not cell.repeats
    if column.title == "DEVICE":
        about = (d.kind, rows.node(d), f"pid {rows.pids(d)}" if d.owners else "")
        return tag("td", text, class_="l", title=", ".join(filter(None, about)))
    if column.title == "MEMORY":
        memory = rows.memory(s, d)
        if not is_drawn or memory.share is None:
            return tag("td", text, class_="m", title=written.title)
        title = memory.peak_text
        style = bar(memory.share, memory.peak_share)
        return tag("td", text, class_=f"m {words.fullness(memory.share)}", style=style, title=title)
    if column.is_share:
        style = bar(cell.order / 100) if is_drawn else ""
        return tag("td", text, class_="n", style=style, title=written.title)
    return tag("td", text, class_=_side(column), title=written.title)


def _process(
    p: Process, columns: Sequence[ColumnSpec], row: Sequence[_HtmlCell], notice: Notice | None
) -> Iterator[Markup]:
    """Its row, and below it why a person has to look, and what to do."""
    yield tag(
        "tr",
        *(
            tag("td", w.markup, class_=_side(c), title=_user(p) if c.title == "PID" else w.title)
            for c, w in zip(columns, row, strict=True)
        ),
        class_=OLD if verdicts.is_faint(p) else "",
    )
    if p.is_doubtful:
        style = "bad" if p.is_stale else "warn"
        more = concerns.lines(notice)[1:] if notice is not None and p.is_verified else []
        lines = (tag("div", line, class_=style) for line in (verdicts.sentence(p), *more))
        yield tag("tr", tag("td", *lines, class_="l", colspan=str(len(columns))))


def _user(p: Process) -> str:
    return f"user {p.user}" if p.user else ""


# -- averages


def _average(at: rows.IndexedSnapshot, column: ColumnSpec) -> Markup:
    """The cell below a column: the sum or mean of all devices, and of how many as a title."""
    text = _average_text(at, column)
    if not column.is_share:
        return tag("td", text, class_="l" if column.title == "DEVICE" else "")
    return tag("td", text, title=_mean(at, column).removeprefix(text).strip(" ()"))


def _average_text(at: rows.IndexedSnapshot, column: ColumnSpec) -> str:
    if column.title == "DEVICE":
        return f"all {len(at.snapshot.devices)}"
    if column.title == "MEMORY":
        return _all_memory(at.snapshot)
    return _mean(at, column).partition(" (")[0] if column.is_share else ""


def _summary(at: rows.IndexedSnapshot) -> str:
    """The averages as a line."""
    shares = [f"{c.title} {_mean(at, c)}" for c in SHARES]
    return " · ".join((f"all {len(at.snapshot.devices)}: HBM {_all_memory(at.snapshot)}", *shares))


def _mean(at: rows.IndexedSnapshot, column: ColumnSpec) -> str:
    """Over the devices of which it is known, and how many those are when it is not all."""
    cells = [cell_of(at, column, d) for d in at.snapshot.devices]
    values = [cell.order for cell in cells if cell.is_fresh]
    text = words.percent(sum(values) / len(values) if values else None)
    return text + _of(len(values), len(cells))


def _all_memory(s: Snapshot) -> str:
    """Used and limit of all devices of which both are known; a whole chip's is counted once."""
    memories = [rows.memory(s, d) for d in s.devices]
    fresh = [m for m in memories if m.share is not None and m.used and not m.used.stale]
    once = [m for m in fresh if not m.repeats]
    used = sum(m.used.value for m in once if m.used is not None)
    limit = sum(m.limit.value for m in once if m.limit is not None)
    text = words.size_pair(used, limit) if once else words.UNKNOWN
    return text + _of(len(fresh), len(memories))


def _of(some: int, all_of_them: int) -> str:
    return f" ({some} of {all_of_them})" if 0 < some < all_of_them else ""
