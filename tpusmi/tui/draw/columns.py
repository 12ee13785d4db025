"""Columns of a table: what each draws, and which of them fit a width. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tpusmi.model import Snapshot, Subject, Value
from tpusmi.report.columns import Cell, ColumnSpec
from tpusmi.report.grid import fitting
from tpusmi.report.rows import IndexedSnapshot
from tpusmi.tui.draw.look import Look, Row


class Keyed(Protocol):
    """The device or process of a row."""

    @property
    def key(self) -> Subject | None:
        """The key of its values; None for a row that the cursor passes over."""


Item = TypeVar("Item", bound=Keyed)

GAP = 1
"""Blank columns between two columns of a table."""


@dataclass(frozen=True)
class Column(Generic[Item]):
    """One column. `draw` returns a cell of exactly the width it is given."""

    title: str
    draw: Callable[[Item, int], Row]
    width: int
    """Its least width."""
    rank: int = 0
    """Columns of the highest rank go first when there is no room."""
    most: int = 0
    """The width it may grow to if there is room; 0 for a column that does not grow."""
    right: bool = False
    text: Callable[[Item], str] | None = None
    """Given if the longest text decides the width, which then only grows, up to `most`."""
    sort: Callable[[Item], Any] | None = None
    """The key to sort by, None for unknown; a column without it cannot be sorted by."""
    falls: bool = False
    """The largest is first when the table is sorted by it, unless the order is reversed."""
    heading: Callable[[], str] | None = None
    """Given if its title changes: no longer than the least width."""
    spare: int = 0
    """The column is left out unless this many columns remain for other columns to grow."""
    known: Callable[[Item], bool] | None = None
    """Given if the column appears only once some item has something to show in it."""
    least_more: int = 0
    """The least it grows by; with less it does not grow, and others do."""


def fit(
    columns: Sequence[Column[Item]], needs: Sequence[int], width: int, absent: frozenset[str]
) -> list[tuple[Column[Item], int]]:
    """The columns that fit into `width`, each with its width there.

    `needs` is the current least width of each column, `absent` the titles of columns with nothing
    to show. Room that is left over goes to the columns that may grow.
    """
    present = [(c, n) for c, n in zip(columns, needs, strict=True) if c.title not in absent]
    kept = fitting([c for c, _ in present], [n for _, n in present], width, GAP)
    chosen = [present[n] for n in kept]
    takers = {c.title: (c, c.most - need) for c, need in chosen if c.most and c.text is None}
    left = width - _total(chosen)
    more = _shared(left, {title: room for title, (_, room) in takers.items()})
    of_use = {t: room for t, (c, room) in takers.items() if more[t] >= c.least_more}
    if len(of_use) < len(more):
        more = _shared(left, of_use)
    return [(column, need + more.get(column.title, 0)) for column, need in chosen]


def _shared(left: int, rooms: dict[str, int]) -> dict[str, int]:
    """How much each column grows: as much as the others, up to its room, so that columns of one
    kind look the same. A remainder goes to the column with the most room.
    """
    taken = dict.fromkeys(rooms, 0)
    while left > 0 and (hungry := [title for title in rooms if taken[title] < rooms[title]]):
        even = left // len(hungry)
        if not even:
            hungry, even = [max(hungry, key=lambda title: rooms[title])], left
        for title in hungry:
            share = min(even, rooms[title] - taken[title])
            taken[title] += share
            left -= share
    return taken


def _total(chosen: Sequence[tuple[Column[Item], int]]) -> int:
    return sum(need + GAP for _, need in chosen) - GAP


class Cells(Generic[Item]):
    """Draws cells of devices or processes, with the values of its current snapshot."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.at: IndexedSnapshot | None = None
        """What is drawn; None before the first snapshot."""

    def take(self, snapshot: Snapshot) -> None:
        """Draw from this snapshot from now on."""
        self.at = IndexedSnapshot(snapshot)

    def style(self, item: Item, value: Value | None = None) -> str:
        """Gray for stale values."""
        return "dim" if value is not None and value.stale else "plain"

    def column(
        self, shared: ColumnSpec, draw: Callable[[Item, Cell, int], Row] | None = None
    ) -> Column[Item]:
        """A column as all views have it; its cells are drawn plainly unless `draw` does it."""
        get, right = shared.get, shared.right

        def cell(item: Item) -> Cell:
            return Cell("") if get is None or self.at is None else get(self.at, item)

        def plain(item: Item, cell: Cell, width: int) -> Row:
            style = "dim" if cell.repeats else self.style(item, cell.value)
            return self.look.cell(marked(cell), width, style, right=right)

        drawn = draw or plain
        return Column(
            title=shared.title,
            draw=lambda item, width: drawn(item, cell(item), width),
            width=shared.width,
            rank=shared.rank,
            most=shared.most,
            right=right,
            text=(lambda item: cell(item).text) if shared.most and get is not None else None,
            sort=None if get is None else lambda item: cell(item).order,
            falls=shared.falls,
            spare=shared.spare,
            known=(lambda item: cell(item).is_known) if shared.optional else None,
        )


def marked(cell: Cell) -> str:
    """A stale value in parentheses, which need no color to see: `(53%)`."""
    if cell.value is None or not cell.value.stale or cell.repeats:
        return cell.text
    return f"({cell.text.replace(' ', '', 1)})"
