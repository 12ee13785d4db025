"""The memory page: what holds the device memory of a job, by function, line and device."""

from __future__ import annotations

from collections.abc import Iterable

from tpusmi.model import Device, Process, Snapshot
from tpusmi.tui.draw.graphs import Drawn
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Row
from tpusmi.tui.draw.prompt import Prompt
from tpusmi.tui.keys import key, moving
from tpusmi.tui.memory.allocations import (
    CHANGES,
    ORDERS,
    Tree,
    Trees,
    Wanted,
    at_line,
    is_by_device,
)
from tpusmi.tui.memory.graph import MemoryGraph
from tpusmi.tui.memory.memory_head import Shown, cards, head_lines, nothing_listed, without_profile
from tpusmi.tui.memory.memory_tree import Branch, Folds, MemoryTable
from tpusmi.tui.page import AROUND, Page
from tpusmi.tui.process.memory_curve import Holder
from tpusmi.tui.scene import Scene

MOVE = "Move in the tree"
DEVICE = "Show the next device alone, or the one before; then all of them together"
ORDER = "Sort by bytes, by their change, by the count's, by count; a click on a title does, too"
KEYS = [
    key("enter", "fold", "Unfold", "fold", "Open or shut a row: its lines, its buffers", "Enter"),
    key(
        "b",
        "mark",
        "Mark",
        "mark",
        "Set the mark, or move it to now: CHANGE is what has grown since",
        "b",
    ),
    key("S", "sort", "Sort", "memory-sort", ORDER, "S"),
    key("D,greater_than_sign,full_stop", "device(1)", "Per device", "memory-device", DEVICE, "D"),
    key("less_than_sign,comma", "device(-1)", "Device before", "memory-device-before", DEVICE),
    key("slash", "filter", "Filter", "memory-filter", "Only lines that contain a text", "/"),
    key("tab", "step(1)", "Job", "memory-next", "The next job with a memory profile", "Tab"),
    key("shift+tab", "step(-1)", "Before", "memory-before", "The one before"),
    key("e", "fold_all(True)", "Unfold all", "unfold-all", "Open all rows"),
    key("E", "fold_all(False)", "Fold all", "fold-all", "Shut all rows"),
    *moving(MOVE, "memory-"),
]


HEAD_LINES, TALL = 6, 32
"""Lines over the tree; from how many lines on each device has a bar as well."""


