"""A table whose rows fold: nodes of a tree under titles, with a mark that opens and shuts each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from textual.events import Click

from tpusmi.tui.draw.columns import GAP, Column, fit
from tpusmi.tui.draw.grid import Grid
from tpusmi.tui.draw.look import Look
from tpusmi.tui.memory.allocations import Key, Node

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


def nearest(key: Key, shown: Collection[Key]) -> Key | None:
    """The key, or what it is in, that is shown; None when nothing of it is."""
    ways = (key[:length] for length in range(len(key), 0, -1))
    return next((way for way in ways if way in shown), None)


class Folds(Grid[Any]):
    """Rows of Branch; the last column draws the mark."""

    def __init__(self, look: Look, columns: Sequence[Column[Any]], id: str) -> None:
        super().__init__(look, columns, id)
        self._roots: Sequence[Node] = ()
        self._opened: set[Key] = set()
        self._placed: Key | None = None
        """The row on which a person put the cursor; it need not be there any more. Until then the
        cursor is on the first row, whichever that is.
        """

    @property
    def opened(self) -> frozenset[Key]:
        """The rows that a person has opened."""
        return frozenset(self._opened)

    def show_tree(self, nodes: Sequence[Node]) -> None:
        """Show this tree, folded as it was. The very same nodes are not drawn anew."""
        if nodes is not self._roots or not nodes:
            self._roots = nodes
            self._unfold()

    def fold(self, key: Key) -> None:
        """Open or shut that row."""
        self._opened ^= {key}
        self._unfold()

    def fold_all(self, is_open: bool) -> None:
        """Open, or shut, every row."""
        self._opened = set()
        todo = [*self._roots] if is_open else []
        while todo:
            node = todo.pop()
            self._opened.add(node.key)
            todo += node.children
        self._unfold()

    def forget(self) -> None:
        """Shut every row, and look at the first."""
        self._opened = set()
        self.to_top()

    def to_top(self) -> None:
        """Look at the first rows, with the cursor on the very first."""
        self._top, self._placed = 0, None
        self._unfold()

    def move_to(self, index: int, *, up: bool = False) -> None:
        """Put the cursor on a row by its place."""
        self._placed = self._items[index].key
        super().move_to(index, up=up)

    def _unfold(self) -> None:
        """A cursor that was in sight stays in sight when rows come and go."""
        was_seen = self._sees(self.index)
        items = branches(self._roots, self._opened.__contains__)
        keys = {b.key: None for b in items}
        placed = None if self._placed is None else nearest(self._placed, keys)
        self.cursor = placed if placed is not None else next(iter(keys), None)
        if not was_seen:
            self._drawn = self.cursor  # it is where it was, out of sight
        self.show_items(items)

    def on_click(self, event: Click) -> None:
        # Grid's own handler, which moves the cursor and knows the titles, runs as well.
        column, offset = self._at(event.x)
        index = self._top + event.y - 1
        if event.y == 0 or index >= len(self._items):
            return
        branch = self._items[index]
        is_mark = column is self._columns[-1] and 0 <= offset - INDENT * branch.depth < INDENT
        if event.chain == 2 or is_mark:
            self.fold(branch.key)

    def _at(self, x: int) -> tuple[Column[Any] | None, int]:
        """The column there, and how far from its left edge."""
        left = 0
        for column, width in fit(self._columns, self._needs, self.size.width, self._absent):
            if left <= x < left + width:
                return column, x - left
            left += width + GAP
        return None, 0
