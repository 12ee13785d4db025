"""The parts of the screen, and how they are drawn from one snapshot."""

from __future__ import annotations

from textual.geometry import Size

from tpusmi.model import Device, History, Process, Snapshot
from tpusmi.tui import chrome
from tpusmi.tui.arrange import Heights, Wanted, arrange
from tpusmi.tui.detail import detail_lines
from tpusmi.tui.devices import DeviceTable
from tpusmi.tui.ends import Ends
from tpusmi.tui.feed import Options
from tpusmi.tui.grid import Grid
from tpusmi.tui.keys import offered
from tpusmi.tui.lines import Lines
from tpusmi.tui.look import Look
from tpusmi.tui.processes import ProcessTable
from tpusmi.tui.prompt import Prompt


class Board:
    """Header, tables, details, notices, filter and footer, top to bottom."""

    def __init__(self, look: Look, options: Options, history: History) -> None:
        self._look, self._options = look, options
        self._device_table = DeviceTable(look, history)
        self.table = ProcessTable(look)
        self.header, self.detail = Lines(look, id="header"), Lines(look, id="detail")
        self.notices, self.footer = Lines(look, id="notices"), Lines(look, id="footer")
        self.prompt = Prompt(look, id="prompt")
        self.devices: Grid[Device] = Grid(look, self._device_table.columns(), "devices")
        self.processes: Grid[Process] = Grid(look, self.table.columns(), "processes")
        self.ends = Ends()
        self.table.telling = self.ends.telling
        self._bindings = offered(options.ender is not None)
        self._parts: tuple[Lines, ...] = (
            self.devices,
            self.processes,
            self.detail,
            self.notices,
            self.prompt,
        )
        self._heights: Heights | None = None
        self.expanded = False
        """The details of the selected process have the whole lower part."""
        self.typing = False
        """A filter is being typed."""

    @property
    def widgets(self) -> tuple[Lines, ...]:
        """Everything on the screen."""
        return (self.header, *self._parts, self.footer)

    @property
    def selected(self) -> Process | None:
        """The process under the cursor."""
        index = self.processes.index
        return None if index is None else self.processes.items[index]

    def draw(self, snapshot: Snapshot | None, status: chrome.Status) -> None:
        """Draw all of it."""
        self.draw_header(snapshot, status)
        self.footer.show([chrome.footer(self._look, self._bindings)])
        if snapshot is not None:
            self._device_table.snapshot = snapshot
            self.devices.show_items(snapshot.devices)
            self._draw_processes(snapshot)
            ends = self.ends.lines(self._look, status.width)
            self.notices.show([*ends, *chrome.notices(self._look, snapshot)])
        self._arrange(status.height)
        if snapshot is not None:
            self.draw_detail(snapshot, status)

    def draw_header(self, snapshot: Snapshot | None, status: chrome.Status) -> None:
        """Draw the top line."""
        self.header.show([chrome.header(self._look, snapshot, self._options, status)])

    def draw_detail(self, snapshot: Snapshot, status: chrome.Status) -> None:
        """Draw the details of the selected process, or why there is none."""
        p = self.selected
        if p is None:
            self.detail.show(chrome.nothing(self._look, snapshot, self.table.filter))
            return
        size = Size(status.width, 0 if self._heights is None else self._heights.detail)
        devices, told = self.table.devices(p), self.ends.telling.get(p.key)
        self.detail.show(detail_lines(self._look, snapshot, p, devices, told, size))

    def _draw_processes(self, snapshot: Snapshot) -> None:
        self.table.take(snapshot)
        shown = self.table.shown()
        if shown and self.processes.cursor not in {p.key for p in shown}:
            self.processes.cursor = shown[0].key
        self.processes.sorted_by = (self.table.sort_title, self.table.upside_down)
        self.processes.show_items(shown)

    def _arrange(self, height: int) -> None:
        """Give each part its lines; the screen is laid out anew only when that changes."""
        filtering = self.typing or bool(self.table.filter)
        want = Wanted(
            devices=len(self.devices.items) + 1 if self.devices.items else 0,
            processes=len(self.processes.items) + 1 if self.processes.items or filtering else 0,
            notices=len(self.notices.rows),
            prompt=int(filtering),
            detail=bool(self.processes.items),
            expanded=self.expanded,
        )
        heights = arrange(want, height)
        if heights == self._heights:
            return
        self._heights = heights
        for part, lines in zip(self._parts, heights, strict=True):
            part.display = lines > 0
            part.styles.height = lines
