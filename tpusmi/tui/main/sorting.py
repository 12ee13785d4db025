"""In which order a table is: by which column, and whether the other way round. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic

from tpusmi.tui.draw.columns import Column, Item


class Sorting(Generic[Item]):
    """The column that a table is sorted by, and how another is chosen."""

    def __init__(self, columns: Sequence[Column[Item]], title: str, letters: Mapping[str, str]):
        self._columns = {c.title: c for c in columns if c.sort is not None}
        self._letters = letters
        self.title = title
        self.reversed = False
        """The other way round than this column is read by itself."""

    @property
    def falls(self) -> bool:
        """True where the largest is first."""
        return self._columns[self.title].falls != self.reversed

    def sorted(self, items: Sequence[Item]) -> list[Item]:
        """The items in order: equal ones stay as they are, those of unknown value are last."""
        key = self._columns[self.title].sort
        assert key is not None
        known = [item for item in items if key(item) is not None]
        known.sort(key=key, reverse=self.falls)
        return [*known, *(item for item in items if key(item) is None)]

    def step(self, count: int) -> None:
        """Sort by the column that many further on."""
        titles = [*self._columns]
        self._take(titles[(titles.index(self.title) + count) % len(titles)])

    def choose(self, title: str) -> None:
        """Sort by the column with that title; the other way round if it is the one already."""
        if title == self.title:
            self.reversed = not self.reversed
        elif title in self._columns:
            self._take(title)

    def choose_letter(self, letter: str) -> bool:
        """Sort by the column of that letter, the other way round for its capital; False, and
        nothing is changed, when no column has it.
        """
        title = self._letters.get(letter.lower())
        if title is None:
            return False
        self._take(title, letter.isupper())
        return True

    def _take(self, title: str, reversed: bool = False) -> None:
        self.title, self.reversed = title, reversed
