"""The history of one device in large graphs, over one time axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpusmi.chips import peak_hbm_bytes_per_s_per_device
from tpusmi.model import DEVICE, OK, Device, Snapshot, Value, metric
from tpusmi.report import rows, words
from tpusmi.report.quantities import ARRAYS, BANDWIDTH, HBM, QUANTITIES, SIZES, Quantity
from tpusmi.tui.device.chip_limits import generation_of
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.graphs import history_subjects
from tpusmi.tui.draw.look import Row
from tpusmi.tui.draw.short_graphs import dated
from tpusmi.tui.scene import Scene

LEAST_HEIGHT = 3
SIZE_WIDTH, PERCENT_WIDTH = 10, 6
"""The width of a present value."""


class DeviceGraphs:
    """The graphs of one device at one moment."""

    def __init__(self, scene: Scene, snapshot: Snapshot, device: Device, span_s: int) -> None:
        self._scene, self._s, self._d, self._span_s = scene, snapshot, device, span_s
        memory = HBM if self._is_measured(HBM) else ARRAYS
        self.drawn = [q for q in (memory, *QUANTITIES[1:]) if self._is_measured(q)]

    def missing(self) -> str:
        """The quantities missing on a TPU, the sources that could measure them, and why they do
        not; empty if none is missing.
        """
        gone = [q for q in QUANTITIES if q not in self.drawn]
        if self._d.platform != "tpu" or not gone:
            return ""
        names = ", ".join(q.label for q in gone)
        sources = list(dict.fromkeys(source for q in gone for source in self._sources_of(q)))
        reasons = [
            f"{o.source} {o.status}: {o.message}"
            for o in self._s.sources
            if o.source in sources and o.status != OK
        ]
        return "; ".join((f"no data for {names} from {', '.join(sources)}", *reasons))

    def lines(self, width: int, height: int) -> list[Row]:
        """The graphs in exactly that many lines; none where that is too little for one."""
        columns = plot.columns_for(len(self.drawn), width, height)
        drawn = self.drawn[: max(0, (height - 1) // LEAST_HEIGHT) * columns]
        if not drawn or width < 1:
            return []
        each = plot.each(width, columns)
        curves = dated([self._curve(q, each) for q in drawn], self._span_s)
        axis = self._scene.axis(self._span_s, each)
        return plot.in_columns(self._scene.look, curves, columns, axis, (width, height))

    def values(self, quantity: Quantity, width: int) -> list[float | None]:
        """The values of a graph of that width."""
        count = plot.values_across(self._scene.look, width)
        graphs = self._scene.graphs
        return graphs.of_device(self._s, self._d, quantity.metric, self._span_s, count)

    def _is_measured(self, q: Quantity) -> bool:
        """True if there is a value in the last minutes, up to now: a look back moves no graph."""
        now, history = self._scene.newest or self._s, self._scene.history
        if rows.device_value(now, self._d, q.metric).value is not None:
            return True
        subjects = history_subjects(self._s, self._d, q.metric)
        return history.series(q.metric, subjects, int(now.at_s), history.span_s) is not None

    def _sources_of(self, q: Quantity) -> list[str]:
        """The sources of this host that can measure it."""
        here = {o.source for o in self._s.sources}
        trust = metric(DEVICE, q.metric).trust
        return [source for source in trust if source in here] or [trust[0]]

    def _curve(self, q: Quantity, width: int) -> plot.Curve:
        is_size = q in SIZES
        present = rows.device_value(self._s, self._d, q.metric).value
        read, value_width = (words.size, SIZE_WIDTH) if is_size else (words.percent, PERCENT_WIDTH)
        values = self.values(q, width)
        top, peak = self._scale(q, values)
        return plot.Curve(
            name=q.label,
            now=read(None if present is None else present.value).rjust(value_width),
            values=values,
            top=top,
            top_text=read(top),
            mark=None if peak is None else (peak, words.size(peak)),
            remarks=[*self._remarks(q, present)],
            is_stale=present is not None and present.stale,
        )

    def _scale(self, q: Quantity, values: Sequence[float | None]) -> tuple[float, float | None]:
        """The top of the scale, and the peak to be marked."""
        if q not in SIZES:
            return 100.0, None
        most = max((v for v in values if v is not None), default=0.0)
        if q is not HBM:
            return most or 1.0, None
        memory = rows.memory(self._s, self._d)
        limit, peak = (0 if v is None else v.value for v in (memory.limit, memory.peak))
        return limit or max(most, peak) or 1.0, peak or None

    def _remarks(self, q: Quantity, present: Value | None) -> Iterator[str]:
        """More about the quantity, the most important first."""
        is_own = (self._d.key, q.metric) in self._s.values
        if present is not None and present.stale:
            yield f"{words.elapsed(present.age_s)} old"
        if present is not None and not is_own:
            yield f"{rows.DITTO} of the chip"
        if q is HBM:
            yield from self._memory_remarks()
        if q not in SIZES and (known := self._seconds(q)):
            now = () if present is None or present.stale else (present.value,)
            yield f"mean {sum(known) / len(known):3.0f} %"
            yield f"max {max((*known, *now)):3.0f} %"
        generation = generation_of(self._s, self._d)
        if q is BANDWIDTH and present is not None and generation is not None:
            most = (
                peak_hbm_bytes_per_s_per_device(generation)
                if is_own
                else generation.hbm_bytes_per_s
            )
            whole = f"{most / 1e9:.0f}"
            yield f"{most * present.value / 1e11:{len(whole)}.0f} of {whole} GB/s"

    def _seconds(self, q: Quantity) -> list[float]:
        """The value of each second of the span, where it is known: a column of a graph is a mean
        of several, so its highest depends on the width of the screen.
        """
        graphs, span_s = self._scene.graphs, self._span_s
        slots = graphs.of_device(self._s, self._d, q.metric, span_s, span_s)
        return [v for v in slots if v is not None]

    def _memory_remarks(self) -> Iterator[str]:
        memory = rows.memory(self._s, self._d)
        if memory.share is not None and memory.limit is not None:
            yield f"{100 * memory.share:3.0f} % of {words.size(memory.limit.value)}"
        if memory.peak is not None:
            yield f"peak {words.size(memory.peak.value)}"
