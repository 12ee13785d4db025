"""The processes on the main page: which are shown and selected, and their details below."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator

from tpusmi.model import Notice, Process, ProcessKey, Snapshot
from tpusmi.report.family import Branch
from tpusmi.tui import chrome
from tpusmi.tui.draw.look import Row
from tpusmi.tui.main.process_table import ProcessGrid, ProcessTable
from tpusmi.tui.process.process_details import Details
from tpusmi.tui.scene import Scene

START_S = 5.0
"""How long after the start the cursor still jumps to a stale holder, unless the user has moved it:
it takes a moment to find out whether a holder is stale.
"""


class ProcessList:
    """The table of processes, its selection and its tags."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.table = ProcessTable(scene.look)
        self.table.progress = scene.ends.progress
        self.table.only_of = None if scene.is_root else scene.user
        self.table.filter = scene.options.filter
        if scene.options.sort:
            self.table.sorting.title = scene.options.sort
        self.table.sorting.reversed = scene.options.reverse
        self.grid = ProcessGrid(scene.look, self.table.columns(), "processes")
        self._tags: set[ProcessKey] = set()
        self._place = 0
        """The row of the cursor, which stays there when its process is gone."""
        self._start_key: Hashable | None = None
        """The row that had the cursor at the start."""
        self._started_s = 0.0

    @property
    def selected(self) -> Process | None:
        """The process under the cursor."""
        index = self.grid.index
        return None if index is None else self.grid.items[index].process

    @property
    def targets(self) -> tuple[Process, ...]:
        """The tagged processes, hidden by the filter or not; without any, the selected process."""
        s, selected = self._scene.snapshot, self.selected
        if tagged := [p for p in (s.processes if s else ()) if p.key in self._tags]:
            return tuple(tagged)
        return () if selected is None else (selected,)

    def draw(self, snapshot: Snapshot, active: bool) -> None:
        """Draw the table; if `active`, keys move its cursor."""
        table, grid = self.table, self.grid
        table.take(snapshot)
        self._follow()
        rows = table.branches(kept=grid.cursor)
        self._tags &= {p.key for p in snapshot.processes if not p.is_dead}
        self._put_cursor(rows, snapshot.at_s)
        grid.active, grid.marked = active, self._tags
        grid.warned = table.warned(rows)
        grid.note = "  ".join(self._notes())
        grid.sorted_by = (table.sorting.title, table.sorting.falls)
        grid.show_items(rows)
        self.choose()

    def _follow(self) -> None:
        """Move the cursor with the choice, once, from a process that has ended to the next one."""
        followed = self._scene.followed
        if followed is not None:
            self._scene.followed, self.grid.cursor = None, followed.new

    def choose(self, by_user: bool = False) -> None:
        """Let the other pages show the process under the cursor."""
        selected, index = self.selected, self.grid.index
        key = None if selected is None else selected.key
        if by_user:
            self._scene.choose_process(key)
        self._scene.process_key = key
        self._place = self._place if index is None else index

    def adopt(self) -> None:
        """Move the cursor to the process chosen on another page; drawing moves it on if that is not
        shown.
        """
        self._start_key = self._scene.followed = None
        if self.grid.cursor is not None and self._scene.process_key is not None:
            self.grid.cursor = self._scene.process_key

    def tag(self) -> None:
        """Tag or untag the selected process, and move to the next."""
        selected = self.selected
        if selected is not None and not selected.is_dead:
            self._tags ^= {selected.key}
        self.grid.move(1)

    def untag(self) -> bool:
        """Untag all processes; False if none was tagged."""
        had, self._tags = bool(self._tags), set()
        return had

    def find_stale(self) -> bool:
        """Select the next stale holder; False if there is none."""
        items, at = self.grid.items, self._place + 1
        order = [*range(at, len(items)), *range(min(at, len(items)))]
        stale = next((i for i in order if _is_stale(items[i])), None)
        if stale is not None:
            self.grid.move_to(stale)
        return stale is not None

    def _notes(self) -> Iterator[str]:
        if self.table.as_tree:
            yield "tree"
        if self._tags:
            yield f"{len(self._tags)} tagged"

    def _put_cursor(self, rows: list[Branch], at_s: float) -> None:
        if self.grid.cursor is None:
            self._started_s = at_s
        grid = self.grid
        places: dict[Hashable, int] = {b.key: n for n, b in enumerate(rows) if b.key is not None}
        if not places:
            return
        place = places.get(grid.cursor)
        # Shortly after the start the cursor is where it was put.
        is_new = grid.cursor == self._start_key and at_s - self._started_s < START_S
        if grid.cursor is None or (place is not None and is_new):
            best = min(places.values(), key=lambda n: (_rank(rows[n]), n))
            place = best if place is None or _rank(rows[best]) < _rank(rows[place]) else place
            self._start_key = rows[place].key
        elif place is None:
            place = min(places.values(), key=lambda n: abs(n - self._place))
        grid.cursor = rows[place].key


