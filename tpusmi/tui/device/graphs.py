"""The history of one device in large graphs, over one time axis. Pure but for the history."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tpusmi.model import DEVICE, OK, Device, Snapshot, metric
from tpusmi.report import rows, words
from tpusmi.tui.device.quantities import ARRAYS, HBM, SHARES, SIZES, USED, Drawn, title
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.graphs import filed
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.ranks import columns_for, in_ranks
from tpusmi.tui.scene import Scene

LEAST_HEIGHT = 3


class DeviceGraphs:
    """Of one device at one moment."""

    def __init__(self, scene: Scene, snapshot: Snapshot, device: Device, span_s: int) -> None:
        self._scene, self._look = scene, scene.look
        self._s, self._d, self._span_s = snapshot, device, span_s
        memory = HBM if self._is_known(HBM) else ARRAYS
        self._known = [g for g in (memory, *SHARES) if self._is_known(g)]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._known)

    def missing(self) -> str:
        """What nobody measures of a TPU, who could, and why not; empty where nothing is missing."""
        if self._d.platform != "tpu":
            return ""
        drawn = {g.metric for g in self._known}
        gone = [g for g in (HBM, *SHARES) if g.metric not in drawn]
        if not gone:
            return ""
        told = ", ".join(f"{g.name} ({', '.join(self._who(g.metric))})" for g in gone)
        who = {source for g in gone for source in self._who(g.metric)}
        why = [
            f"{o.source} {o.status}: {o.message}"
            for o in self._s.sources
            if o.source in who and o.status != OK
        ]
        return "; ".join((f"not measured here: {told}", *why))

    def lines(self, width: int, height: int) -> list[Row]:
        """The graphs in exactly that many lines; none where that is too little for one."""
        across = columns_for(self.count, width, height)
        drawn = self._known[: max(0, (height - 1) // LEAST_HEIGHT) * across]
        if not drawn or width < 1:
            return []
        graphs = [partial(self._graph, g) for g in drawn]
        ranks = [graphs[n : n + across] for n in range(0, len(graphs), across)]
        return in_ranks(self._look, ranks, self._axis, width, height)

    def _axis(self, width: int, height: int) -> list[Row]:
        end = "then" if self._scene.back_s else "now"
        return [plot.axis(self._look, self._span_s, width, end)]

    def _is_known(self, g: Drawn) -> bool:
        """Somebody has measured it in the last minutes, up to now: a look back moves no graph."""
        now, history = self._scene.newest or self._s, self._scene.history
        if rows.shown(now, self._d, g.metric).value is not None:
            return True
        subjects = filed(self._s, self._d, g.metric)
        return history.series(g.metric, subjects, int(now.at_s), history.span_s) is not None

    def _who(self, name: str) -> list[str]:
        """The sources of this host that can measure it."""
        here = {o.source for o in self._s.sources}
        trust = metric(DEVICE, name).trust
        return [source for source in trust if source in here] or [trust[0]]

    def _graph(self, g: Drawn, width: int, height: int) -> list[Row]:
        look, room, tall = self._look, max(1, width - plot.SCALE_WIDTH), max(1, height - 1)
        values = self.values(g.metric, room)
        top, peak = self._scale(g, values)
        marks = {} if peak is None else {min(max(int((1 - peak / top) * tall), 0), tall - 1): peak}
        read = words.size if g.metric in SIZES else words.percent
        scale = {**{n: read(v) for n, v in marks.items()}, tall - 1: "0", 0: read(top)}
        found = [title(look, self._s, self._d, g, values, width)]
        for n, text in enumerate(plot.area(look, values, top, room, tall)):
            left = look.cell(scale.get(n, ""), plot.SCALE_WIDTH - 1, "dim", right=True)
            side = look.line((look.glyphs.frame[3], "dim"))
            found.append((*left, *side, *_marked(look, text, n in marks)))
        return found

    def _scale(self, g: Drawn, values: Sequence[float | None]) -> tuple[float, float | None]:
        """The top of the scale, and where a peak is to be marked."""
        if g.metric not in SIZES:
            return 100.0, None
        most = max((v for v in values if v is not None), default=0.0)
        if g.metric != USED:
            return most or 1.0, None
        memory = rows.memory(self._s, self._d)
        limit, peak = (0 if v is None else v.value for v in (memory.limit, memory.peak))
        return limit or max(most, peak) or 1.0, peak or None

    def values(self, name: str, room: int) -> list[float | None]:
        """One for each slot of the graph."""
        count = plot.slots_across(self._look, room)
        return self._scene.graphs.of_device(self._s, self._d, name, self._span_s, count)


def _marked(look: Look, text: str, is_peak: bool) -> Row:
    """A line of the area; with a line across its blank cells at the height of the peak."""
    if not is_peak:
        return look.line((text, "graph"))
    parts, at = [], 0
    while at < len(text):
        blank = text[at] == " "
        end = next((n for n in range(at, len(text)) if (text[n] == " ") != blank), len(text))
        parts.append((look.glyphs.track * (end - at), "dim") if blank else (text[at:end], "graph"))
        at = end
    return look.line(*parts)
