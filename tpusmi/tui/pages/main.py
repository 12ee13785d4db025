"""The main page: host, devices, history, processes, and details of the selected one."""

from __future__ import annotations

from collections.abc import Iterable

from textual.geometry import Size

from tpusmi.model import Device, Process, Snapshot
from tpusmi.tui import chrome
from tpusmi.tui.arrange import Heights, Wanted, arrange
from tpusmi.tui.deck import Deck
from tpusmi.tui.detail import detail_lines
from tpusmi.tui.grid import Grid
from tpusmi.tui.keys import MAIN
from tpusmi.tui.lines import Lines
from tpusmi.tui.overview import Overview
from tpusmi.tui.page import Page
from tpusmi.tui.processes import ProcessTable
from tpusmi.tui.prompt import Prompt
from tpusmi.tui.scene import Scene
from tpusmi.tui.tiles import Tiles

DEVICES, PROCESSES = "devices", "processes"


class MainPage(Page):
    """Tables of devices and processes, one of which has the cursor."""

    KEYS = MAIN
    BINDINGS = [*MAIN]  # noqa: RUF012  # Textual's name and type

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        look = self.look
        self.host, self.graphs = Lines(look, id="host"), Lines(look, id="graphs")
        self.detail, self.notices = Lines(look, id="detail"), Lines(look, id="notices")
        self.prompt = Prompt(look, id="prompt")
        self.deck = Deck(scene)
        self.overview = Overview(scene)
        self.table = ProcessTable(look)
        self.table.telling = scene.ends.telling
        self.table.filter = scene.options.filter
        self.prompt.show_text(scene.options.filter, typing=False)
        self.processes: Grid[Process] = Grid(look, self.table.columns(), "processes")
        self.panel = PROCESSES
        """Which table has the cursor."""
        self._parts: tuple[Lines, ...] = (
            self.host,
            self.deck.rows,
            self.deck.tiles,
            self.graphs,
            self.processes,
            self.detail,
            self.notices,
            self.prompt,
        )
        self._heights: tuple[int, ...] = ()
        self._detail_height = 0

    def body(self) -> Iterable[Lines]:
        return self._parts

    @property
    def targets(self) -> tuple[Process, ...]:
        selected = self.selected
        return () if selected is None else (selected,)

    @property
    def selected(self) -> Process | None:
        """The process under the cursor."""
        index = self.processes.index
        return None if index is None else self.processes.items[index]

    def draw_body(self, snapshot: Snapshot) -> None:
        self.host.show([chrome.host_line(self.look, snapshot, self.size.width)])
        self._draw_processes(snapshot)
        ends = self.scene.ends.lines(self.look, self.size.width)
        self.notices.show([*ends, *chrome.notices(self.look, snapshot)])
        self._arrange(snapshot)
        self.draw_detail(snapshot)

    def draw_detail(self, snapshot: Snapshot) -> None:
        """Draw the details of the selected process, or why there is none."""
        p = self.selected
        if p is None:
            self.detail.show(chrome.nothing(self.look, snapshot, self.table.filter))
            return
        size = Size(self.size.width, self._detail_height)
        devices, told = self.table.devices(p), self.scene.ends.telling.get(p.key)
        self.detail.show(detail_lines(self.look, snapshot, p, devices, told, size))

    def step_back(self) -> bool:
        if self.panel == DEVICES:
            self.action_panel()
        else:
            self.table.filter = ""
            self.draw()
        return True

    def _draw_processes(self, snapshot: Snapshot) -> None:
        self.table.take(snapshot)
        shown = self.table.shown()
        if shown and self.processes.cursor not in {p.key for p in shown}:
            self.processes.cursor = shown[0].key
        self._choose()
        self.processes.active = self.panel == PROCESSES
        self.processes.sorted_by = (self.table.sort_title, self.table.upside_down)
        self.processes.show_items(shown)

    def _choose(self) -> None:
        """What is under the cursor is what the other pages show."""
        selected = self.selected
        self.scene.process_key = None if selected is None else selected.key

    def _arrange(self, snapshot: Snapshot) -> None:
        """Give each part its lines; the screen is laid out anew only when that changes."""
        width, height = self.size
        filtering = self.typing or bool(self.table.filter)
        processes = len(self.processes.items)
        want = Wanted(
            devices=self.deck.heights(snapshot, width),
            processes=processes + 1 if processes or filtering else 0,
            notices=len(self.notices.rows),
            prompt=int(filtering),
            detail=bool(processes),
            graphs=self.overview.height if self.overview.has_something(snapshot) else 0,
        )
        heights = arrange(want, height, self.deck.view)
        self._resize(heights)
        self.deck.draw(snapshot, heights.view, self.panel == DEVICES)
        self.graphs.show(self.overview.lines(snapshot, width, heights.graphs))

    def _resize(self, heights: Heights) -> None:
        as_rows = heights.view == "full"
        lines = (
            heights.host,
            heights.devices if as_rows else 0,
            0 if as_rows else heights.devices,
            heights.graphs,
            heights.processes,
            heights.detail,
            heights.notices,
            heights.prompt,
        )
        self._detail_height = heights.detail
        if lines == self._heights:
            return
        self._heights = lines
        for part, count in zip(self._parts, lines, strict=True):
            part.display = count > 0
            part.styles.height = count

    # -- keys

    def action_enter(self) -> None:
        """Open what is under the cursor."""
        self.app.action_open("device" if self.panel == DEVICES else "job")  # type: ignore[attr-defined]

    def action_panel(self) -> None:
        """Give the cursor to the other table."""
        has_devices = self.scene.device is not None
        self.panel = DEVICES if self.panel == PROCESSES and has_devices else PROCESSES
        self.draw()

    def action_filter(self) -> None:
        """Type a filter."""
        assert self.prompt is not None
        self.panel, self.typing = PROCESSES, True
        self.draw()
        self.prompt.start(self.table.filter)

    def on_prompt_typed(self, message: Prompt.Typed) -> None:
        assert self.prompt is not None
        if message.done:
            self.typing = False
            self.prompt.show_text(message.text, typing=False)
        self.table.filter = message.text
        self.draw()

    def action_view(self, view: str | int) -> None:
        """Show the devices that way, or the next."""
        self.deck.choose(view)
        self.draw()

    def action_graph(self, step: int) -> None:
        """Draw the next quantity."""
        self.deck.next_quantity(step)
        self.draw()

    def action_sort(self, step: int) -> None:
        """Sort by the column that many further on."""
        self.table.sort_by(step)
        self.draw()

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self.table.upside_down ^= True
        self.draw()

    def action_stale(self) -> None:
        """Select the next stale holder."""
        items = self.processes.items
        at = (self.processes.index or 0) + 1
        order = [*range(at, len(items)), *range(min(at, len(items)))]
        found = next((i for i in order if items[i].stale), None)
        if found is not None:
            self.panel = PROCESSES
            self.processes.move_to(found)
            self.draw()

    def action_move(self, rows: int) -> None:
        """Move the cursor so many rows."""
        self._table.move(rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor so many pages."""
        self._table.move(pages * self._table.page)

    def action_jump(self, index: int) -> None:
        """Move the cursor to the first, or to the last."""
        if items := self._table.items:
            self._table.move_to(index % len(items))

    def action_devices(self, pages: int) -> None:
        """Scroll the devices."""
        self.deck.scroll(pages)

    @property
    def _table(self) -> Grid[Process] | Grid[Device] | Tiles[Device]:
        return self.deck.shown if self.panel == DEVICES else self.processes

    def on_grid_moved(self, message: Grid.Moved) -> None:
        if message.grid is self.processes:
            self.panel = PROCESSES
            self._choose()
        else:
            self._devices_moved()
        self.draw()

    def on_tiles_moved(self) -> None:
        self._devices_moved()
        self.draw()

    def _devices_moved(self) -> None:
        self.panel = DEVICES
        self.deck.take_cursor()
