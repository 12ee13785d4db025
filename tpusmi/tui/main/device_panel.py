"""The devices on the main page: rows, tiles or a heat map."""

from __future__ import annotations

from dataclasses import replace

from rich.segment import Segment

from tpusmi.model import Device, DeviceKey, Snapshot
from tpusmi.report import rows, words
from tpusmi.report.columns import DEVICE_COLUMNS, Cell, ColumnSpec
from tpusmi.report.concerns import MARK
from tpusmi.report.quantities import QUANTITIES, Quantity
from tpusmi.tui.draw.heat_cells import HeatCell
from tpusmi.tui.draw.heat_list import HeatMap, heat_lines
from tpusmi.tui.draw.item_list import Tiles, tile_lines
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Row, fill_style, width_of
from tpusmi.tui.draw.table import Cells, Column, Grid, marked
from tpusmi.tui.feed import DeviceView
from tpusmi.tui.page import stepped
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
        return tuple(self._column(c) for c in DEVICE_COLUMNS if c.title != MARK)

    def mark(self, d: Device) -> str:
        """The mark of a device that a warning is about; empty for any other."""
        return MARK if self.at is not None and self.at.concerns.of_device(d) else ""

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
        text = marked(cell.text, SHARE_WIDTH) if self.is_old(d, cell) else cell.text
        number = self.look.cell(text, SHARE_WIDTH, style, right=True)
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


TILE = 38
NAME_LEAST, NAME_MOST = 7, 16
_COMPACT = f"{'DEVICE':<17}{'HBM':>7}{'MXU':>7}{'DUTY':>7}"


class DevicePanel:
    """Draws the devices in the chosen view."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.look = scene, scene.look
        self._table = DeviceTable(scene)
        self.rows: Grid[Device] = Grid(self.look, self._table.columns(), "devices")
        self.tiles: Tiles[Device] = Tiles(self.look, "tiles")
        self.view = DeviceView(scene.options.view)
        """The view the user has chosen."""
        self.map = HeatMap(self.look, "heat")
        self.current: Grid[Device] | Tiles[Device] | HeatMap = self.rows

    @property
    def parts(self) -> tuple[Lines, ...]:
        """The widget of each view."""
        return self.rows, self.tiles, self.map

    @property
    def quantity(self) -> Quantity:
        """The quantity in graphs and in the heat map."""
        return self._table.quantity

    def choose(self, view: str | int) -> None:
        """Choose a view, or one that many steps further on."""
        if isinstance(view, int):
            view = stepped([*DeviceView], self.view, view)
        self.view = DeviceView(view)

    def next_quantity(self, step: int) -> None:
        """Choose another quantity for graphs and the heat map."""
        self._table.quantity = stepped(QUANTITIES, self.quantity, step)

    def heights(self, snapshot: Snapshot, width: int) -> dict[DeviceView, int]:
        """Lines that each view would fill, titles included; 0 without devices."""
        count = len(snapshot.devices)
        return {
            DeviceView.FULL: count + 1 if count else 0,
            DeviceView.COMPACT: tile_lines(count, width, TILE) if count else 0,
            DeviceView.HEAT: heat_lines([d.name for d in snapshot.devices], width),
        }

    def shares(self, view: DeviceView, lines: int) -> tuple[int, ...]:
        """The lines of each of the parts: all of them are those of the view."""
        own = {DeviceView.FULL: self.rows, DeviceView.COMPACT: self.tiles}.get(view, self.map)
        return tuple(lines if part is own else 0 for part in self.parts)

    def draw(self, snapshot: Snapshot, span_s: int, view: DeviceView, active: bool) -> None:
        """Draw the devices; with a cursor if `active`."""
        self._table.take(snapshot)
        self._table.span_s = min(span_s, GRAPH_MOST_S)
        chosen = self.scene.device
        cursor = chosen.key if active and chosen is not None else None
        if view is DeviceView.HEAT:
            self.current = self.map
        else:
            self.current = self.rows if view is DeviceView.FULL else self.tiles
        self.current.cursor = cursor
        if view is DeviceView.FULL:
            self.rows.warned = {d.key for d in snapshot.devices if self._table.mark(d)}
            self.rows.show_items(snapshot.devices)
        elif view is DeviceView.COMPACT:
            self.tiles.show_items(snapshot.devices, self._titles, TILE, self._card)
        else:
            cells = [self._cell(d) for d in snapshot.devices]
            notes = [f"{MARK} warning"] if any(cell.mark for cell in cells) else []
            self.map.show_cells(cells, self.quantity.device_titles, marks=notes)

    def take_cursor(self) -> None:
        """Let the other pages show the device under the cursor."""
        key = self.current.cursor
        if isinstance(key, DeviceKey):
            self.scene.device_key = key

    def scroll(self, pages: int) -> None:
        """Scroll the devices by that many pages."""
        self.current.scroll_pages(pages)

    # -- tiles

    def ratio(self, d: Device, quantity: Quantity) -> float | None:
        """The quantity of a device as a share, 0 to 1; None if unknown or stale."""
        ratio, is_old = self._share(d, quantity)
        return None if is_old else ratio

    def _share(self, d: Device, quantity: Quantity) -> tuple[float | None, bool]:
        """The quantity of a device as a share, None if unknown; and whether that is stale."""
        at = self._table.at
        return (None, False) if at is None else rows.share(at.snapshot, d, quantity.metric)

    def _card(self, d: Device, width: int) -> Row:
        """`tpu:0    ━━━━━━━━╸──  72 %  57 %  98 %`."""
        full = self.ratio(d, QUANTITIES[0])
        name_width = min(max(NAME_LEAST, len(d.name) + 1), NAME_MOST)
        mark = self._table.mark(d)
        room = name_width - len(mark) - bool(mark)
        name = self.look.line((self.look.fitted(d.name, min(len(d.name), room)), "bold"))
        name = (*name, *self.look.cell(mark, name_width - width_of(name), "bad"))
        bar_width = width - name_width - 3 * 7
        if full is None:
            bar = self.look.cell("", bar_width)
        else:
            bar = self.look.bar(full, None, bar_width, fill_style(full))
        numbers = [self.ratio(d, q) for q in QUANTITIES[:3]]
        texts = [words.percent(None if n is None else n * 100) for n in numbers]
        return (*name, *bar, *self.look.cell("".join(f"{t:>7}" for t in texts), 21))

    def _cell(self, d: Device) -> HeatCell:
        ratio, is_old = self._share(d, self.quantity)
        return HeatCell(d.key, d.name, ratio, self._table.mark(d), is_old=is_old)

    def _titles(self, width: int) -> Row:
        """A title above each tile of a line."""
        title, gap = self.look.cell(_COMPACT, TILE, "head"), self.look.cell(" ", 1, "head")
        return (*title, *gap) * ((width + 1) // (TILE + 1))
