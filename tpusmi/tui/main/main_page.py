"""The main page: host, devices, history, processes, and details of the selected process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tpusmi.model import Device, Process, Snapshot
from tpusmi.report.family import Branch
from tpusmi.report.filters import problem
from tpusmi.report.select import Remark
from tpusmi.tui import chrome
from tpusmi.tui.draw.graphs import GRAPHED, Drawn, history_subjects
from tpusmi.tui.draw.heat_list import HeatMap
from tpusmi.tui.draw.item_list import ItemList
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Row
from tpusmi.tui.draw.prompt import Prompt
from tpusmi.tui.draw.table import Grid
from tpusmi.tui.feed import ShownSettings
from tpusmi.tui.keys import MAIN, shown_key
from tpusmi.tui.main.arrange import Heights, WantedLines, arrange, without
from tpusmi.tui.main.choosing import DEVICES, PROCESSES
from tpusmi.tui.main.device_panel import DevicePanel
from tpusmi.tui.main.overview import Overview
from tpusmi.tui.main.process_panel import DetailPane, ProcessList
from tpusmi.tui.main.prompting import PromptingPage
from tpusmi.tui.scene import Scene

KEPT_MOST = 32


class MainPage(PromptingPage):
    """Tables of devices and processes, one of which has the cursor."""

    KEYS = MAIN
    BINDINGS = [*MAIN]  # noqa: RUF012  # Textual's name and type

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        look = self.look
        self.host, self.graphs = Lines(look, id="host"), Lines(look, id="graphs")
        self.detail, self.notices = Lines(look, id="detail"), Lines(look, id="notices")
        self.prompt = Prompt(look, "prompt", problem)
        self.device_panel = DevicePanel(scene)
        self.overview = Overview(scene)
        self.process_list = ProcessList(scene)
        self.detail_pane = DetailPane(scene, self.process_list)
        self.table, self.processes = self.process_list.table, self.process_list.grid
        self.processes.hint = self._fold_hint()
        self._parts: tuple[Lines, ...] = (
            self.host,
            *self.device_panel.parts,
            self.graphs,
            self.processes,
            self.detail,
            self.notices,
            self.prompt,
        )
        self._heights: tuple[int, ...] = ()
        self._kept: dict[object, int] = {}
        """The most lines that the same notices have filled, of as many as there were."""

    def body(self) -> Iterable[Lines]:
        return self._parts

    def on_screen_resume(self) -> None:
        self.process_list.adopt()
        super().on_screen_resume()

    @property
    def targets(self) -> tuple[Process, ...]:
        if self.panel in self.choices.hidden:
            return ()  # no key ends hidden processes
        return self.scene.owners if self.panel == DEVICES else self.process_list.targets

    def answered(self) -> None:
        self.process_list.untag()

    def copied(self) -> str:
        """The name of the selected device, or the pid of the selected process."""
        if self.panel == DEVICES:
            return "" if self.scene.device is None else self.scene.device.name
        return "" if self.process_list.selected is None else str(self.process_list.selected.pid)

    def graphed(self, snapshot: Snapshot) -> tuple[object, Iterable[Drawn]]:
        """One device of each owner: its other devices have been known for as long."""
        devices = {d.owners or d.key.process: d for d in snapshot.devices}.values()
        return None, (
            (history_subjects(snapshot, d, name), name) for d in devices for name in GRAPHED
        )

    def settings(self) -> ShownSettings:
        return {
            **super().settings(),
            ("view",): self.device_panel.view.value,
            ("sort",): self.table.sorting.title,
            ("reverse",): self.table.sorting.reversed,
        }

    def draw_body(self, snapshot: Snapshot) -> None:
        self.device_panel.rows.hidden = self.choices.hidden_columns(DEVICES)
        self.processes.hidden = self.choices.hidden_columns(PROCESSES)
        self.host.show([chrome.host_line(self.look, snapshot, self.size.width)])
        self.process_list.draw(snapshot, self.panel == PROCESSES)
        if not self.typing:
            self.prompt.show_filter(self.table.filter)
        self.detail_pane.hidden = PROCESSES in self.choices.hidden
        self.detail_pane.take(snapshot, self.size.width)
        ends = self.scene.ends.lines(self.look, self.size.width)
        heights, notices = self._shared(snapshot, len(ends))
        self._arrange(snapshot, heights)
        self.notices.show([*ends, *notices])
        self.detail.show(self.detail_pane.lines(heights.detail))

    def step_back(self) -> bool:
        if self.panel == DEVICES:
            self.action_panel()
        elif not self.process_list.untag():
            self.table.filter = ""
        self.draw()
        return True

    def _shared(self, s: Snapshot, ends: int) -> tuple[Heights, list[Row]]:
        """The lines of each part, below that many about ends, and the notices: those that the
        details do not show whole.
        """
        want = self._wanted(s)
        heights = self._heights_for(want, ends)
        for _ in range(2):  # notices take lines from the details, which then show fewer of them
            notices = chrome.notices(s, self.detail_pane.notices_in(heights.detail))
            lines = self._notice_lines(notices, chrome.MOST_NOTICES)[1]
            heights = self._heights_for(want, ends + lines)
        notices = chrome.notices(s, self.detail_pane.notices_in(heights.detail))
        rows, lines = self._notice_lines(notices, heights.notices - ends)
        if ends + lines < heights.notices:
            heights = self._heights_for(want, ends + lines)
        return heights, rows

    def _notice_lines(self, notices: Sequence[Remark], most: int) -> tuple[list[Row], int]:
        """The notices in at most that many lines, and how many to keep for them: the same notices
        keep theirs, whatever their numbers are.
        """
        width = self.size.width
        rows = chrome.notice_lines(self.look, notices, width, most)
        which = tuple(r.text if r.notice is None else r.notice.identity for r in notices)
        kept = max(len(rows), self._kept.get((width, most, which), 0))
        if len(self._kept) > KEPT_MOST:
            self._kept.clear()
        self._kept[width, most, which] = kept
        return rows, kept

    def _wanted(self, s: Snapshot) -> WantedLines:
        """The lines that each part would fill, without notices."""
        filtering = self.typing or bool(self.table.filter)
        processes = len(self.processes.items)
        return WantedLines(
            devices=self.device_panel.heights(s, self.size.width),
            processes=processes + 1 if processes or filtering else 0,
            notices=0,
            prompt=self.prompt.wanted_lines if self.typing else int(filtering),
            detail=self.detail_pane.height,
            graphs=self.overview.height if self.overview.measured(s) else 0,
            header=int(bool(self.header.display)),
        )

    def _heights_for(self, want: WantedLines, notices: int) -> Heights:
        """The lines of each part, that many for notices and ends among them."""
        want = want._replace(notices=notices, others=self.detail_pane.others())
        return arrange(without(want, self.choices.hidden), self.size.height, self.device_panel.view)

    def _arrange(self, snapshot: Snapshot, heights: Heights) -> None:
        """Give each part its lines, and draw devices and graphs."""
        self._resize(heights)
        span_s = self.span_s(snapshot)
        self.device_panel.draw(snapshot, span_s, heights.view, self.panel == DEVICES)
        self.graphs.show(self.overview.lines(snapshot, span_s, self.size.width, heights.graphs))

    def _resize(self, heights: Heights) -> None:
        lines = (
            heights.host,
            *self.device_panel.shares(heights.view, heights.devices),
            heights.graphs,
            heights.processes,
            heights.detail,
            heights.notices,
            heights.prompt,
        )
        if lines == self._heights:
            return
        self._heights = lines
        for part, count in zip(self._parts, lines, strict=True):
            part.display = count > 0
            part.styles.height = count

    # -- keys

    def action_enter(self) -> None:
        """Open the page of the selected device or process."""
        self.app.action_open("device" if self.panel == DEVICES else "job")  # type: ignore[attr-defined]

    def action_environment(self) -> None:
        """Show the variables of the selected process."""
        of_device = next(iter(self.scene.owners), None)
        process = of_device if self.panel == DEVICES else self.process_list.selected
        if process is not None:
            from tpusmi.tui.main.environment_screen import EnvironmentScreen

            self.app.push_screen(EnvironmentScreen(self.look, process))

    def action_view(self, view: str | int) -> None:
        """Show the devices in that view, or in the next."""
        self.device_panel.choose(view)
        self.draw()

    def action_graph(self, step: int) -> None:
        """Draw the next quantity in graphs."""
        self.device_panel.next_quantity(step)
        self.app.say(f"Graphs show {self.device_panel.quantity.title}")  # type: ignore[attr-defined]
        self.draw()

    def action_sort(self, step: int) -> None:
        """Sort by the column that many steps further on."""
        self.table.sorting.step(step)
        self.draw()

    def action_reverse(self) -> None:
        """Reverse the sort order."""
        self.table.sorting.choose(self.table.sorting.title)
        self.draw()

    def on_grid_titled(self, message: Grid.Titled) -> None:
        if message.sender is self.processes:
            self.table.sorting.choose(message.title)
            self.draw()

    def action_tree(self) -> None:
        """Show processes as a tree, or as a list."""
        self.table.as_tree = not self.table.as_tree
        self.draw()

    def action_ended(self) -> None:
        """Show each ended job, or fold them into one line."""
        self.table.unfolded = not self.table.unfolded
        self.draw()

    def _fold_hint(self) -> str:
        """`X: show  C: clear`, with the user's own keys."""
        labels = {"ended": "show", "clear": "clear"}
        keys = [(shown_key(b), labels[b.id]) for b in self.bindings if b.id in labels]
        return "  ".join(f"{key}: {label}" for key, label in keys)

    def action_tag(self) -> None:
        """Tag or untag the selected process."""
        if self.panel == PROCESSES and self.panel not in self.choices.hidden:
            self.process_list.tag()
            self.draw()

    def action_shift(self, step: int) -> None:
        """Scroll the commands sideways."""
        self.table.scroll_commands(step)
        self.draw()

    def action_stale(self) -> None:
        """Select the next stale holder."""
        if self.process_list.find_stale():
            self.show_processes()
            self.draw()

    def action_devices(self, pages: int) -> None:
        """Scroll the devices."""
        self.device_panel.scroll(pages)

    def sideways(self, step: int) -> bool:
        return self.current_list.sideways(step)

    @property
    def current_list(self) -> ItemList[Branch] | ItemList[Device] | HeatMap:
        return self.device_panel.current if self.panel == DEVICES else self.processes

    def on_item_list_moved(self, message: ItemList.Moved) -> None:
        if message.sender is self.processes:
            self.panel = PROCESSES
            self.process_list.choose(by_user=True)
        else:
            self.panel = DEVICES
            self.device_panel.take_cursor()
        self.draw()

    def on_item_list_opened(self) -> None:
        self.action_enter()
