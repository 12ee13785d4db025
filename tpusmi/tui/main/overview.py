"""The history of all devices on the main page: graphs over one time axis."""

from __future__ import annotations

from tpusmi.model import Snapshot, several
from tpusmi.report import rows, words
from tpusmi.report.quantities import HBM, QUANTITIES, Quantity
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.look import Row
from tpusmi.tui.draw.short_graphs import dated
from tpusmi.tui.main.host_graphs import ROOMY, host_curves
from tpusmi.tui.scene import Scene

LEAST_HEIGHT = 6
"""The least height of a graph that has another below it."""


class Overview:
    """The history of all devices: graphs over one time axis, as many as fit."""

    height = 7

    def __init__(self, scene: Scene) -> None:
        self._scene, self._look = scene, scene.look

    def lines(self, snapshot: Snapshot, span_s: int, width: int, height: int) -> list[Row]:
        """The graphs in that many lines: all if there is room, else the first ones side by side."""
        drawn = self.measured(snapshot)
        if height < 4 or not drawn:
            return []
        if roomy := self._with_host(snapshot, drawn, span_s, (width, height)):
            return roomy
        columns = plot.columns_for(len(drawn), width, height - 1, LEAST_HEIGHT)
        if columns < len(drawn) and height <= LEAST_HEIGHT * -(-len(drawn) // columns):
            columns = max(1, (width + plot.GAP) // (plot.LEAST_WIDTH + plot.GAP))
            drawn = drawn[:columns]
        each = plot.each(width, columns)
        count = plot.values_across(self._look, each)
        curves = [self._curve(snapshot, quantity, span_s, count) for quantity in drawn]
        axis = self._scene.axis(span_s, each)
        curves = dated(curves, span_s)
        return plot.in_columns(self._look, curves, columns, axis, (width, height))

    def _with_host(
        self, s: Snapshot, drawn: list[Quantity], span_s: int, size: tuple[int, int]
    ) -> list[Row]:
        """The same with the graphs of the host; empty where none of them would be large."""
        width, height = size
        count = len(drawn) + 2 + len(drawn) % 2
        columns = plot.columns_for(count, width, height - 1, ROOMY)
        if height - 1 < ROOMY * (count // columns):
            return []
        each = plot.each(width, columns)
        across = plot.values_across(self._look, each)
        host = host_curves(self._scene, s, span_s, across, len(drawn))
        if not host:
            return []
        curves = dated([*(self._curve(s, q, span_s, across) for q in drawn), *host], span_s)
        axis = self._scene.axis(span_s, each)
        return plot.in_columns(self._look, curves, columns, axis, size)

    def measured(self, s: Snapshot) -> list[Quantity]:
        """The quantities that are known of some device."""
        return [
            q for q in QUANTITIES if any(rows.device_value(s, d, q.metric).value for d in s.devices)
        ]

    def _curve(self, s: Snapshot, quantity: Quantity, span_s: int, count: int) -> plot.Curve:
        name, values = (
            f"mean {quantity.name}",
            self._scene.graphs.average(s, quantity.metric, span_s, count),
        )
        now = several.mean(s, quantity.metric, s.devices, of_some=True)
        if quantity is not HBM:
            return plot.Curve(name, words.percent(now), values, 100.0, "100 %")
        limits = [rows.memory(s, d).limit for d in several.alike(s, quantity.metric, s.devices)]
        known = [v.value for v in limits if v is not None]
        top = max(known, default=max((v or 0 for v in values), default=0))
        return plot.Curve(name, words.size(now), values, top, words.size(top))
