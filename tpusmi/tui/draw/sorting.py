"""By which column a table is sorted, and steps through choices. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Generic, TypeVar

from tpusmi.tui.draw.item_list import Item
from tpusmi.tui.draw.table import Column

Choice = TypeVar("Choice")


class Sorting(Generic[Item]):
    """The column that a table is sorted by, and how the user chooses another."""

    def __init__(self, columns: Sequence[Column[Item]], title: str, letters: Mapping[str, str]):
        self._columns = {c.title: c for c in columns if c.sort is not None}
        self._letters = letters
        self.title = title
        self.reversed = False
        """Against the natural order of this column."""

    @property
    def falls(self) -> bool:
        """True if the largest is first."""
        return self._columns[self.title].falls != self.reversed

    def sorted(self, items: Sequence[Item]) -> list[Item]:
        """The items in order: equal items keep their order, unknown values are last."""
        key = self._columns[self.title].sort
        assert key is not None
        keyed = [(key(item), item) for item in items]
        known = sorted(
            (k for k in keyed if k[0] is not None), key=itemgetter(0), reverse=self.falls
        )
        return [*(item for _, item in known), *(item for k, item in keyed if k is None)]

    def step(self, count: int) -> None:
        """Sort by the column that many steps further on."""
        self._take(stepped([*self._columns], self.title, count))

    def choose(self, title: str) -> None:
        """Sort by the column with that title, or reverse the order if it is the current one."""
        if title == self.title:
            self.reversed = not self.reversed
        elif title in self._columns:
            self._take(title)

    def choose_letter(self, letter: str) -> bool:
        """Sort by the column with that letter, reversed for a capital; False if no column has the
        letter.
        """
        title = self._letters.get(letter.lower())
        if title is None:
            return False
        self._take(title, letter.isupper())
        return True

    def _take(self, title: str, reversed: bool = False) -> None:
        self.title, self.reversed = title, reversed


def stepped(choices: Sequence[Choice], chosen: object, step: int) -> Choice:
    """The choice that many steps further on, from the last to the first; the first if the chosen
    one is gone. There must be at least one.
    """
    at = choices.index(chosen) + step if chosen in choices else 0
    return choices[at % len(choices)]
