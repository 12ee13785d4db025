"""The graph in the lines that the tree leaves over."""

from __future__ import annotations

from collections.abc import Hashable

from tpusmi.tui.draw import plot
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Look
from tpusmi.tui.process.memory_curve import Holder
from tpusmi.tui.scene import Scene

LEAST_LINES = 8
"""A lower graph tells too little, its title and its time axis included."""


class MemoryGraph(Lines):
    """Has as many lines as it gets, or none."""

    def __init__(self, look: Look, id: str) -> None:
        super().__init__(look, id=id)
        self._tree: Hashable = None
        self._most_rows = 0
        """Of that tree so far: a row that goes and comes again moves nothing."""

    def height(self, tree: Hashable, rows: int, room: int) -> int:
        """Lines beside so many rows of a tree. `tree` is another where a person has changed what is
        in sight.
        """
        self._most_rows = max(rows, self._most_rows) if tree == self._tree else rows
        self._tree = tree
        left = room - self._most_rows
        return left if left >= LEAST_LINES else 0

    def draw(self, scene: Scene, holder: Holder, span_s: int, width: int, height: int) -> None:
        """Draw it in that many lines."""
        count = plot.slots_across(self.look, max(1, width - plot.SCALE_WIDTH))
        curve = holder.curve(scene.graphs, span_s, count) if height else None
        if curve is None:
            self.show(())
            return
        axis = plot.axis(self.look, span_s, width, "then" if scene.back_s else "now")
        self.show([*plot.graph(self.look, curve, width, height - 1), axis])
