"""The device table: what each column shows of a device."""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment

from tpusmi.model import Device, History, Snapshot, Value
from tpusmi.tui import quantities as q
from tpusmi.tui.columns import Column
from tpusmi.tui.graphs import Graphs
from tpusmi.tui.look import Look, Row, fill_style

MEMORY_WIDTH = len("123.4/192.0 GiB")


class DeviceTable:
    """Draws cells of devices from the snapshot it was given last."""

    def __init__(self, look: Look, history: History) -> None:
        self._look = look
        self._graphs = Graphs(history)
        self.snapshot: Snapshot | None = None
        self.dead: frozenset[int] = frozenset()
        """Pids of processes that ended: their devices are shown grey."""

    def columns(self) -> tuple[Column[Device], ...]:
        """The table, left to right."""
        return (
            Column("DEVICE", self._name, 6, most=12, text=lambda d: d.name),
            Column("PID", self._pid, 5, 4, most=8, right=True, text=_pid),
            Column("KIND", self._kind, 4, 7, most=16, text=lambda d: d.kind or ""),
            Column("MEMORY", self._memory, MEMORY_WIDTH + 7, 1, most=MEMORY_WIDTH + 41),
            Column("PEAK", self._number("hbm_peak_bytes", q.in_bytes), 8, 9, right=True),
            Column("ARRAYS", self._number("live_arrays", q.in_count), 6, 6, right=True),
            Column("LIVE", self._number("live_array_bytes", q.in_bytes), 8, 5, right=True),
            Column(
                "MXU",
                self._number("tensorcore_utilization_percent", q.in_percent),
                4,
                2,
                right=True,
            ),
            Column("DUTY", self._number("duty_cycle_percent", q.in_percent), 4, 2, right=True),
            Column(
                "BW",
                self._number("hbm_bandwidth_utilization_percent", q.in_percent),
                4,
                3,
                right=True,
            ),
            Column("5 MIN", self._graph, 7, 4, most=60),
        )

    def _value(self, name: str, d: Device) -> Value | None:
        return None if self.snapshot is None else self.snapshot.values.get((d.key, name))

    def _style(self, d: Device, *values: Value | None) -> str:
        stale = any(v is not None and v.stale for v in values)
        return "dim" if stale or self._is_dead(d) else "plain"

    def _is_dead(self, d: Device) -> bool:
        return d.key.process is not None and d.key.process.pid in self.dead

    def _name(self, d: Device, width: int) -> Row:
        return self._look.cell(d.name, width, "dim" if self._is_dead(d) else "bold")

    def _pid(self, d: Device, width: int) -> Row:
        return self._look.cell(
            _pid(d) or self._look.glyphs.unknown, width, self._style(d), right=True
        )

    def _kind(self, d: Device, width: int) -> Row:
        return self._look.cell(d.kind or self._look.glyphs.unknown, width, self._style(d))

    def _memory(self, d: Device, width: int) -> Row:
        """Used of limit after a bar; live arrays, and said so, where nobody tells the former."""
        used, limit = self._value("hbm_used_bytes", d), self._value("hbm_limit_bytes", d)
        style = self._style(d, used)
        if used is None:
            live = self._value("live_array_bytes", d)
            text = self._look.glyphs.unknown if live is None else f"{q.in_bytes(live.value)} live"
            note = "" if live is None or not live.stale else f"{q.age(live.age_s)} old"
            return self._noted(note, text, width, self._style(d, live))
        if used.stale:
            return self._noted(f"{q.age(used.age_s)} old", _used(used, limit), width, style)
        if limit is None or not limit.value:
            return self._noted("", _used(used, limit), width, style)
        bar = self._bar(d, used, limit, width - MEMORY_WIDTH - 1)
        return (*bar, *self._look.cell(_used(used, limit), MEMORY_WIDTH + 1, style, right=True))

    def _bar(self, d: Device, used: Value, limit: Value, width: int) -> Row:
        peak = self._value("hbm_peak_bytes", d)
        ratio = used.value / limit.value
        style = "dim" if self._is_dead(d) else fill_style(ratio)
        return self._look.bar(
            ratio, None if peak is None else peak.value / limit.value, width, style
        )

    def _noted(self, note: str, text: str, width: int, style: str) -> Row:
        """A note where the bar would be, and the text where the numbers are."""
        left = width - MEMORY_WIDTH
        return (
            *self._look.cell(note, left, "dim"),
            *self._look.cell(text, width - left, style, right=True),
        )

    def _number(self, name: str, words: Callable[[float], str]) -> Callable[[Device, int], Row]:
        def draw(d: Device, width: int) -> Row:
            v = self._value(name, d)
            text = self._look.glyphs.unknown if v is None else words(v.value)
            return self._look.cell(text, width, self._style(d, v), right=True)

        return draw

    def _graph(self, d: Device, width: int) -> Row:
        if self.snapshot is None:
            return self._look.cell("", width)
        values, top = self._graphs.values(d.key, self.snapshot, width)
        style = "dim" if self._is_dead(d) else "graph"
        return (Segment(self._look.spark(values, top, width), self._look.style[style]),)


def _pid(d: Device) -> str:
    return "" if d.key.process is None else str(d.key.process.pid)


def _used(used: Value, limit: Value | None) -> str:
    if limit is None or not limit.value:
        return q.in_bytes(used.value)
    return q.used_of(used.value, limit.value)
