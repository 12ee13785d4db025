"""The slice page: every host of a job that has several, as the agents in it tell each other."""

from __future__ import annotations

from collections.abc import Iterable

from tpusmi.model import Process, SliceState, Snapshot
from tpusmi.model.slice_hosts import Slice
from tpusmi.report import slice_table
from tpusmi.report.concerns import marks_in_words
from tpusmi.report.quantities import OF_SLICE
from tpusmi.report.select import Remark
from tpusmi.report.slice_table import ORDERS, SliceRow
from tpusmi.report.text_grid import Sheet, grid
from tpusmi.tui import chrome
from tpusmi.tui.draw.heat_list import HeatMap
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.notice_lines import notice_rows
from tpusmi.tui.keys import key
from tpusmi.tui.page import AROUND, NO_PAST, ScrollPage, paging_keys, stepped
from tpusmi.tui.scene import Scene
from tpusmi.tui.slice import slice_heat

KEYS = [
    key(
        "o", "next_order", "Order", "slice-order", "Sort by process, worst, step, memory, age", "o"
    ),
    key("tab", "step(1)", "Next", "slice-next", "Next job of several hosts"),
    key("shift+tab", "step(-1)", "Before", "slice-before", "Previous job of several hosts"),
    key("v", "view", "View", "slice-view", "The hosts as a table, or a heat map", "v"),
    key("H", "heat", "Heat map", "slice-heat", "The devices of all hosts as a heat map"),
    key("g", "quantity", "Quantity", "slice-quantity", "Heat map: HBM, duty cycle or MFU"),
    key("down", "line(1)", "Line down", "slice-line-down", "A line down"),
    key("up", "line(-1)", "Line up", "slice-line-up", "A line up"),
    *paging_keys("slice"),
]
NONE = (
    "No job of several hosts is seen here. There is one when `jax.distributed.initialize()` joined "
    "its processes, each of them calls `tpusmi.start()`, and one of them runs on this machine."
)


