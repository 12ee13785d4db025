"""Many devices as a heat map of HTML: a small cell for each, with its number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpusmi.model import Device, Snapshot, Value
from tpusmi.report import color_scale, rows, words
from tpusmi.report.columns import DEVICE_COLUMNS, Cell, ColumnSpec
from tpusmi.report.markup import MAP_COLUMNS, OLD, Markup, heat, joined, tag

SHARES = tuple(c for c in DEVICE_COLUMNS if c.is_share)
_IDLE = next(c for c in DEVICE_COLUMNS if c.title == "IDLE")


LEGEND = tag(
    "span",
    "0 ",
    *(tag("i", "\u00a0", style=heat(n / 10)) for n in range(11)),
    f"\u00a0100 %, {words.UNKNOWN} unknown, gray: old",
    class_="key",
)
"""The scale, and what has no color."""


def maps(at: rows.IndexedSnapshot) -> Markup:
    """How full and how busy, a small cell for each device."""
    of = at.snapshot.devices
    busy = next((c for c in SHARES if any(cell_of(at, c, d).value for d in of)), SHARES[0])
    memory = _map(of, "HBM, % of the limit", (_memory_cell(at.snapshot, d) for d in of))
    shares = _map(of, f"{busy.title}, %", (_busy_cell(at, d, busy) for d in of))
    return tag("div", memory, shares, class_="maps")


def cell_of(at: rows.IndexedSnapshot, column: ColumnSpec, d: Device) -> Cell:
    """What a column that shows a value has of the device."""
    assert column.get is not None
    return column.get(at, d)


def _map(of: tuple[Device, ...], title: str, cells: Iterable[Markup]) -> Markup:
    # Blanks are for those who see the text without its style.
    grid = tag("div", joined(_labelled(of, cells), " "), class_="map")
    return tag("div", tag("b", title), " ", LEGEND, grid)


def _labelled(of: tuple[Device, ...], cells: Iterable[Markup]) -> Iterator[Markup]:
    """The cells, with the name of the first device in front of each line."""
    for i, cell in enumerate(cells):
        if i % MAP_COLUMNS == 0:
            yield tag("span", of[i].name)
        yield cell


def _memory_cell(s: Snapshot, d: Device) -> Markup:
    memory = rows.memory(s, d)
    return _small_cell(f"{d.name} {memory.text}", memory.share, memory.used)


def _busy_cell(at: rows.IndexedSnapshot, d: Device, busy: ColumnSpec) -> Markup:
    cells = ((c, cell_of(at, c, d)) for c in SHARES)
    about = [f"{c.title} {words.percent(cell.order)}" for c, cell in cells if cell.value]
    idle = cell_of(at, _IDLE, d).order
    about += [] if idle is None else [f"idle {words.idle(idle)}"]
    cell = cell_of(at, busy, d)
    share = None if cell.order is None else cell.order / 100
    return _small_cell(" ".join((d.name, *about)), share, cell.value)


def _small_cell(title: str, share: float | None, value: Value | None) -> Markup:
    """One device: a number on its color; a dash where it is unknown, gray where it is old."""
    if share is None or value is None:
        return tag("i", words.UNKNOWN, title=title)
    text = color_scale.percent(share)
    if value.stale:
        return tag("i", text, title=f"{title} ({words.elapsed(value.age_s)} old)", class_=OLD)
    return tag("i", text, title=title, style=heat(share))
