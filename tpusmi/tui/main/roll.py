"""The processes on the main page: which are shown, which is chosen, and which are tagged."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from tpusmi.model import Process, ProcessKey, Snapshot
from tpusmi.report.family import Branch
from tpusmi.tui.draw.grid import Grid
from tpusmi.tui.main.processes import ProcessTable
from tpusmi.tui.scene import Scene

START_S = 5.0
"""So long after the start the cursor still goes to a stale holder, unless a person has moved it:
whether one is stale takes a moment to find out.
"""


class Roll:
    """Draws them, and answers who is meant."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.table = ProcessTable(scene.look)
        self.table.telling = scene.ends.progress
        self.table.filter = scene.options.filter
        self.grid: Grid[Branch] = Grid(scene.look, self.table.columns(), "processes")
        self._tags: set[ProcessKey] = set()
        self._place = 0
        """Where the cursor was: when its process is gone it stays there."""
        self._start_key: Hashable | None = None
        """Where the cursor was put at the start."""
        self._started_s = 0.0

    @property
    def selected(self) -> Process | None:
        """The process under the cursor."""
        index = self.grid.index
        return None if index is None else self.grid.items[index].process

    @property
    def targets(self) -> tuple[Process, ...]:
        """The tagged ones, whether the filter shows them or not; without any the selected one."""
        s, selected = self._scene.snapshot, self.selected
        if tagged := [p for p in (s.processes if s else ()) if p.key in self._tags]:
            return tuple(tagged)
        return () if selected is None else (selected,)

    def draw(self, snapshot: Snapshot, active: bool) -> None:
        """Draw them; with a cursor that keys move where `active`."""
        table, grid = self.table, self.grid
        table.take(snapshot)
        shown = table.shown()
        self._tags &= {p.key for p in snapshot.processes if not p.is_dead}
        self._put_cursor(shown, snapshot.at_s)
        grid.active, grid.marked = active, self._tags
        grid.note = "  ".join(self._notes())
        grid.sorted_by = (table.sorting.title, table.sorting.falls)
        grid.show_items(shown)
        self.choose()

    def choose(self) -> None:
        """What is under the cursor is what the other pages show."""
        selected, index = self.selected, self.grid.index
        self._scene.process_key = None if selected is None else selected.key
        self._place = self._place if index is None else index

    def adopt(self) -> None:
        """Put the cursor on the process that was chosen on another page; drawing sees to it if that
        is not shown.
        """
        self._start_key = None
        if self.grid.cursor is not None and self._scene.process_key is not None:
            self.grid.cursor = self._scene.process_key

    def tag(self) -> None:
        """Tag the selected process, or untag it, and go on to the next."""
        selected = self.selected
        if selected is not None and not selected.is_dead:
            self._tags ^= {selected.key}
        self.grid.move(1)

    def untag(self) -> bool:
        """Untag all; False when there is none."""
        had, self._tags = bool(self._tags), set()
        return had

    def find_stale(self) -> bool:
        """Select the next stale holder; False when there is none."""
        items, at = self.grid.items, self._place + 1
        order = [*range(at, len(items)), *range(min(at, len(items)))]
        found = next((i for i in order if _is_stale(items[i])), None)
        if found is not None:
            self.grid.move_to(found)
        return found is not None

    def _notes(self) -> Iterator[str]:
        if self.table.as_tree:
            yield "tree"
        if self._tags:
            yield f"{len(self._tags)} tagged"

    def _put_cursor(self, shown: list[Branch], at_s: float) -> None:
        if self.grid.cursor is None:
            self._started_s = at_s
        grid = self.grid
        places: dict[Hashable, int] = {b.key: n for n, b in enumerate(shown) if b.key is not None}
        if not places:
            return
        place = places.get(grid.cursor)
        if grid.cursor is None or (place is not None and self._is_untouched(at_s)):
            best = min(places.values(), key=lambda n: (_rank(shown[n]), n))
            place = best if place is None or _rank(shown[best]) < _rank(shown[place]) else place
            self._start_key = shown[place].key
        elif place is None:
            place = min(places.values(), key=lambda n: abs(n - self._place))
        grid.cursor = shown[place].key

    def _is_untouched(self, at_s: float) -> bool:
        """True shortly after the start, while the cursor is where it was put."""
        return self.grid.cursor == self._start_key and at_s - self._started_s < START_S


def _rank(branch: Branch) -> int:
    """What is left over from before is what a person has most often come for; no stranger's file is
    to draw the cursor away from what the kernel shows.
    """
    if _is_stale(branch):
        return 0
    return 1 if branch.process is not None and branch.process.is_verified else 2


def _is_stale(branch: Branch) -> bool:
    return branch.process is not None and bool(branch.process.stale)
