"""Where the cells of a heat map are: the largest cells that fit, in blocks with a label. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

LABEL_MOST = 24
"""The most columns of a label."""
GAP = 1
"""Columns between two blocks without labels."""
LABEL_GAP = 2
"""Columns between two blocks with labels."""
SHORTER = (16, 8)
"""Cells of a block where groups differ: a large one is then several blocks on end."""
ROUND = 8
"""Lines of many cells have a multiple of this number of them."""


class Group(NamedTuple):
    """Cells that stay together, such as those of one host."""

    label: str
    cells: int


class HeatLayout(NamedTuple):
    """Blocks of cells of one size, several on a line."""

    cell_width: int
    label_width: int
    """Columns of the label before each block, with the gap behind it; 0 without labels."""
    across: int
    """The most cells of a block."""
    gap: int
    """Columns between two blocks."""
    per_line: int
    """Blocks on a line."""
    starts: Sequence[int]
    """The first cell of each block."""
    labels: Sequence[str]
    """What each block is labeled with; empty for one that continues another."""
    total: int
    """All cells."""

    @property
    def line_count(self) -> int:
        return -(-len(self.starts) // self.per_line)

    @property
    def _stride(self) -> int:
        return self.label_width + self.across * self.cell_width + self.gap

    def blocks(self, line: int) -> Iterator[tuple[str, range]]:
        """The label and the cells of each block on that line."""
        first = line * self.per_line
        for number in range(first, min(first + self.per_line, len(self.starts))):
            yield self.labels[number], range(self.starts[number], self._end(number))

    def place(self, index: int) -> tuple[int, int]:
        """The line of a cell, and its first column."""
        number = bisect_right(self.starts, index) - 1
        line, block = divmod(number, self.per_line)
        inside = (index - self.starts[number]) * self.cell_width
        return line, block * self._stride + self.label_width + inside

    def index_at(self, line: int, x: int) -> int | None:
        """The cell at that column of a line; None where there is none."""
        block, inside = divmod(x, self._stride)
        number = line * self.per_line + block
        column = (inside - self.label_width) // self.cell_width
        if block >= self.per_line or not 0 <= number < len(self.starts):
            return None
        start, end = self.starts[number], self._end(number)
        return start + column if 0 <= column < end - start else None

    def nearest(self, line: int, x: int) -> int | None:
        """The cell of a line that is nearest to that column; None where the line has none."""
        cells = [index for _, block in self.blocks(line) for index in block]
        return min(cells, key=lambda index: abs(self.place(index)[1] - x), default=None)

    def _end(self, number: int) -> int:
        return self.starts[number + 1] if number + 1 < len(self.starts) else self.total


def fitted(
    groups: Sequence[Group], names: Sequence[str], width: int, height: int, widths: Sequence[int]
) -> HeatLayout:
    """The layout of the largest cells with which all lines fit, with labels if those fit as well;
    else the densest. `widths` are those that a cell may have, largest first.

    With a single group, the label of a line is the name of its first cell.
    """
    several = len(groups) > 1
    layouts = _blocks(groups, width, widths) if several else _one_group(names, width, widths)
    densest = None
    for layout in layouts:
        if layout.line_count <= height:
            return layout
        densest = layout
    assert densest is not None
    return densest


def _one_group(names: Sequence[str], width: int, widths: Sequence[int]) -> Iterator[HeatLayout]:
    """Lines of cells: with the name of the first in front of each, then without."""
    label = min(max(map(len, names), default=0), LABEL_MOST) + 1
    for cell in widths:
        for label_width in (label, 0):
            across = _rounded(max(1, (width - label_width) // cell), is_dense=not label_width)
            starts = range(0, len(names), across)
            labels = [names[start] if label_width else "" for start in starts]
            yield HeatLayout(
                cell_width=cell,
                label_width=label_width,
                across=across,
                gap=0,
                per_line=1,
                starts=starts,
                labels=labels,
                total=len(names),
            )


def _blocks(groups: Sequence[Group], width: int, widths: Sequence[int]) -> Iterator[HeatLayout]:
    """Blocks of a group each: the numbers matter more than the labels. Then cells on end."""
    label = min(max(len(g.label) for g in groups), LABEL_MOST) + 1
    numbers, small = [w for w in widths if w > 2], [w for w in widths if w <= 2]
    tries = [(w, label) for w in numbers] + [(w, 0) for w in numbers]
    tries += [(w, wide) for w in small for wide in (label, 0)]
    largest = max(g.cells for g in groups)
    for cell, label_width in tries:
        room = max(1, (width - label_width) // cell)
        most = largest if largest <= room else _rounded(room, is_dense=False)
        for across in (most, *(n for n in SHORTER if n < most)):
            yield _block_layout(groups, width, (cell, across), label_width)
    total, across = sum(g.cells for g in groups), max(1, width // widths[-1])
    starts = range(0, total, across)
    yield HeatLayout(
        cell_width=widths[-1],
        label_width=0,
        across=across,
        gap=0,
        per_line=1,
        starts=starts,
        labels=[""] * len(starts),
        total=total,
    )


def _block_layout(
    groups: Sequence[Group], width: int, block: tuple[int, int], label_width: int
) -> HeatLayout:
    """Blocks of that cell width, and of that many cells: a larger group has several."""
    cell, across = block
    gap = LABEL_GAP if label_width else GAP
    per_line = max(1, (width + gap) // (label_width + across * cell + gap))
    starts, labels = [], []
    for first, group in _placed(groups):
        for offset in range(0, group.cells, across):
            starts.append(first + offset)
            labels.append("" if offset or not label_width else group.label)
    return HeatLayout(
        cell_width=cell,
        label_width=label_width,
        across=across,
        gap=gap,
        per_line=per_line,
        starts=starts,
        labels=labels,
        total=sum(g.cells for g in groups),
    )


def _placed(groups: Iterable[Group]) -> Iterator[tuple[int, Group]]:
    """Each group with the number of its first cell."""
    first = 0
    for group in groups:
        yield first, group
        first += group.cells


def _rounded(count: int, *, is_dense: bool) -> int:
    """Fewer cells on a line if that makes their number a round one."""
    if is_dense or count < ROUND:
        return count
    return count - count % ROUND
