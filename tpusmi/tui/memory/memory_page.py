"""The memory page: what holds the device memory of a job, by function, line and device."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from tpusmi.model import Device, Process, Snapshot
from tpusmi.tui.draw.graphs import Drawn
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Row
from tpusmi.tui.draw.prompt import Prompt
from tpusmi.tui.keys import key, moving
from tpusmi.tui.memory.allocations import CHANGES, ORDERS, TreeQuery, Trees, at_line, is_by_device
from tpusmi.tui.memory.memory_bars import MemoryGraph, cards
from tpusmi.tui.memory.memory_head import ShownMemory, head_lines, nothing_listed, without_profile
from tpusmi.tui.memory.memory_tree import MemoryTable, TreeRow, TreeTable
from tpusmi.tui.page import AROUND, ListPage, stepped
from tpusmi.tui.process.memory_curve import Holder
from tpusmi.tui.scene import Scene

NEXT = "Show the next device alone, after the last one all devices"
PREVIOUS = "Show the previous device alone, before the first one all devices"
ORDER = "Sort by bytes, change, change of the count, count, or rate (or click a title)"
MARK = "Set the mark to now: CHANGE then shows growth since the mark"
KEYS = [
    key("enter", "fold", "Unfold", "fold", "Open / close a row: its lines, its buffers", "Enter"),
    key("b", "mark", "Mark", "mark", MARK, "b"),
    key("S", "sort", "Sort", "memory-sort", ORDER, "S"),
    key("D,greater_than_sign,full_stop", "device(1)", "Per device", "memory-device", NEXT, "D"),
    key("less_than_sign,comma", "device(-1)", "Device before", "memory-device-before", PREVIOUS),
    key("slash", "filter", "Filter", "memory-filter", "Show only lines with a text", "/"),
    key("tab", "step(1)", "Job", "memory-next", "Next job with a memory profile", "Tab"),
    key("shift+tab", "step(-1)", "Before", "memory-before", "Previous job with a memory profile"),
    key("e", "fold_all(True)", "Unfold all", "unfold-all", "Open all rows"),
    key("E", "fold_all(False)", "Fold all", "fold-all", "Close all rows"),
    *moving("memory-"),
]
HEAD_LINES = 6
"""The most lines above the tree."""
TALL = 32
"""Screens with at least this many lines have a bar for each device as well."""


class MemoryPage(ListPage):
    """One job: lines about its memory, and the tree of what holds it."""

    NAME = "memory"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.head, self.prompt = Lines(self.look, id="memory-head"), Prompt(self.look, "prompt")
        self.table = MemoryTable(self.look)
        self.rows = TreeTable(self.look, self.table.columns(), "memory")
        self.trees = Trees()
        self.order, self.filter = ORDERS[0], ""
        self._device: int | None = None
        """Global id of the device that is shown alone."""
        self.graph = MemoryGraph(self.look, "memory-graph")
        self._heights = (-1, -1, -1)

    @property
    def current_list(self) -> TreeTable:
        return self.rows

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
        if process is None or process.profile is None:
            self.rows.show_tree(())
            others = [p for p in self._jobs if process is None or p.key != process.key]
            width = self.size.width
            lines = without_profile(self.look, snapshot, process, others, width)
            # The lines have the place of the tree.
            self._place(snapshot, process, lines, 0, (None, len(lines) + 1))
            return
        chosen = self._chosen_device(snapshot, process)
        query = TreeQuery(
            profile=process.profile,
            mark=self.scene.marks.get(process.key),
            device=self._device if chosen and is_by_device(process.profile) else None,
            filter=self.filter,
            order=self.order,
        )
        tree, devices = self.trees.of(query), snapshot.devices_of(process.key)
        self.table.live_bytes, self.table.is_sure = tree.live.bytes, tree.is_sure
        self.table.names = {d.id: d.own_name for d in devices}
        self.rows.sorted_by = (self.order, True)
        self.rows.show_tree(tree.nodes)
        shown = ShownMemory(
            snapshot=snapshot,
            process=process,
            devices=devices if chosen is None else (chosen,),
            is_chosen=chosen is not None,
            tree=tree,
            mark_at_s=query.mark.at_s if query.mark else None,
            now_s=(self.scene.newest or snapshot).at_s,
            place=self._job_place(process),
        )
        lines, same = self._head(shown), (process.key, self.rows.opened, query[2:])
        rows = len(lines) + len(self.rows.items) + 2
        self._place(snapshot, process, lines, len(lines), (same, rows))

    def _head(self, shown: ShownMemory) -> list[Row]:
        """The lines above the tree."""
        width, height = self.size
        lines = head_lines(self.look, shown, width, min(HEAD_LINES, max(1, (height - 2) // 3)))
        if height >= TALL:
            devices = shown.snapshot.devices_of(shown.process.key)
            lines[2:2] = cards(self.look, shown.snapshot, devices, width)
        if not shown.tree.nodes:
            lines.append(nothing_listed(self.look, self.filter))
        return lines

    def _place(
        self,
        snapshot: Snapshot,
        process: Process | None,
        lines: list[Row],
        head: int,
        tree: tuple[Hashable, int],
    ) -> None:
        """Give each part its lines, and draw the lines above the tree and the graph. The screen is
        laid out again only when that changes.
        """
        self.head.show(lines)
        prompt = int(self.typing or bool(self.filter))
        room = self.size.height - AROUND - prompt
        graph = 0 if process is None else self.graph.height_beside(*tree, room)
        heights = head, graph, prompt
        if heights != self._heights:
            self._heights = heights
            parts = (self.rows, self.graph, self.prompt)
            for part, height in zip(parts, heights, strict=True):
                part.display = height > 0
            self.head.styles.height = head or "1fr"
            self.graph.styles.height = graph
        if process is not None and graph:
            holder, span_s = self._holder(snapshot, process), self.span_s(snapshot)
            self.graph.draw(self.scene, holder, span_s, self.size.width, graph)

    def _chosen_device(self, snapshot: Snapshot, process: Process) -> Device | None:
        """The device that is shown alone; None when all are."""
        devices = snapshot.devices_of(process.key)
        return next((d for d in devices if d.id is not None and d.id == self._device), None)

    def _holder(self, snapshot: Snapshot, process: Process) -> Holder:
        return Holder(snapshot, process, self._chosen_device(snapshot, process))

    @property
    def _jobs(self) -> list[Process]:
        """The jobs with a memory profile: the newest, for none of the past is kept."""
        snapshot = self.scene.newest
        return [p for p in snapshot.processes if p.profile is not None] if snapshot else []

    @property
    def _chosen(self) -> Process | None:
        """The selected process, with its newest profile."""
        process = self.scene.process
        if process is None:
            return None
        profiles = (p.profile for p in self._jobs if p.key == process.key)
        return process._replace(profile=next(profiles, None))

    def _job_place(self, process: Process) -> str:
        keys = [p.key for p in self._jobs]
        return f"job {keys.index(process.key) + 1} of {len(keys)}, Tab: next" if keys[1:] else ""

    @property
    def _selected(self) -> TreeRow | None:
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
        """Show the next job with a memory profile."""
        keys, now = [p.key for p in self._jobs], self.scene.process
        if not keys or (now is not None and keys == [now.key]):
            return
        self.scene.choose_process(stepped(keys, now and now.key, step))
        self._device = None
        self.rows.forget()
        self.draw()

    def action_mark(self) -> None:
        """Show changes since now from now on."""
        process = self._chosen
        if process is not None and process.profile is not None:
            self.scene.marks[process.key] = process.profile
            self.draw()

    def action_sort(self) -> None:
        """Sort by the next order; by change only if there is a mark."""
        process = self.scene.process
        has_mark = process is not None and process.key in self.scene.marks
        orders = [o for o in ORDERS if o not in CHANGES or has_mark]
        self._sort_by(stepped(orders, self.order, 1))

    def on_grid_titled(self, message: TreeTable.Titled) -> None:
        title = {"SHARE": ORDERS[0]}.get(message.title, message.title)
        if title in ORDERS:
            self._sort_by(title)

    def _sort_by(self, order: str) -> None:
        self.order = order
        self.rows.to_top()
        self.draw()

    def action_device(self, step: int) -> None:
        """Show the next device alone, or all devices."""
        process, snapshot = self.scene.process, self.scene.snapshot
        if process is None or snapshot is None:
            return
        devices = snapshot.devices_of(process.key)
        ids = [None, *(d.id for d in devices if d.id is not None)]
        at = ids.index(self._device) if self._device in ids else 0
        self._device = ids[(at + step) % len(ids)]
        self.draw()

    def action_fold(self) -> None:
        """Open or close the row under the cursor."""
        if self._selected is not None:
            self.rows.fold(self._selected.key)
            self.draw()

    def action_fold_all(self, is_open: bool) -> None:
        """Open or close every row."""
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
            self.prompt.show_filter(message.text)
        self.filter = message.text
        self.draw()
