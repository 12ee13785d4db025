"""The device table: what each column shows of a device."""

from __future__ import annotations

from rich.segment import Segment

from tpusmi.model import Device, History, Value
from tpusmi.report import words
from tpusmi.tui.cells import Cells, age
from tpusmi.tui.columns import Column
from tpusmi.tui.graphs import Graphs
from tpusmi.tui.look import Look, Row, fill_style

MEMORY_WIDTH = len("123.4/192.0 GiB")
LEAST_BAR, MOST_BAR = 7, 20


class DeviceTable(Cells[Device]):
    """Draws cells of devices."""

    def __init__(self, look: Look, history: History) -> None:
        super().__init__(look)
        self._graphs = Graphs(history)

    def columns(self) -> tuple[Column[Device], ...]:
        """The table, left to right."""
        busy = ("tensorcore_utilization_percent", "duty_cycle_percent")
        mxu, duty = (self.number(name, words.percent) for name in busy)
        bandwidth = self.number("hbm_bandwidth_utilization_percent", words.percent)
        peak = self.number("hbm_peak_bytes", words.size)
        live = self.number("live_array_bytes", words.size)
        arrays = self.number("live_arrays", words.count)
        bar = MEMORY_WIDTH + 1
        return (
            Column("DEVICE", self._name, 6, most=12, text=lambda d: d.name),
            Column("PID", self._owner, 5, 4, most=8, right=True, text=_pid),
            Column("KIND", self.plain(_kind), 4, 7, most=16, text=_kind),
            Column("MEMORY", self._memory, bar + LEAST_BAR, 1, most=bar + MOST_BAR),
            Column("PEAK", peak, 9, 9, right=True),
            Column("ARRAYS", arrays, 6, 6, right=True),
            Column("LIVE", live, 9, 5, right=True),
            Column("MXU", mxu, 5, 2, right=True),
            Column("DUTY", duty, 5, 2, right=True),
            Column("BW", bandwidth, 5, 3, right=True),
            Column("5 MIN", self._graph, 5, 4, most=60),
        )

    def _owner(self, d: Device, width: int) -> Row:
        return self.look.cell(_pid(d) or words.UNKNOWN, width, right=True)

    def _name(self, d: Device, width: int) -> Row:
        return self.look.cell(d.name, width, "bold")

    def _memory(self, d: Device, width: int) -> Row:
        """Used of limit after a bar; live arrays, and said so, where nobody tells the former."""
        used, limit = self.value("hbm_used_bytes", d), self.value("hbm_limit_bytes", d)
        if used is None:
            return self._live(d, width)
        style = self.style(d, used)
        text = words.size_pair(used.value, None if limit is None else limit.value)
        if used.stale or limit is None or not limit.value:
            return self._noted(used, text, width)
        ratio = used.value / limit.value
        peak = self.value("hbm_peak_bytes", d)
        bar = self.look.bar(
            ratio,
            None if peak is None else peak.value / limit.value,
            width - MEMORY_WIDTH - 1,
            fill_style(ratio),
        )
        return (*bar, *self.look.cell(text, MEMORY_WIDTH + 1, style, right=True))

    def _live(self, d: Device, width: int) -> Row:
        live = self.value("live_array_bytes", d)
        text = words.UNKNOWN if live is None else f"{words.size(live.value)} live"
        return self._noted(live, text, width)

    def _noted(self, v: Value | None, text: str, width: int) -> Row:
        """The text where the numbers are, and the age of an old value where the bar would be."""
        old = "" if v is None or not v.stale else f"{age(v.age_s)} old"
        style = "dim" if old else "plain"
        left = width - MEMORY_WIDTH
        number = self.look.cell(text, MEMORY_WIDTH, style, right=True)
        return (*self.look.cell(old, left, "dim"), *number)

    def _graph(self, d: Device, width: int) -> Row:
        if self.snapshot is None:
            return self.look.cell("", width)
        values, top = self._graphs.values(d.key, self.snapshot, width)
        return (Segment(self.look.spark(values, top, width), self.look.style["graph"]),)


def _pid(d: Device) -> str:
    return "" if d.key.process is None else str(d.key.process.pid)


def _kind(d: Device) -> str:
    return d.kind or ""