class MemoryPage(Page):
    """One job: lines about its memory, and the tree of what holds it."""

    NAME = "memory"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type
    prompt: Prompt

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.head, self.prompt = Lines(self.look, id="memory-head"), Prompt(self.look, "prompt")
        self.table = MemoryTable(self.look)
        self.rows = Folds(self.look, self.table.columns(), "memory")
        self.trees = Trees()
        self.order, self.filter = ORDERS[0], ""
        self._device: int | None = None
        """Global id of the one that is shown alone."""
        self.graph = MemoryGraph(self.look, "memory-graph")
        self._heights = (-1, -1, -1)

    def body(self) -> Iterable[Lines]:
        self.rows.styles.height = "1fr"
        return (self.head, self.rows, self.graph, self.prompt)

    def graphed(self, snapshot: Snapshot) -> tuple[object, Iterable[Drawn]]:
        process = self._chosen
        if process is None:
            return None, ()
        return process.key, self._holder(snapshot, process).drawn()

    def draw_body(self, snapshot: Snapshot) -> None:
        process = self._chosen
        profile = None if process is None else process.profile
        if process is None or profile is None:
            self._draw_nothing(snapshot, process)
            return
        devices, chosen = snapshot.devices_of(process.key), self._devices(snapshot, process)
        is_apart = bool(chosen) and is_by_device(profile)
        wanted = Wanted(
            profile,
            self.scene.marks.get(process.key),
            self._device if is_apart else None,
            self.filter,
            self.order,
        )
        self._draw_tree(self.trees.of(wanted), devices)
        head = self._head(snapshot, process, chosen, wanted)
        self.head.show(head)
        tree = (process.key, self.rows.opened, wanted[2:])
        graph = self.graph.height(tree, len(self.rows.items) + 2, self._room - len(head))
        self._arrange(len(head), graph)
        self._draw_graph(snapshot, process, graph)

    def _draw_nothing(self, snapshot: Snapshot, process: Process | None) -> None:
        self.rows.show_tree(())
        others = [p for p in self._jobs if process is None or p.key != process.key]
        head = without_profile(self.look, snapshot, process, others, self.size.width)
        self.head.show(head)
        graph = 0 if process is None else self.graph.height(None, len(head) + 1, self._room)
        self._arrange(0, graph)
        self._draw_graph(snapshot, process, graph)

    def _draw_graph(self, snapshot: Snapshot, process: Process | None, height: int) -> None:
        if process is not None and height:
            holder, span_s = self._holder(snapshot, process), self.span_s(snapshot)
            self.graph.draw(self.scene, holder, span_s, self.size.width, height)

    def _devices(self, snapshot: Snapshot, process: Process) -> list[Device]:
        """The one that is shown alone; none where all are."""
        devices = snapshot.devices_of(process.key)
        return [d for d in devices if d.id == self._device and d.id is not None]

    def _holder(self, snapshot: Snapshot, process: Process) -> Holder:
        return Holder(snapshot, process, next(iter(self._devices(snapshot, process)), None))

    def _head(
        self, snapshot: Snapshot, process: Process, chosen: list[Device], wanted: Wanted
    ) -> list[Row]:
        """The lines over the tree."""
        devices = snapshot.devices_of(process.key)
        tree = self.trees.of(wanted)
        newest = self.scene.newest or snapshot
        shown = Shown(
            snapshot,
            process,
            tuple(chosen) or devices,
            bool(chosen),
            tree,
            wanted.mark.at_s if wanted.mark else None,
            newest.at_s,
            self._place(process),
        )
        width, height = self.size
        lines = head_lines(self.look, shown, width, min(HEAD_LINES, max(1, (height - 2) // 3)))
        if height >= TALL:
            lines[2:2] = cards(self.look, snapshot, devices, width)
        if not tree.nodes:
            lines.append(nothing_listed(self.look, self.filter))
        return lines

    def _draw_tree(self, tree: Tree, devices: tuple[Device, ...]) -> None:
        self.table.live_bytes, self.table.is_sure = tree.live.bytes, tree.is_sure
        self.table.names = {d.id: d.own_name for d in devices}
        self.rows.sorted_by = (self.order, True)
        self.rows.show_tree(tree.nodes)

    @property
    def _room(self) -> int:
        """Lines between header and footer."""
        return self.size.height - AROUND - int(self.typing or bool(self.filter))

    def _arrange(self, head: int, graph: int) -> None:
        """Give each part its lines; the screen is laid out anew only when that changes. With 0 the
        lines over the tree have the place of the tree.
        """
        heights = head, graph, int(self.typing or bool(self.filter))
        if heights == self._heights:
            return
        self._heights = heights
        self.rows.display, self.graph.display, self.prompt.display = (n > 0 for n in heights)
        self.head.styles.height = head or "1fr"
        self.graph.styles.height = graph

    @property
    def _jobs(self) -> list[Process]:
        """Those that have a memory profile. Of the past none is kept."""
        snapshot = self.scene.newest
        return [p for p in snapshot.processes if p.profile is not None] if snapshot else []

    @property
    def _chosen(self) -> Process | None:
        """The chosen process, with its newest profile."""
        process = self.scene.process
        found = (p.profile for p in self._jobs if process is not None and p.key == process.key)
        return None if process is None else process._replace(profile=next(found, None))

    def _place(self, process: Process) -> str:
        keys = [p.key for p in self._jobs]
        if len(keys) < 2:
            return ""
        return f"job {keys.index(process.key) + 1} of {len(keys)}, Tab: next"

    @property
    def _selected(self) -> Branch | None:
        index = self.rows.index
        return None if index is None else self.rows.items[index]

    def copied(self) -> str:
        """File and line of the selected row."""
        return "" if self._selected is None else at_line(self._selected.node)

    def step_back(self) -> bool:
        if not self.filter:
            return False
        self.filter = ""
        self.draw()
        return True

    # -- keys

    def action_step(self, step: int) -> None:
        """Show the next job that has a memory profile."""
        keys, now = [p.key for p in self._jobs], self.scene.process
        if not keys or (now is not None and keys == [now.key]):
            return
        at = keys.index(now.key) + step if now is not None and now.key in keys else 0
        self.scene.process_key = keys[at % len(keys)]
        self._device = None
        self.rows.forget()
        self.draw()

    def action_mark(self) -> None:
        """From now on show what has changed since now."""
        process = self._chosen
        if process is not None and process.profile is not None:
            self.scene.marks[process.key] = process.profile
            self.draw()

    def action_sort(self) -> None:
        """Sort by the next that there is; by change only where there is a mark."""
        process = self.scene.process
        has_mark = process is not None and process.key in self.scene.marks
        orders = [o for o in ORDERS if o not in CHANGES or has_mark]
        at = orders.index(self.order) + 1 if self.order in orders else 0
        self._sort_by(orders[at % len(orders)])

    def on_grid_titled(self, message: Folds.Titled) -> None:
        title = {"SHARE": ORDERS[0]}.get(message.title, message.title)
        if title in ORDERS:
            self._sort_by(title)

    def _sort_by(self, order: str) -> None:
        self.order = order
        self.rows.to_top()
        self.draw()

    def action_device(self, step: int) -> None:
        """Show the next device alone, or all."""
        process, snapshot = self.scene.process, self.scene.snapshot
        if process is None or snapshot is None:
            return
        ids = [d.id for d in snapshot.devices_of(process.key) if d.id is not None]
        ways = [None, *ids]
        at = ways.index(self._device) if self._device in ways else 0
        self._device = ways[(at + step) % len(ways)]
        self.draw()

    def action_fold(self) -> None:
        """Open or shut the row under the cursor."""
        if self._selected is not None:
            self.rows.fold(self._selected.key)
            self.draw()

    def action_fold_all(self, is_open: bool) -> None:
        """Open, or shut, every row."""
        self.rows.fold_all(is_open)
        self.draw()

    def action_filter(self) -> None:
        """Type a filter."""
        self.typing = True
        self.draw()
        self.prompt.start(self.filter)

    def on_prompt_typed(self, message: Prompt.Typed) -> None:
        if message.done:
            self.typing = False
            self.prompt.show_text(message.text, typing=False)
        self.filter = message.text
        self.draw()

    def action_move(self, rows: int) -> None:
        """Move the cursor so many rows."""
        self.rows.move(rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor so many pages."""
        self.rows.move(pages * self.rows.page)

    def action_jump(self, index: int) -> None:
        """Move the cursor to the first row, or to the last."""
        if items := self.rows.items:
            self.rows.move_to(index % len(items))
