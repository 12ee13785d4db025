"""The main page: host, devices, history, processes, and details of the selected one."""

from __future__ import annotations

from collections.abc import Iterable

from tpusmi.model import Device, Process, Snapshot
from tpusmi.report.family import Branch
from tpusmi.tui import chrome
from tpusmi.tui.draw.graphs import GRAPHED, Drawn, filed
from tpusmi.tui.draw.grid import Grid
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.prompt import FILTER, USER, Prompt
from tpusmi.tui.draw.tiles import Tiles
from tpusmi.tui.feed import View
from tpusmi.tui.keys import MAIN
from tpusmi.tui.main.arrange import Heights, Wanted, arrange
from tpusmi.tui.main.device_panel import Deck, Overview
from tpusmi.tui.main.filters import user_of, with_user
from tpusmi.tui.main.process_panel import Pane, Roll
from tpusmi.tui.main.processes import letters_line
from tpusmi.tui.page import Page
from tpusmi.tui.scene import Scene

DEVICES, PROCESSES = "devices", "processes"


class MainPage(Page):
    """Tables of devices and processes, one of which has the cursor."""

    prompt: Prompt
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
        self.roll = Roll(scene)
        self.pane = Pane(scene, self.roll)
        self.table, self.processes = self.roll.table, self.roll.grid
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
        self._detail_height = self._notices_height = 0

    def body(self) -> Iterable[Lines]:
        return self._parts

    def on_screen_resume(self) -> None:
        self.roll.adopt()
        super().on_screen_resume()

    @property
    def targets(self) -> tuple[Process, ...]:
        return self.scene.owners if self.panel == DEVICES else self.roll.targets

    def answered(self) -> None:
        self.roll.untag()

    def copied(self) -> str:
        """What a person wants to have elsewhere: the device's name, or the pid."""
        if self.panel == DEVICES:
            return "" if self.scene.device is None else self.scene.device.name
        return "" if self.roll.selected is None else str(self.roll.selected.pid)

    def graphed(self, snapshot: Snapshot) -> tuple[object, Iterable[Drawn]]:
        """One device of each owner: what is known of one has been known of all for as long."""
        devices = {d.owners or d.key.process: d for d in snapshot.devices}.values()
        return None, ((filed(snapshot, d, name), name) for d in devices for name in GRAPHED)

    def draw_body(self, snapshot: Snapshot) -> None:
        self.host.show([chrome.host_line(self.look, snapshot, self.size.width)])
        self.roll.draw(snapshot, self.panel == PROCESSES)
        if not self.typing:
            self.prompt.show_text(self.table.filter, typing=False)
        ends = self.scene.ends.lines(self.look, self.size.width)
        said = chrome.notices(snapshot, self.roll.selected)
        self._arrange(snapshot, len(ends) + min(len(said), chrome.MOST_NOTICES))
        room = self._notices_height - len(ends)
        self.notices.show([*ends, *chrome.notice_lines(self.look, said, self.size.width, room)])
        self.detail.show(self.pane.lines(self._detail_height))

    def step_back(self) -> bool:
        if self.panel == DEVICES:
            self.action_panel()
        elif not self.roll.untag():
            self.table.filter = ""
        self.draw()
        return True

    def _arrange(self, snapshot: Snapshot, notices: int) -> None:
        """Give each part its lines; the screen is laid out anew only when that changes."""
        width, height = self.size
        filtering = self.typing or bool(self.table.filter)
        processes = len(self.processes.items)
        self.pane.take(snapshot, width)
        want = Wanted(
            devices=self.deck.heights(snapshot, width),
            processes=processes + 1 if processes or filtering else 0,
            notices=notices,
            prompt=int(filtering),
            detail=self.pane.wanted,
            graphs=self.overview.height if self.overview.has_something(snapshot) else 0,
            others=self.pane.others(),
        )
        heights = arrange(want, height, self.deck.view)
        self._resize(heights)
        span_s = self.span_s(snapshot)
        self.deck.draw(snapshot, span_s, heights.view, self.panel == DEVICES)
        self.graphs.show(self.overview.lines(snapshot, span_s, width, heights.graphs))

    def _resize(self, heights: Heights) -> None:
        as_rows = heights.view is View.FULL
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
        self._detail_height, self._notices_height = heights.detail, heights.notices
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
        self._type(self.table.filter, FILTER)

    def action_user(self) -> None:
        """Type whose processes are shown."""
        self._type(user_of(self.table.filter), USER)

    def _type(self, text: str, label: str) -> None:
        self.panel, self.typing = PROCESSES, True
        self.draw()
        self.prompt.start(text, label)

    def on_prompt_typed(self, message: Prompt.Typed) -> None:
        self.typing = not message.done
        text, before = message.text, self.table.filter
        self.table.filter = with_user(before, text) if message.label == USER else text
        self.draw()

    def action_order(self) -> None:
        """Sort by the column of the next key."""
        self.panel, self.typing = PROCESSES, True
        self.draw()
        self.prompt.ask(letters_line(self.look))

    def on_prompt_answered(self, message: Prompt.Answered) -> None:
        self.typing = False
        if message.key and not self.table.sorting.choose_letter(message.key):
            self.app.say(f"Nothing is sorted by {message.key!r}")  # type: ignore[attr-defined]
        self.draw()

    def action_view(self, view: str | int) -> None:
        """Show the devices that way, or the next."""
        self.deck.choose(view)
        self.draw()

    def action_graph(self, step: int) -> None:
        """Draw the next quantity."""
        self.deck.next_quantity(step)
        self.app.say(f"Graphs show {self.deck.quantity.title}")  # type: ignore[attr-defined]
        self.draw()

    def action_sort(self, step: int) -> None:
        """Sort by the column that many further on."""
        self.table.sorting.step(step)
        self.draw()

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self.table.sorting.choose(self.table.sorting.title)
        self.draw()

    def on_grid_titled(self, message: Grid.Titled) -> None:
        if message.grid is self.processes:
            self.table.sorting.choose(message.title)
            self.draw()

    def action_tree(self) -> None:
        """Show processes under what started them, or in a list."""
        self.table.as_tree = not self.table.as_tree
        self.draw()

    def action_tag(self) -> None:
        """Tag the selected process, or untag it."""
        if self.panel == PROCESSES:
            self.roll.tag()
            self.draw()

    def action_stale(self) -> None:
        """Select the next stale holder."""
        if self.roll.find_stale():
            self.panel = PROCESSES
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
    def _table(self) -> Grid[Branch] | Grid[Device] | Tiles[Device]:
        return self.deck.shown if self.panel == DEVICES else self.processes

    def on_grid_moved(self, message: Grid.Moved) -> None:
        if message.grid is self.processes:
            self.panel = PROCESSES
            self.roll.choose()
        else:
            self._devices_moved()
        self.draw()

    def on_grid_opened(self) -> None:
        self.action_enter()

    def on_tiles_moved(self) -> None:
        self._devices_moved()
        self.draw()

    def _devices_moved(self) -> None:
        self.panel = DEVICES
        self.deck.take_cursor()