class SlicePage(ScrollPage):
    """The hosts of one job."""

    NAME = "slice"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._order = ORDERS[0]
        self._heat = HeatMap(self.look, "slice-heat")
        self._is_heat = False
        self._quantity = OF_SLICE[0]

    def body(self) -> Iterable[Lines]:
        return (*super().body(), self._heat)

    @property
    def targets(self) -> tuple[Process, ...]:
        """Its process on this machine: no other host's can be ended here."""
        snapshot, own = self.scene.snapshot, self._slice
        processes = () if snapshot is None or own is None else snapshot.processes
        return tuple(p for p in processes if own is not None and p.key == own.process)

    def copied(self) -> str:
        if self._is_heat and (index := self._heat.index) is not None:
            return self._heat.items[index].name
        return "" if self._slice is None else "\n".join(h.name for h in self._slice.hosts)

    @property
    def _slice(self) -> Slice | None:
        slices = () if self.scene.snapshot is None else self.scene.snapshot.slices
        chosen = (x for x in slices if x.job == self.scene.slice_job)
        return next(chosen, next(iter(slices), None))

    def _share(self, snapshot: Snapshot, own: Slice | None) -> None:
        """Share the page between the lines and the heat map, which gets most of it."""
        height = max(1, self.size.height - AROUND)
        self._heat.display = self._is_heat and own is not None
        if own is None or not self._is_heat:
            self.lines.styles.height = height
            return
        head = len(self._head(snapshot, own, max(1, height // 3)))
        self.lines.styles.height, self._heat.styles.height = head, height - head

    def _draw_heat(self, own: Slice, head: list[Row]) -> None:
        """The devices, and the facts about the selected one in place of the blank line."""
        cells = slice_heat.cells(own, self._order, self._quantity.metric)
        labels = slice_heat.labels(own)
        if all(cell.key != self._heat.cursor for cell in cells):
            self._heat.cursor = cells[0].key if cells else None
        titles, meanings = self._quantity.device_titles, marks_in_words(cell.mark for cell in cells)
        self._heat.show_cells(cells, titles, lambda c: labels[c.key], meanings)
        about = slice_heat.facts(own, self._heat.cursor)
        self.lines.show([*head[:-1], self.look.line((about, "dim"))])

    def draw_body(self, snapshot: Snapshot) -> None:
        width, height = self.size.width, max(1, self.size.height - AROUND)
        own = self._slice
        self._share(snapshot, own)
        if own is None:
            text = NO_PAST if self.scene.back_s else NONE
            self.lines.show(self.look.wrapped(text, width, "dim"))
            return
        if self._is_heat:
            self._draw_heat(own, self._head(snapshot, own, max(1, height // 3)))
            return
        titles, *hosts = self._table(own, width)
        head = self._head(snapshot, own, height - min(1 + len(hosts), -(-height // 2)))
        room = max(0, height - len(head) - 1)
        visible = self.in_view(hosts, room, "hosts")
        self.lines.show([*head, titles, *visible][:height])

    def _head(self, snapshot: Snapshot, own: Slice, most: int) -> list[Row]:
        """Which job it is, how it is sorted, and what is wrong with its hosts, in at most that many
        lines. The last one is blank.
        """
        look, width = self.look, self.size.width
        at = snapshot.slices.index(own)
        several = f"{at + 1} of {len(snapshot.slices)} jobs" if len(snapshot.slices) > 1 else ""
        order = f"sorted by {self._order.name}"
        text = look.joined(part for part in (slice_table.headline(own), several, order) if part)
        of_it = [n for n in snapshot.warnings if n.pid == own.pid and n.code.startswith("slice_")]
        rows = [row for n in of_it for row in notice_rows(look, n, width)]
        if len(rows) > most - 2:
            of_page = [Remark(n.message, n._replace(pid=None)) for n in of_it]
            rows = chrome.notice_lines(look, of_page, width, most - 2)
        return [look.cell(text, width, "title"), *rows, ()][-most:]

    def _table(self, own: Slice, width: int) -> list[Row]:
        """The titles, then a line for each host."""
        columns, rows = slice_table.rows_of(own, self._order)
        lines = [*grid(columns, [row.cells for row in rows], Sheet(color=False, columns=width))]
        styles = ["bold", *(_style(row) for row in rows)]
        return [_line(self.look, *pair) for pair in zip(lines, styles, strict=True)]

    # -- keys

    def action_next_order(self) -> None:
        """Sort by the next quantity."""
        self._order, self.top = stepped(ORDERS, self._order, 1), 0
        self.draw()

    def action_view(self) -> None:
        """Show the devices as a heat map, or the hosts as a table again."""
        self._is_heat = not self._is_heat
        self.draw()

    def action_heat(self) -> None:
        """Show the devices as a heat map."""
        self._is_heat = True
        self.draw()

    def action_quantity(self) -> None:
        """Color the heat map by the next quantity."""
        self._quantity = stepped(OF_SLICE, self._quantity, 1)
        self._is_heat = True
        self.draw()

    def action_step(self, step: int) -> None:
        """Show the job that many steps further on."""
        slices = () if self.scene.snapshot is None else self.scene.snapshot.slices
        if slices and self._slice is not None:
            self.scene.slice_job = stepped([x.job for x in slices], self._slice.job, step)
            self.top = 0
            self.draw()

    def action_line(self, lines: int) -> None:
        """Scroll by that many lines, or move the cursor by them."""
        if self._is_heat:
            self._heat.move(lines)
        else:
            super().action_line(lines)

    def action_scroll(self, screens: int) -> None:
        if self._is_heat:
            self._heat.move(screens * self._heat.page)
        else:
            super().action_scroll(screens)

    def action_jump(self, end: int) -> None:
        if self._is_heat and self._heat.items:
            self._heat.move_to(len(self._heat.items) - 1 if end else 0)
        else:
            super().action_jump(end)

    def sideways(self, step: int) -> bool:
        return self._is_heat and self._heat.sideways(step)

    def on_item_list_moved(self) -> None:
        self.draw()


def _line(look: Look, text: str, style: str) -> Row:
    return look.line((text, style))


def _style(row: SliceRow) -> str:
    if row.host.state != SliceState.LIVE:
        return "bad"
    if row.host.is_old:
        return "dim"
    return "warn" if row.is_slowest else "plain"