def _rank(branch: Branch) -> int:
    """Where the cursor should start: at a stale holder, else at a process that the kernel shows; a
    mere file of another user comes last.
    """
    if _is_stale(branch):
        return 0
    return 1 if branch.process is not None and branch.process.is_verified else 2


def _is_stale(branch: Branch) -> bool:
    return branch.process is not None and bool(branch.process.stale)


STEP = 4
"""The pane asks for lines in this step: one more or less moves nothing."""


class DetailPane:
    """Details of the selected process and, where there is room, of others."""

    def __init__(self, scene: Scene, process_list: ProcessList) -> None:
        self._scene, self._list = scene, process_list
        self.hidden = False
        """The user has hidden the processes, and the details with them."""
        self._snapshot: Snapshot | None = None
        self._first: Details | None = None
        self._others: dict[int, Details] = {}
        self._width = 0
        self._most = 0
        """The most lines of the selected process so far: they are not taken away again."""
        self._most_of: tuple[int, bool] | None = None
        """The width that these lines are for, and whether no process is selected."""

    def take(self, snapshot: Snapshot, width: int) -> None:
        """Draw from this snapshot from now on."""
        selected = self._list.selected
        if (width, selected is None) != self._most_of:
            self._most_of, self._most = (width, selected is None), 0
        self._snapshot, self._others, self._width = snapshot, {}, width
        self._first = None if selected is None else self._details(snapshot, selected)

    @property
    def height(self) -> int:
        """Lines about the selected process, or about why there is none."""
        lines = len(self._nothing()) if self._first is None else self._first.height
        self._most = max(self._most, _rounded(lines))
        return self._most

    def others(self) -> Iterator[int]:
        """Lines of each other process, made only as far as the caller asks."""
        for details in self._details_of_others():
            yield _rounded(details.height + 1)

    def notices_in(self, height: int) -> Collection[Notice]:
        """The warnings that it shows whole in that many lines."""
        return () if self._first is None or self.hidden else self._first.notices_in(height)

    def lines(self, height: int) -> list[Row]:
        """As many lines as there is room for."""
        if self.hidden:
            return []
        if self._first is None:
            return self._nothing()[:height]
        below: list[Row] = []
        for details in self._details_of_others() if height > self._most else ():
            needed = _rounded(details.height + 1)
            if len(below) + needed > height - self._most:
                break
            lines = [(), *details.lines(needed - 1)]
            below += [*lines, *[()] * (needed - len(lines))]
        first = self._first.lines(height - len(below))
        return [*first, *[()] * (height - len(below) - len(first)), *below]

    def _details_of_others(self) -> Iterator[Details]:
        """Details of the other living processes, in the order of the table."""
        snapshot, selected = self._snapshot, self._list.selected
        if snapshot is None:
            return
        for n, branch in enumerate(self._list.grid.items):
            p = branch.process
            if p is None or p is selected or p.is_dead or not p.is_verified:
                continue
            if n not in self._others:
                self._others[n] = self._details(snapshot, p)
            yield self._others[n]

    def _details(self, s: Snapshot, p: Process) -> Details:
        ending = self._scene.ends.progress.get(p.key)
        return Details(self._scene.look, s, p, ending, self._width)

    def _nothing(self) -> list[Row]:
        s = self._snapshot
        return [] if s is None else chrome.nothing(self._scene.look, s, self._list.table.filter)


def _rounded(lines: int) -> int:
    return -(-lines // STEP) * STEP
