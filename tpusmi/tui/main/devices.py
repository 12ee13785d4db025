"""The device table: what each column shows of a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rich.segment import Segment

from tpusmi.model import Device, Process, Value
from tpusmi.report import rows, words
from tpusmi.tui.draw.columns import Cells, Column, age, marked
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
        bar = MEMORY_WIDTH + 1
        return (
            Column("DEVICE", self._name, 6, most=16, text=lambda d: d.name),
            Column("CHIP", self.plain(_chip, right=True), 4, 8, right=True, known=_is_of_chip),
            Column("NODE", self.plain(rows.node), 6, 11, 14, text=rows.node, known=_has_node),
            Column("PID", self._owner, 5, 4, most=10, right=True, text=rows.pids),
            Column("KIND", self.plain(_kind), 4, 9, most=16, text=_kind),
            Column("MEMORY", self._memory, bar + LEAST_BAR, 1, most=bar + MOST_BAR),
            self._optional("PEAK", "hbm_peak_bytes", words.size, 9, 10),
            self._optional("ARRAYS", "live_arrays", words.count, 6, 8),
            self._optional("LIVE", "live_array_bytes", words.size, 9, 7),
            self._share("MXU", "tensorcore_utilization_percent", 2),
            self._share("DUTY", "duty_cycle_percent", 2),
            self._share("BW", "hbm_bandwidth_utilization_percent", 3),
            self._optional("IDLE", "idle_s", words.idle, 8, 5),
            self._optional("QUEUE", "hlo_queue_size", words.count, 5, 6),
            Column("PHASE", self._phase, 9, 6, known=self._has_phase),
            Column("MFU", self._mfu, 6, 5, right=True, known=self._knows_mfu),
            Column("SPAN", self._graph, 5, 4, most=60, heading=self._span),
        )

    def _measured(
        self, title: str, name: str, read: Callable[[float | None], str], width: int, rank: int
    ) -> Column[Device]:
        """A column of numbers, some of which may be of the whole chip."""

        def draw(d: Device, cell: int) -> Row:
            found = self._shown(name, d)
            if found.repeats:
                return self.look.cell(rows.DITTO, cell, "dim", right=True)
            text = marked(read(found.value.value if found.value else None), found.value)
            return self.look.cell(text, cell, self.style(d, found.value), right=True)

        return Column(title, draw, width, rank, right=True)

    def _share(self, title: str, name: str, rank: int) -> Column[Device]:
        """A column of percentages, behind a bar where there is room."""
        number = self._measured(title, name, words.percent, SHARE_WIDTH, rank)

        def draw(d: Device, cell: int) -> Row:
            bar, value = cell - SHARE_WIDTH - 1, self._shown(name, d).value
            if bar < LEAST_SHARE_BAR or value is None or value.stale:
                return (*self.look.cell("", cell - SHARE_WIDTH), *number.draw(d, SHARE_WIDTH))
            drawn = self.look.bar(value.value / 100, None, bar, "graph")
            return (*drawn, *self.look.cell("", 1), *number.draw(d, SHARE_WIDTH))

        most, least_more = SHARE_WIDTH + 1 + MOST_SHARE_BAR, LEAST_SHARE_BAR + 1
        return replace(number, draw=draw, most=most, least_more=least_more)

    def _optional(
        self, title: str, name: str, read: Callable[[float | None], str], width: int, rank: int
    ) -> Column[Device]:
        """The same, for what is not known everywhere."""
        column = self._measured(title, name, read, width, rank)
        return replace(column, known=lambda d: self._shown(name, d).value is not None)

    def _shown(self, name: str, d: Device) -> rows.Shown:
        return rows.Shown(None) if self.snapshot is None else rows.shown(self.snapshot, d, name)

    def _mfu(self, d: Device, width: int) -> Row:
        found = None if self.snapshot is None else rows.mfu(self.snapshot, d)
        text = marked(words.percent(found.value if found else None), found)
        return self.look.cell(text, width, self.style(d, found), right=True)

    def _knows_mfu(self, d: Device) -> bool:
        return self.snapshot is not None and rows.mfu(self.snapshot, d) is not None

    def _phase(self, d: Device, width: int) -> Row:
        """What the job on it does, by its agent."""
        p = self._owning(d)
        return self.look.cell((p and p.status) or words.UNKNOWN, width)

    def _has_phase(self, d: Device) -> bool:
        return self._owning(d) is not None

    def _owning(self, d: Device) -> Process | None:
        found = () if self.snapshot is None else self.snapshot.processes
        return next((p for p in found if p.key in d.owners and p.phase), None)

    def _owner(self, d: Device, width: int) -> Row:
        return self.look.cell(rows.pids(d) or words.UNKNOWN, width, right=True)

    def _name(self, d: Device, width: int) -> Row:
        return self.look.cell(d.name, width, "bold")

    def _memory(self, d: Device, width: int) -> Row:
        """Used of limit after a bar; live arrays, and said so, where nobody tells the former."""
        if self.snapshot is None:
            return self.look.cell("", width)
        memory = rows.memory(self.snapshot, d)
        used, ratio = memory.used, memory.share
        if memory.repeats:
            return self._noted(None, rows.DITTO, width)
        if used is None:
            return self._live(d, memory.text, width)
        if used.stale or ratio is None:
            return self._noted(used, memory.text, width)
        bar = self.look.bar(ratio, memory.peak_share, width - MEMORY_WIDTH - 1, fill_style(ratio))
        return (*bar, *self.look.cell(memory.text, MEMORY_WIDTH + 1, right=True))

    def _live(self, d: Device, text: str, width: int) -> Row:
        live = self.value("live_array_bytes", d)
        if live is None:
            return self._noted(None, text, width)
        return self._noted(live, f"{words.size(live.value)} live", width)

    def _noted(self, v: Value | None, text: str, width: int) -> Row:
        """The text where the numbers are, and the age of an old value where the bar would be."""
        old = "" if v is None or not v.stale else f"{age(v.age_s)} old"
        style = "dim" if old else "plain"
        left = width - MEMORY_WIDTH
        number = self.look.cell(text, MEMORY_WIDTH, style, right=True)
        return (*self.look.cell(old, left, "dim"), *number)

    def _span(self) -> str:
        """`5 MIN`."""
        return f"{self.span_s // 60} MIN"

    def _graph(self, d: Device, width: int) -> Row:
        """The last minutes; of live arrays where nobody tells the memory in use."""
        s, metric = self.snapshot, self.quantity.metric
        if s is None:
            return self.look.cell("", width)
        values = self._graphs.of_device(s, d, metric, self.span_s, width)
        if metric == "hbm_used_bytes" and values == [None] * width:
            values = self._graphs.of_device(s, d, "live_array_bytes", self.span_s, width)
        top = 100.0
        if metric == "hbm_used_bytes":
            limit = rows.memory(s, d).limit
            most = max((v for v in values if v is not None), default=0.0)
            top = (limit and limit.value) or most
        return (Segment(self.look.spark(values, top, width), self.look.style["graph"]),)


def _kind(d: Device) -> str:
    return d.kind or ""


def _chip(d: Device) -> str:
    return "" if d.chip is None else str(d.chip)


def _is_of_chip(d: Device) -> bool:
    return d.chip is not None


def _has_node(d: Device) -> bool:
    return d.node is not None
