"""A table whose rows fold: nodes of a tree under titles, with a mark that opens and shuts each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from textual.events import Click
from textual.message import Message

from tpusmi.tui.allocations import Key, Node
from tpusmi.tui.columns import GAP, Column, fit
from tpusmi.tui.grid import Grid

INDENT = 2


class Branch(NamedTuple):
    """A node of the tree as a row."""

    node: Node
    depth: int
    is_open: bool

    @property
    def key(self) -> Key:
        return self.node.key


def branches(nodes: Iterable[Node], is_open: Callable[[Key], bool], depth: int = 0) -> list[Branch]:
    """The rows that are not folded away, top to bottom."""
    return [*_unfolded(nodes, is_open, depth)]


def _unfolded(
    nodes: Iterable[Node], is_open: Callable[[Key], bool], depth: int
) -> Iterator[Branch]:
    for node in nodes:
        opened = bool(node.children) and is_open(node.key)
        yield Branch(node, depth, opened)
        if opened:
            yield from _unfolded(node.children, is_open, depth + 1)


def nearest(key: Key, shown: Collection[Hashable]) -> Key | None:
    """The key, or what it is in, that is shown; None when nothing of it is."""
    ways = (key[:length] for length in range(len(key), 0, -1))
    return next((way for way in ways if way in shown), None)


class Folds(Grid[Any]):
    """Rows of Branch; the last column draws the mark."""

    class Folded(Message):
        """A person opens or shuts that row."""

        def __init__(self, key: Key) -> None:
            super().__init__()
            self.key = key

    class Sorted(Message):
        """A person clicked on that title."""

        def __init__(self, title: str) -> None:
            super().__init__()
            self.title = title

    def show_items(self, items: Sequence[Any]) -> None:
        """Show these; a cursor that was in sight stays in sight when rows come and go."""
        index, top = self.index, self._top
        was_seen = index is not None and top <= index < top + self.page
        is_other = items is not self._items
        super().show_items(items)
        if is_other and was_seen and (index := self.index) is not None:
            self._top = min(max(self._top, index - self.page + 1), index)
            self.redraw()

    def to_top(self) -> None:
        """Look at the first rows."""
        self._top = 0

    def on_click(self, event: Click) -> None:
        # Grid's own handler, which moves the cursor, runs as well.
        if event.y == 0:
            if (title := self._at(event.x)[0]) is not None:
                self.post_message(self.Sorted(title.title))
            return
        index = self._top + event.y - 1
        if index >= len(self._items):
            return
        branch = self._items[index]
        column, offset = self._at(event.x)
        is_last = column is self._columns[-1]
        if event.chain == 2 or (is_last and 0 <= offset - INDENT * branch.depth < INDENT):
            self.post_message(self.Folded(branch.key))

    def _at(self, x: int) -> tuple[Column[Any] | None, int]:
        """The column there, and how far from its left edge."""
        left = 0
        for column, width in fit(self._columns, self._needs, self.size.width, self._absent):
            if left <= x < left + width:
                return column, x - left
            left += width + GAP
        return None, 0
