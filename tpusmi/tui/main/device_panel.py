"""The devices on the main page: rows, tiles or a heat map, and graphs of all of them."""

from __future__ import annotations

from functools import partial

from tpusmi.model import Device, DeviceKey, Snapshot
from tpusmi.report import rows, words
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.graphs import QUANTITIES, Quantity, alike, present_mean
from tpusmi.tui.draw.grid import Grid
from tpusmi.tui.draw.look import Row, fill_style
from tpusmi.tui.draw.plot import GAP, LEAST_WIDTH, columns_for, in_ranks
from tpusmi.tui.draw.tiles import Tiles
from tpusmi.tui.feed import View
from tpusmi.tui.main.devices import GRAPH_MOST_S, DeviceTable
from tpusmi.tui.scene import Scene

TILE, CELL = 38, 4
NAME_LEAST, NAME_MOST = 7, 16
HEAT_STEPS = 5
_COMPACT = f"{'DEVICE':<17}{'HBM':>7}{'MXU':>7}{'DUTY':>7}"


class Deck:
    """Chooses the way devices are shown, and draws them that way."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.look = scene, scene.look
        self._table = DeviceTable(scene)
        self.rows: Grid[Device] = Grid(self.look, self._table.columns(), "devices")
        self.tiles: Tiles[Device] = Tiles(self.look, "tiles")
        self.view = View(scene.options.view)
        """`auto`, or the way that a person has chosen."""
        self.shown: Grid[Device] | Tiles[Device] = self.rows
        self._quantity = 0

    @property
    def quantity(self) -> Quantity:
        """What graphs and the heat map show."""
        return QUANTITIES[self._quantity]

    def choose(self, view: str | int) -> None:
        """Show the devices that way, or so many ways further on."""
        if isinstance(view, int):
            views = [*View]
            view = views[(views.index(self.view) + view) % len(views)]
        self.view = View(view)

    def next_quantity(self, step: int) -> None:
        """Show another quantity in graphs and the heat map."""
        self._quantity = (self._quantity + step) % len(QUANTITIES)
        self._table.quantity = self.quantity

    def heights(self, snapshot: Snapshot, width: int) -> dict[View, int]:
        """Lines that each view would fill, titles included; 0 where there is no device."""
        count = len(snapshot.devices)
        return {
            View.FULL: count + 1 if count else 0,
            View.COMPACT: self.tiles.lines_for(count, width, TILE) if count else 0,
            View.HEAT: self.tiles.lines_for(count, width, CELL) if count else 0,
        }

    def draw(self, snapshot: Snapshot, span_s: int, view: View, active: bool) -> None:
        """Draw the devices; with a cursor where the panel is active."""
        self._table.take(snapshot)
        self._table.span_s = min(span_s, GRAPH_MOST_S)
        chosen = self.scene.device
        cursor = chosen.key if active and chosen is not None else None
        self.shown = self.rows if view is View.FULL else self.tiles
        self.shown.cursor = cursor
        if view is View.FULL:
            self.rows.show_items(snapshot.devices)
        elif view is View.COMPACT:
            self.tiles.show_items(snapshot.devices, self._titles, TILE, self._card)
        else:
            self.tiles.show_items(snapshot.devices, self._legend, CELL, self._cell)

    def take_cursor(self) -> None:
        """What is under the cursor of the devices is what the other pages show."""
        key = self.shown.cursor
        if isinstance(key, DeviceKey):
            self.scene.device_key = key

    def scroll(self, pages: int) -> None:
        """Scroll the devices by so many pages."""
        shown = self.shown
        across = shown.across if isinstance(shown, Tiles) else 1
        shown.scroll_rows(pages * shown.page // across)

    # -- tiles

    def ratio(self, d: Device, quantity: Quantity) -> float | None:
        """What a heat map shows of a device, 0 to 1; None when it is unknown or old."""
        if self._table.at is None:
            return None
        s = self._table.at.snapshot
        memory = rows.memory(s, d) if quantity.metric == "hbm_used_bytes" else None
        found = rows.shown(s, d, quantity.metric).value if memory is None else memory.used
        if found is None or found.stale:
            return None
        return found.value / 100 if memory is None else memory.share

    def _card(self, d: Device, width: int) -> Row:
        """`tpu:0    ━━━━━━━━╸──  72 %  57 %  98 %`."""
        full = self.ratio(d, QUANTITIES[0])
        name_width = min(max(NAME_LEAST, len(d.name) + 1), NAME_MOST)
        name = self.look.cell(d.name, name_width, "bold")
        bar_width = width - name_width - 3 * 7
        if full is None:
            bar = self.look.cell("", bar_width)
        else:
            bar = self.look.bar(full, None, bar_width, fill_style(full))
        numbers = [self.ratio(d, q) for q in QUANTITIES[:3]]
        texts = [words.percent(None if n is None else n * 100) for n in numbers]
        return (*name, *bar, *self.look.cell("".join(f"{t:>7}" for t in texts), 21))

    def _cell(self, d: Device, width: int) -> Row:
        """Its percentage, on the colour of its step."""
        found = self.ratio(d, self.quantity)
        if found is None:
            return self.look.cell(words.UNKNOWN, width, "dim", right=True)
        step = min(max(int(found * HEAT_STEPS), 0), HEAT_STEPS - 1)
        return self.look.cell(f"{found * 100:.0f}", width, f"heat{step}", right=True)

    def _titles(self, width: int) -> Row:
        """A title over each tile of a line."""
        title, gap = self.look.cell(_COMPACT, TILE, "head"), self.look.cell(" ", 1, "head")
        return (*title, *gap) * ((width + 1) // (TILE + 1))

    def _legend(self, width: int) -> Row:
        text = f"DEVICES  {self.quantity.title}: g for another"
        return self.look.cell(text, width, "head")


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
