"""How the process table is ordered: by a column, or as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Generic

from tpusmi.model import Process
from tpusmi.report import words
from tpusmi.report.family import TREE_ASCII, Branch
from tpusmi.tui.draw.columns import Column, Item
from tpusmi.tui.draw.look import Look, Row, width_of


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
        titles = [*self._columns]
        self._take(titles[(titles.index(self.title) + count) % len(titles)])

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


LEAST_COMMAND = 8
"""The least width of a command, however deep it is in the tree."""


def of_branches(look: Look, columns: Iterable[Column[Process]]) -> tuple[Column[Branch], ...]:
    """The same columns for a tree, which is drawn before the commands."""
    return tuple(_of_branch(look, column) for column in columns)


def _of_branch(look: Look, column: Column[Process]) -> Column[Branch]:
    text, known = column.text, column.known

    def draw(b: Branch, width: int) -> Row:
        if column.title != "COMMAND":
            return _cell(look, column, b, width)
        indent = _indent(look, b, width)
        return (*indent, *_cell(look, column, b, width - width_of(indent)))

    return Column(
        title=column.title,
        draw=draw,
        width=column.width,
        rank=column.rank,
        most=column.most,
        right=column.right,
        text=None if text is None else lambda b: "" if b.process is None else text(b.process),
        known=None if known is None else lambda b: b.process is not None and known(b.process),
        spare=column.spare,
    )


def _cell(look: Look, column: Column[Process], b: Branch, width: int) -> Row:
    if b.process is not None:
        return column.draw(b.process, width)
    # What has only started other processes has no values.
    texts = {"PID": str(b.pid), "COMMAND": words.command(b.command)}
    return look.cell(texts.get(column.title, ""), width, "dim", right=column.right)


def _indent(look: Look, b: Branch, width: int) -> Row:
    text = b.indent.translate(TREE_ASCII) if look.only_ascii else b.indent
    # The nearest branches are at the end.
    room = max(0, width - LEAST_COMMAND)
    return look.line((text[-room:] if room else "", "dim"))
