"""A Snapshot as a fragment of HTML for notebooks: no script, no link, nothing from elsewhere.

Devices and processes have a row each; many devices are a heat map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tpusmi.model import STALE_HOLDER, SUSPECT_HOLDER, Device, Process, Snapshot, Value
from tpusmi.report import rows, verdicts, words
from tpusmi.report.columns import DEVICE_COLUMNS, PROCESS_COLUMNS, Cell, ColumnSpec, filled
from tpusmi.report.markup import MAP_COLUMNS, OLD, STYLE, Markup, bar, joined, tag, within
from tpusmi.report.select import recent, remarks
from tpusmi.report.text_grid import fitting
from tpusmi.text import counted

NOTICES_MOST = 6
ROWS_MOST = 32
"""More devices than these are a heat map."""
PROCESSES_MOST = 12
ROOM = 110
"""Characters of a row: notebooks are about so wide."""
TEXT_ROOM = 20
"""Characters for a text before another column has to go for it."""
_SHARES = tuple(c for c in DEVICE_COLUMNS if c.is_share)
_IDLE = next(c for c in DEVICE_COLUMNS if c.title == "IDLE")

# Else notebooks take what stands between two dollars of a command line for a formula.
_NO_FORMULAS = "tex2jax_ignore mathjax_ignore"


def fragment(snapshot: Snapshot, standing: str = "", ended: bool = False) -> str:
    """The panel. `standing` says whether it is live; one that has ended is gray as a whole."""
    s = recent(snapshot)
    body = (_devices(s), _processes(s), *_notices(s))
    return tag(
        "div",
        Markup(f"<style>{STYLE}</style>"),
        _headline(s, standing, ended),
        tag("div", *body, class_=OLD if ended else ""),
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
    for text in lines[:NOTICES_MOST]:
        yield tag("div", f"! {text}", class_="warn")
    if len(lines) > NOTICES_MOST:
        yield tag("div", f"and {len(lines) - NOTICES_MOST} more: see tpusmi --once")


def _remarks(s: Snapshot) -> list[str]:
    """Each once. The verdict on a stale holder is already below its row."""
    listed = {p.pid for p in s.processes}
    verdict_codes = (STALE_HOLDER, SUSPECT_HOLDER)
    return [
        text
        for text, notice, _ in remarks(s)
        if notice is None or notice.code not in verdict_codes or notice.pid not in listed
    ]


# -- the tables


def _devices(s: Snapshot) -> Markup:
    """The table or the heat map, with the averages of all; empty when there is no device."""
    if not s.devices:
        return Markup("")
    at = rows.IndexedSnapshot(s)
    if len(s.devices) > ROWS_MOST:
        return joined((_maps(at), tag("div", _summary(at))))
    columns, table = _fitted(DEVICE_COLUMNS, at, s.devices)
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
    columns, table = _fitted(PROCESS_COLUMNS, rows.IndexedSnapshot(s), listed)
    body = [
        row for p, cells in zip(listed, table, strict=True) for row in _process(p, columns, cells)
    ]
    hidden = len(ordered) - PROCESSES_MOST
    more = tag("div", f"and {hidden} more") if hidden > 0 else ""
    return joined((tag("table", _titles(columns), *body), more))


def _fitted(
    all_columns: Sequence[ColumnSpec], at: rows.IndexedSnapshot, items: Sequence[Device | Process]
) -> tuple[list[ColumnSpec], list[list[Cell]]]:
    """The columns that a notebook has room for, and the cells of each item."""
    columns, table = filled(all_columns, at, items)
    texts = [(c.title, *(cells[n].text for cells in table)) for n, c in enumerate(columns)]
    longest = [max(map(len, column)) for column in texts]
    # Texts are broken into lines, numbers are not.
    needs = [n if c.right else min(n, TEXT_ROOM) for c, n in zip(columns, longest, strict=True)]
    kept = fitting(columns, needs, ROOM, gap=2)
    return [columns[n] for n in kept], [[cells[n] for n in kept] for cells in table]


def _titles(columns: Sequence[ColumnSpec]) -> Markup:
    return tag("tr", *(tag("th", c.title, class_="" if c.right else "l") for c in columns))


def _text(cell: Cell) -> str:
    """The value as a person reads it: gray with its age when it is old."""
    if cell.value is None or cell.is_fresh or cell.repeats:
        return cell.text
    return tag("span", f"{cell.text} ({words.elapsed(cell.value.age_s)} old)", class_=OLD)


def _device_cell(s: Snapshot, d: Device, column: ColumnSpec, cell: Cell) -> Markup:
    text, is_drawn = _text(cell), cell.is_fresh and not cell.repeats
    if column.title == "DEVICE":
        about = (d.kind, rows.node(d), f"pid {rows.pids(d)}" if d.owners else "")
        return tag("td", text, class_="l", title=", ".join(filter(None, about)))
    if column.title == "MEMORY":
        memory = rows.memory(s, d)
        if not is_drawn or memory.share is None:
            return tag("td", text, class_="m")
        title = (
            ""
            if memory.peak is None
            else f"peak {words.source_mark(memory.peak)}{words.size(memory.peak.value)}"
        )
        style = bar(memory.share, memory.peak_share)
        return tag("td", text, class_=f"m {words.fullness(memory.share)}", style=style, title=title)
    if column.is_share:
        return tag("td", text, class_="n", style=bar(cell.order / 100) if is_drawn else "")
    return tag("td", text, class_="" if column.right else "l")


def _process(p: Process, columns: Sequence[ColumnSpec], cells: Sequence[Cell]) -> Iterator[Markup]:
    """Its row, and below it why a person has to look."""
    yield tag(
        "tr",
        *(
            tag("td", _text(cell), class_="" if c.right else "l")
            for c, cell in zip(columns, cells, strict=True)
        ),
        class_=OLD if verdicts.is_faint(p) else "",
    )
    if p.is_doubtful:
        style = "bad" if p.is_stale else "warn"
        reason = tag("div", verdicts.sentence(p), class_=style)
        yield tag("tr", tag("td", reason, class_="l", colspan=str(len(columns))))


# -- averages


def _average(at: rows.IndexedSnapshot, column: ColumnSpec) -> Markup:
    """The cell below a column: the sum or mean of all devices."""
    if column.title == "DEVICE":
        return tag("td", f"all {len(at.snapshot.devices)}", class_="l")
    text = _all_memory(at.snapshot) if column.title == "MEMORY" else ""
    return tag("td", _mean(at, column) if column.is_share else text)


def _summary(at: rows.IndexedSnapshot) -> str:
    """The averages as a line."""
    shares = [f"{c.title} {_mean(at, c)}" for c in _SHARES]
    return " · ".join((f"all {len(at.snapshot.devices)}: HBM {_all_memory(at.snapshot)}", *shares))


def _mean(at: rows.IndexedSnapshot, column: ColumnSpec) -> str:
    """Over the devices of which it is known, and how many those are when it is not all."""
    cells = [_cell_of(at, column, d) for d in at.snapshot.devices]
    values = [cell.order for cell in cells if cell.is_fresh]
    text = words.percent(sum(values) / len(values) if values else None)
    return text + _of(len(values), len(cells))


def _cell_of(at: rows.IndexedSnapshot, column: ColumnSpec, d: Device) -> Cell:
    assert column.get is not None
    return column.get(at, d)


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


# -- the heat map


def _maps(at: rows.IndexedSnapshot) -> Markup:
    """How full and how busy, a small cell for each device."""
    of = at.snapshot.devices
    busy = next((c for c in _SHARES if any(_cell_of(at, c, d).value for d in of)), _SHARES[0])
    memory = _map(of, "HBM, % of the limit", (_memory_cell(at.snapshot, d) for d in of))
    shares = _map(of, f"{busy.title}, %", (_busy_cell(at, d, busy) for d in of))
    return tag("div", memory, shares, class_="maps")


def _map(of: tuple[Device, ...], title: str, cells: Iterable[Markup]) -> Markup:
    # Blanks are for those who see the text without its style.
    grid = tag("div", joined(_labelled(of, cells), " "), class_="map")
    return tag("div", tag("b", title), grid)


def _labelled(of: tuple[Device, ...], cells: Iterable[Markup]) -> Iterator[Markup]:
    """The cells, with the name of the first device in front of each line."""
    for i, cell in enumerate(cells):
        if i % MAP_COLUMNS == 0:
            yield tag("span", of[i].name)
        yield cell


def _memory_cell(s: Snapshot, d: Device) -> Markup:
    memory = rows.memory(s, d)
    look = words.fullness(memory.share or 0)
    return _small_cell(f"{d.name} {memory.text}", memory.share, memory.used, look)


def _busy_cell(at: rows.IndexedSnapshot, d: Device, busy: ColumnSpec) -> Markup:
    cells = ((c, _cell_of(at, c, d)) for c in _SHARES)
    about = [f"{c.title} {words.percent(cell.order)}" for c, cell in cells if cell.value]
    idle = _cell_of(at, _IDLE, d).order
    about += [] if idle is None else [f"idle {words.idle(idle)}"]
    cell = _cell_of(at, busy, d)
    share = None if cell.order is None else cell.order / 100
    return _small_cell(" ".join((d.name, *about)), share, cell.value, "")


def _small_cell(title: str, share: float | None, value: Value | None, look: str) -> Markup:
    """One device: a number on a color; a dash where it is unknown, gray where it is old."""
    if share is None or value is None:
        return tag("i", words.UNKNOWN, title=title)
    text = f"{100 * share:.0f}"
    if value.stale:
        return tag("i", text, title=f"{title} ({words.elapsed(value.age_s)} old)", class_=OLD)
    return tag("i", text, title=title, class_=look, style=f"--v:{0.1 + 0.7 * within(share):.2f}")
