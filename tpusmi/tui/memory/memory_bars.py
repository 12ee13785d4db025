"""How full the memory is: sums, bars for them, and a graph over time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from tpusmi.model import Device, Snapshot, Value
from tpusmi.model.several import total
from tpusmi.report import words
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Look, Row, fill_style
from tpusmi.tui.process.memory_curve import Holder
from tpusmi.tui.scene import Scene

NAME_WIDTH = 8
PERCENT_WIDTH = 7
CARD_WIDTH, CARD_LINES = 36, 4
"""A bar for each device is drawn where there is room for all."""
OTHER, OTHER_ASCII = "╍", "="
"""In a bar, the memory in use that is in no live array."""
LEAST_GRAPH = 8
"""The least lines of a graph, its title and its time axis included."""


class Figures(NamedTuple):
    """The memory of some devices, summed."""

    used: Value | None
    limit: Value | None
    live: Value | None
    arrays: Value | None
    reserved: Value | None

    @property
    def ratio(self) -> float | None:
        """Share of the limit that is in use; None where it is unknown."""
        used, limit = self.used, self.limit
        return used.value / limit.value if used and limit and limit.value else None

    @property
    def other_bytes(self) -> float | None:
        """In use and in no live array; None if unknown, or if the two are not of the same time."""
        if self.used is None or self.live is None or self.live.value > self.used.value:
            return None
        return self.used.value - self.live.value


def figures(s: Snapshot, devices: Sequence[Device]) -> Figures:
    """The sums, each None unless every device has a value."""
    return Figures(
        used=total(s, "hbm_used_bytes", devices),
        limit=total(s, "hbm_limit_bytes", devices),
        live=total(s, "live_array_bytes", devices),
        arrays=total(s, "live_arrays", devices),
        reserved=total(s, "hbm_reserved_bytes", devices),
    )


def bar_glyphs(look: Look) -> tuple[str, str, str]:
    """The glyphs of live arrays, of other memory in use, and of free memory."""
    other = OTHER_ASCII if look.only_ascii else OTHER
    return look.glyphs.bar, other, look.glyphs.track


def split_bar(look: Look, memory: Figures, width: int) -> Row:
    """A bar of live arrays, other memory in use, and free memory."""
    if memory.used is None or memory.limit is None or memory.ratio is None:
        return look.cell("", width)
    if memory.used.stale:
        return look.cell(f"{words.elapsed(memory.used.age_s)} old", width, "dim")
    full = min(max(memory.ratio, 0.0), 1.0)
    live = full if memory.live is None else min(memory.live.value / memory.limit.value, full)
    upto, filled = round(live * width), round(full * width)
    live_glyph, other_glyph, free_glyph = bar_glyphs(look)
    return look.line(
        (live_glyph * upto, fill_style(full)),
        (other_glyph * (filled - upto), "graph"),
        (free_glyph * (width - filled), "dim"),
    )


def percent_cell(look: Look, memory: Figures, style: str) -> Row:
    """The share in use; dim where it is unknown or stale."""
    text = words.percent(None if memory.ratio is None else 100 * memory.ratio)
    is_old = memory.used is None or memory.used.stale
    return look.cell(text, PERCENT_WIDTH, "dim" if is_old else style, right=True)


def cards(look: Look, s: Snapshot, devices: Sequence[Device], width: int) -> list[Row]:
    """A bar for each device, several on a line; none for a single device, or for too many."""
    across = max(1, (width - NAME_WIDTH) // CARD_WIDTH)
    if len(devices) < 2 or -(-len(devices) // across) > CARD_LINES:
        return []
    lines = []
    for start in range(0, len(devices), across):
        row = look.cell("", NAME_WIDTH)
        for device in devices[start : start + across]:
            row = (*row, *_card(look, s, device))
        lines.append(row)
    return lines


def _card(look: Look, s: Snapshot, d: Device) -> Row:
    memory, name_width, gap = figures(s, (d,)), 8, 3
    return (
        *look.cell(d.own_name, name_width, "bold"),
        *split_bar(look, memory, CARD_WIDTH - name_width - PERCENT_WIDTH - gap),
        *percent_cell(look, memory, "plain"),
        *look.cell("", gap),
    )


class MemoryGraph(Lines):
    """The memory over time, in the lines that the tree leaves over."""

    def __init__(self, look: Look, id: str) -> None:
        super().__init__(look, id=id)
        self._tree: Hashable = None
        self._most_rows = 0
        """The most rows of that tree so far: one that goes and comes again moves nothing."""

    def height_beside(self, tree: Hashable, rows: int, room: int) -> int:
        """Lines beside a tree with that many rows. `tree` changes when the user unfolds, filters
        or sorts it.
        """
        self._most_rows = max(rows, self._most_rows) if tree == self._tree else rows
        self._tree = tree
        left = room - self._most_rows
        return left if left >= LEAST_GRAPH else 0

    def draw(self, scene: Scene, holder: Holder, span_s: int, width: int, height: int) -> None:
        """Draw the graph in that many lines."""
        count = plot.values_across(self.look, width)
        curve = holder.curve(scene.graphs, span_s, count) if height else None
        if curve is None:
            self.show(())
        else:
            graph = plot.graph(self.look, curve, width, height - 1)
            self.show([*graph, scene.axis(span_s, width)])
