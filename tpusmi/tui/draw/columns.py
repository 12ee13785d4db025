"""Columns of a table: what each draws, and which of them fit a width. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tpusmi.model import Snapshot, Subject, Value
from tpusmi.report import words
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
    chosen = [(c, n) for c, n in zip(columns, needs, strict=True) if c.title not in absent]
    while len(chosen) > 1:
        first = max(chosen, key=lambda c: c[0].rank)
        if _total(chosen) + first[0].spare <= width:
            break
        chosen.remove(first)
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
        self.snapshot: Snapshot | None = None

    def value(self, name: str, item: Item) -> Value | None:
        """The item's value of that metric."""
        if self.snapshot is None or item.key is None:
            return None
        return self.snapshot.values.get((item.key, name))

    def style(self, item: Item, *values: Value | None) -> str:
        """Gray for stale values."""
        return "dim" if any(v is not None and v.stale for v in values) else "plain"

    def number(self, name: str, read: Callable[[float | None], str]) -> Callable[[Item, int], Row]:
        """Returns a function that draws the cells of a column of numbers."""

        def draw(item: Item, width: int) -> Row:
            v = self.value(name, item)
            text = marked(read(None if v is None else v.value), v)
            return self.look.cell(text, width, self.style(item, v), right=True)

        return draw

    def plain(
        self, read: Callable[[Item], str], *, right: bool = False
    ) -> Callable[[Item, int], Row]:
        """Returns a function that draws the cells of a column of texts."""

        def draw(item: Item, width: int) -> Row:
            text = read(item) or words.UNKNOWN
            return self.look.cell(text, width, self.style(item), right=right)

        return draw


def marked(text: str, v: Value | None) -> str:
    """A stale value in parentheses, which need no color to see: `(53%)`."""
    return text if v is None or not v.stale else f"({text.replace(' ', '')})"


def age(seconds: float) -> str:
    """How long ago, in the largest whole unit: `0s`, `59s`, `59m`, `23h`, `9d`."""
    for unit, size_s in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size_s:
            return f"{int(seconds // size_s)}{unit}"
    return f"{max(0, int(seconds))}s"
