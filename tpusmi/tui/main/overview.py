"""The history of all devices together on the main page: their mean, and the memory of all."""

from __future__ import annotations

from functools import partial

from tpusmi.model import Snapshot
from tpusmi.report import rows, words
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.graphs import alike, present_mean
from tpusmi.tui.draw.look import Row
from tpusmi.tui.draw.quantity import QUANTITIES, Quantity
from tpusmi.tui.draw.ranks import GAP, LEAST_WIDTH, columns_for, in_ranks
from tpusmi.tui.scene import Scene

LEAST_HEIGHT = 6
"""Of a graph that has another below it."""


class Overview:
    """Graphs over one time axis, as many as there is room for."""

    height = 7

    def __init__(self, scene: Scene) -> None:
        self._scene, self._look = scene, scene.look

    def has_something(self, snapshot: Snapshot) -> bool:
        """False where nobody has measured what is drawn here."""
        return bool(self._measured(snapshot))

    def lines(self, snapshot: Snapshot, span_s: int, width: int, height: int) -> list[Row]:
        """The graphs in that many lines: all of them, if there is room; else a line of some."""
        drawn = self._measured(snapshot)
        if height < 4 or not drawn:
            return []
        graphs = [partial(self._graph, snapshot, quantity, span_s) for quantity in drawn]
        across = columns_for(len(graphs), width, height - 1, LEAST_HEIGHT)
        if across < len(graphs) and height <= LEAST_HEIGHT * -(-len(graphs) // across):
            across = max(1, (width + GAP) // (LEAST_WIDTH + GAP))
            graphs = graphs[:across]
        ranks = [graphs[n : n + across] for n in range(0, len(graphs), across)]
        return in_ranks(self._look, ranks, partial(self._axis, span_s), width, height)

    def _axis(self, span_s: int, width: int, height: int) -> list[Row]:
        return [plot.axis(self._look, span_s, width, "then" if self._scene.back_s else "now")]

    def _measured(self, s: Snapshot) -> list[Quantity]:
        return [q for q in QUANTITIES if any(rows.shown(s, d, q.metric).value for d in s.devices)]

    def _graph(
        self, s: Snapshot, quantity: Quantity, span_s: int, width: int, height: int
    ) -> list[Row]:
        name, metric = quantity.name, quantity.metric
        look, graphs = self._look, self._scene.graphs
        count = plot.slots_across(look, max(1, width - plot.SCALE_WIDTH))
        values = graphs.average(s, metric, span_s, count)
        now = present_mean(s, s.devices, metric)
        if metric == "hbm_used_bytes":
            limits = [rows.memory(s, d).limit for d in alike(s, s.devices, metric)]
            known = [v.value for v in limits if v is not None]
            top = max(known, default=max((v or 0 for v in values), default=0))
            curve = plot.Curve(f"mean {name}", words.size(now), values, top, words.size(top))
        else:
            curve = plot.Curve(f"mean {name}", words.percent(now), values, 100.0, "100 %")
        return plot.graph(look, curve, width, height)
