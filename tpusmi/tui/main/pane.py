"""The pane under the tables: details of the selected process, and where there is room of others."""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.model import Process, Snapshot
from tpusmi.tui import chrome
from tpusmi.tui.draw.look import Row
from tpusmi.tui.main.detail import About, Details
from tpusmi.tui.main.roll import Roll
from tpusmi.tui.scene import Scene

STEP = 4
"""Lines are wanted by so many: one more or less moves nothing."""


class Pane:
    """Says how many lines it wants, and fills those that it gets."""

    def __init__(self, scene: Scene, roll: Roll) -> None:
        self._scene, self._roll = scene, roll
        self._snapshot: Snapshot | None = None
        self._first: Details | None = None
        self._others: dict[int, Details] = {}
        self._width = 0
        self._most = 0
        """Lines that the selected process has wanted so far: they are not taken away again."""
        self._most_of: tuple[int, bool] | None = None
        """For which width these are, and whether any process is selected."""

    def take(self, snapshot: Snapshot, width: int) -> None:
        """Draw from this snapshot from now on."""
        selected = self._roll.selected
        if (width, selected is None) != self._most_of:
            self._most_of, self._most = (width, selected is None), 0
        self._snapshot, self._others, self._width = snapshot, {}, width
        self._first = None if selected is None else self._details(snapshot, selected)

    @property
    def wanted(self) -> int:
        """Lines of the selected process, or of why there is none."""
        lines = len(self._nothing()) if self._first is None else self._first.wanted
        self._most = max(self._most, _rounded(lines))
        return self._most

    def others(self) -> Iterator[int]:
        """Lines of each other process, made as far as anybody asks."""
        for details in self._details_of_others():
            yield _rounded(details.wanted + 1)

    def lines(self, height: int) -> list[Row]:
        """As many lines as there is room for."""
        if self._first is None:
            return self._nothing()[:height]
        below: list[Row] = []
        for details in self._details_of_others() if height > self._most else ():
            wanted = _rounded(details.wanted + 1)
            if len(below) + wanted > height - self._most:
                break
            lines = [(), *details.lines(wanted - 1)]
            below += [*lines, *[()] * (wanted - len(lines))]
        first = self._first.lines(height - len(below))
        return [*first, *[()] * (height - len(below) - len(first)), *below]

    def _details_of_others(self) -> Iterator[Details]:
        """Of each living process but the selected, in the order of the table."""
        snapshot, selected = self._snapshot, self._roll.selected
        if snapshot is None:
            return
        for n, branch in enumerate(self._roll.grid.items):
            p = branch.process
            if p is None or p is selected or p.is_dead or not p.is_verified:
                continue
            if n not in self._others:
                self._others[n] = self._details(snapshot, p)
            yield self._others[n]

    def _details(self, s: Snapshot, p: Process) -> Details:
        table, telling = self._roll.table, self._scene.ends.progress
        about = About(table.devices(p), telling.get(p.key))
        return Details(self._scene.look, s, p, about, self._width)

    def _nothing(self) -> list[Row]:
        s = self._snapshot
        return [] if s is None else chrome.nothing(self._scene.look, s, self._roll.table.filter)


def _rounded(lines: int) -> int:
    return -(-lines // STEP) * STEP
