"""Columns of a table: what each draws, and which of them fit a width. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tpusmi.model import Subject
from tpusmi.tui.draw.look import Row


class Keyed(Protocol):
    """A device, or a process in its place: what a row is about."""

    @property
    def key(self) -> Subject | None:
        """What its values are filed under; None for what the cursor passes over."""


Item = TypeVar("Item", bound=Keyed)

GAP = 1
"""Blank columns between two columns of a table."""


@dataclass(frozen=True)
class Column(Generic[Item]):
    """One column. `draw` returns a cell of exactly the width it is given."""

    title: str
    draw: Callable[[Item, int], Row]
    width: int
    """The least it needs."""
    rank: int = 0
    """Columns of the highest rank go first when there is no room."""
    most: int = 0
    """It takes up to this width from what is left over; 0 takes none."""
    right: bool = False
    text: Callable[[Item], str] | None = None
    """Given when the content decides the width, which then only ever grows, up to `most`."""
    sort: Callable[[Item], Any] | None = None
    """The key to sort by, None for unknown; a column without it cannot be sorted by."""
    falls: bool = False
    """Sorted by it the largest is first, unless a person wants it the other way round."""
    heading: Callable[[], str] | None = None
    """Given when what is said above it changes: no longer than the least width."""
    spare: int = 0
    """It gives way unless so many columns more are left for those that take them."""
    known: Callable[[Item], bool] | None = None
    """Given when the column appears only once some item has something to show in it."""
    least_more: int = 0
    """Of what is left over; fewer columns are of no use to it and go to others."""


def fit(
    columns: Sequence[Column[Item]], needs: Sequence[int], width: int, absent: frozenset[str]
) -> list[tuple[Column[Item], int]]:
    """The columns that fit into `width`, each with its width there.

    `needs` is the least width of each column at this moment, `absent` the titles of those that have
    nothing to show. What is left over goes to those that take it.
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
    """What each column takes of what is left over: as much as the others, up to its room, so that
    columns of one kind draw the same. What cannot be divided goes to the one with the most room.
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
