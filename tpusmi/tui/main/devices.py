"""How the dashboard draws the columns of devices: with bars, colors and a graph."""

from __future__ import annotations

from dataclasses import replace

from rich.segment import Segment

from tpusmi.model import Device
from tpusmi.report import rows, words
from tpusmi.report.columns import DEVICE_COLUMNS, Cell, ColumnSpec
from tpusmi.tui.draw.columns import Cells, Column, marked
from tpusmi.tui.draw.graphs import QUANTITIES
from tpusmi.tui.draw.look import Row, fill_style
from tpusmi.tui.scene import Scene

MEMORY_WIDTH = len("123.4/192.0 GiB")
LEAST_BAR, MOST_BAR = 7, 20
SHARE_WIDTH = len("<0.1 %")
LEAST_SHARE_BAR, MOST_SHARE_BAR = 4, 12
GRAPH_MOST_S = 300
"""What the graph in a row covers at most: it has few columns."""


class DeviceTable(Cells[Device]):
    """Draws cells of devices."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.look)
        self._graphs = scene.graphs
        self.quantity = QUANTITIES[0]
        """What the graph is of."""
        self.span_s = GRAPH_MOST_S
        """How far back it goes."""

    def columns(self) -> tuple[Column[Device], ...]:
        """The table, left to right."""
        return tuple(map(self._column, DEVICE_COLUMNS))

    def _column(self, shared: ColumnSpec) -> Column[Device]:
        if shared.get is None:
            return replace(self.column(shared, self._graph), heading=self._span)
        if shared.title == "DEVICE":
            return self.column(shared, self._name)
        if shared.title == "MEMORY":
            least, most = (MEMORY_WIDTH + 1 + bar for bar in (LEAST_BAR, MOST_BAR))
            return replace(self.column(shared, self._memory), width=least, most=most)
        if shared.is_share:
            most, least_more = SHARE_WIDTH + 1 + MOST_SHARE_BAR, LEAST_SHARE_BAR + 1
            return replace(self.column(shared, self._share), most=most, least_more=least_more)
        return self.column(shared)

    def _name(self, d: Device, cell: Cell, width: int) -> Row:
        return self.look.cell(cell.text, width, "bold")

    def _share(self, d: Device, cell: Cell, width: int) -> Row:
        """A percentage, behind a bar where there is room."""
        style = "dim" if cell.repeats else self.style(d, cell.value)
        number = self.look.cell(marked(cell), SHARE_WIDTH, style, right=True)
        bar = width - SHARE_WIDTH - 1
        if bar < LEAST_SHARE_BAR or not cell.is_fresh:
            return (*self.look.cell("", width - SHARE_WIDTH), *number)
        drawn = self.look.bar(cell.order / 100, None, bar, "graph")
        return (*drawn, *self.look.cell("", 1), *number)

    def _memory(self, d: Device, cell: Cell, width: int) -> Row:
        """Used of limit after a bar; the age of an old value where the bar would be."""
        memory = None if self.at is None else rows.memory(self.at.snapshot, d)
        if memory is None or memory.share is None or cell.repeats or not cell.is_fresh:
            is_old = cell.value is not None and cell.value.stale and not cell.repeats
            age = f"{words.elapsed(cell.value.age_s)} old" if is_old and cell.value else ""
            style = "dim" if is_old else "plain"
            number = self.look.cell(cell.text, MEMORY_WIDTH, style, right=True)
            return (*self.look.cell(age, width - MEMORY_WIDTH, "dim"), *number)
        room, style = width - MEMORY_WIDTH - 1, fill_style(memory.share)
        bar = self.look.bar(memory.share, memory.peak_share, room, style)
        return (*bar, *self.look.cell(cell.text, MEMORY_WIDTH + 1, right=True))

    def _span(self) -> str:
        """`5 MIN`."""
        return f"{self.span_s // 60} MIN"

    def _graph(self, d: Device, cell: Cell, width: int) -> Row:
        """The last minutes; of live arrays where the memory in use is unknown."""
        if self.at is None:
            return self.look.cell("", width)
        s, metric = self.at.snapshot, self.quantity.metric
        values = self._graphs.of_device(s, d, metric, self.span_s, width)
        if metric == "hbm_used_bytes" and values == [None] * width:
            values = self._graphs.of_device(s, d, "live_array_bytes", self.span_s, width)
        top = 100.0
        if metric == "hbm_used_bytes":
            limit = rows.memory(s, d).limit
            most = max((v for v in values if v is not None), default=0.0)
            top = (limit and limit.value) or most
        return (Segment(self.look.spark(values, top, width), self.look.style["graph"]),)
