"""Draws the tree of what holds memory, which `allocations.py` builds: rows that fold, columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len
from textual.events import Click

from tpusmi.report import words
from tpusmi.text import counted, per_minute
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.table import Column, Grid
from tpusmi.tui.memory.allocations import (
    BUFFERS,
    BYTES,
    CHANGE,
    CHANGE_COUNT,
    COUNT,
    EXECUTABLE,
    GROUP,
    LINE,
    RATE,
    Key,
    Node,
    at_line,
)

INDENT = 2


class TreeRow(NamedTuple):
    """A node of the tree as a row."""

    node: Node
    depth: int
    is_open: bool

    @property
    def key(self) -> Key:
        return self.node.key


def tree_rows(
    nodes: Iterable[Node], is_open: Callable[[Key], bool], depth: int = 0
) -> Iterator[TreeRow]:
    """The visible rows, top to bottom."""
    for node in nodes:
        opened = bool(node.children) and is_open(node.key)
        yield TreeRow(node, depth, opened)
        if opened:
            yield from tree_rows(node.children, is_open, depth + 1)


def nearest(key: Key, shown: Collection[Key]) -> Key | None:
    """The key, else the nearest shown parent of it; None when none is shown."""
    ways = (key[:length] for length in range(len(key), 0, -1))
    return next((way for way in ways if way in shown), None)


class TreeTable(Grid[Any]):
    """A table of a tree; its last column draws the mark that folds a row."""

    def __init__(self, look: Look, columns: Sequence[Column[Any]], id: str) -> None:
        super().__init__(look, columns, id)
        self._roots: Sequence[Node] = ()
        self.opened: frozenset[Key] = frozenset()
        """The rows that the user has opened."""
        self._placed: Key | None = None
        """The row on which the user put the cursor; it may be gone. Until then the cursor is on
        the first row, whichever that is.
        """

    def show_tree(self, nodes: Sequence[Node]) -> None:
        """Show this tree, with the same rows open. The very same nodes are not drawn again."""
        if nodes is not self._roots or not nodes:
            self._roots = nodes
            self._unfold()

    def fold(self, key: Key) -> None:
        """Open or close that row."""
        self.opened ^= {key}
        self._unfold()

    def fold_all(self, is_open: bool) -> None:
        """Open or close every row."""
        all_rows = tree_rows(self._roots, lambda key: True) if is_open else ()
        self.opened = frozenset(row.key for row in all_rows)
        self._unfold()

    def forget(self) -> None:
        """Close every row, and go to the first."""
        self.opened = frozenset()
        self.to_top()

    def to_top(self) -> None:
        """Scroll to the top, with the cursor on the first row."""
        self._top, self._placed = 0, None
        self._unfold()

    def move_to(self, index: int, *, up: bool = False) -> None:
        """Move the cursor to that row."""
        self._placed = self.items[index].key
        super().move_to(index, up=up)

    def _unfold(self) -> None:
        """A visible cursor stays visible when rows come and go."""
        was_visible = self._is_visible(self.index)
        items = [*tree_rows(self._roots, self.opened.__contains__)]
        keys = {b.key: None for b in items}
        placed = None if self._placed is None else nearest(self._placed, keys)
        self.cursor = placed if placed is not None else next(iter(keys), None)
        if not was_visible:
            self._drawn_cursor = self.cursor  # it is where it was, out of sight
        self.show_items(items)

    def on_click(self, event: Click) -> None:
        # The handler of the base class, which moves the cursor and knows the titles, runs as well.
        column, offset = self._column_under(event.x)
        index = self._top + event.y - 1
        if event.y == 0 or index >= len(self.items):
            return
        branch = self.items[index]
        is_mark = column is self._columns[-1] and 0 <= offset - INDENT * branch.depth < INDENT
        if event.chain == 2 or is_mark:
            self.fold(branch.key)


PERCENT, LEAST_BAR, MOST_BAR = 6, 4, 10
SHUT, SHUT_ASCII = "▸", ">"
PROGRAMS = "programs (executables)"


class MemoryTable:
    """Draws the cells of the tree."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.live_bytes: int | None = None
        """The bytes that a share is of."""
        self.names: Mapping[int | None, str] = {}
        """Names of devices by their global id."""
        self.is_sure = True
        """The mark lists all arrays: one that it does not list is new."""
        self._shut = SHUT_ASCII if look.only_ascii else SHUT

    def columns(self) -> tuple[Column[Any], ...]:
        """The table, left to right."""
        text = Column[Any]
        bar = PERCENT + 1 + MOST_BAR
        return (
            text(BYTES, self._bytes, 10, right=True),
            text("SHARE", self._share, PERCENT, 2, most=bar, least_more=LEAST_BAR + 2),
            text(COUNT, self._count, 6, 3, right=True),
            text(RATE, self._rate, 13, 5, right=True),
            text(CHANGE, self._change, 11, 1, right=True, known=_is_compared),
            text(CHANGE_COUNT, self._change_count, 6, 4, right=True, known=_is_compared),
            text("ALLOCATED BY", self._where, 36, most=400),
        )

    def _bytes(self, b: TreeRow, width: int) -> Row:
        style = "dim" if b.node.is_gone else "plain" if b.depth else "bold"
        return self.look.cell(words.size(b.node.held.bytes), width, style, right=True)

    def _share(self, b: TreeRow, width: int) -> Row:
        """The share of all live arrays; programs are not arrays and have none."""
        size = None if b.node.kind == EXECUTABLE else b.node.held.bytes
        ratio = size / self.live_bytes if size is not None and self.live_bytes else None
        text = words.percent(None if ratio is None else 100 * ratio)
        number = self.look.cell(text, PERCENT, "dim" if ratio is None else "plain", right=True)
        room = width - PERCENT - 1
        if room < LEAST_BAR:
            return (*number, *self.look.cell("", width - PERCENT))
        gap = self.look.cell("", 1)
        if ratio is None:
            return (*number, *gap, *self.look.cell("", room))
        return (*number, *gap, *self.look.bar(ratio, None, room, "graph"))

    def _count(self, b: TreeRow, width: int) -> Row:
        style = "dim" if b.node.is_gone else "plain"
        return self.look.cell(words.count(b.node.held.count), width, style, right=True)

    def _change(self, b: TreeRow, width: int) -> Row:
        change = b.node.change_bytes
        return self.look.cell(signed_size(change), width, _grown(change), right=True)

    def _change_count(self, b: TreeRow, width: int) -> Row:
        change = b.node.change_count
        text = words.count(change if change is None else abs(change))
        sign = "" if not change else "-" if change < 0 else "+"
        return self.look.cell(sign + text, width, _grown(change), right=True)

    def _rate(self, b: TreeRow, width: int) -> Row:
        """How fast it grows; blank below a line, of which only the whole is known."""
        rate = b.node.bytes_per_s
        if b.node.level == BUFFERS:
            return self.look.cell("", width)
        return self.look.cell(signed_rate(rate), width, _grown(rate), right=True)

    def _where(self, b: TreeRow, width: int) -> Row:
        """The name behind the mark, and the place, of which a long path keeps its end."""
        mark = " " if not b.node.children else self.look.glyphs.down if b.is_open else self._shut
        flag = self._flag(b.node)
        before = f"{' ' * (INDENT * b.depth)}{mark} "
        name, place = self._name_and_place(b.node)
        room = width - cell_len(before + flag + name) - 2
        if place and cell_len(place) > room:
            place = self.look.glyphs.cut + place[len(place) - max(room - 1, 0) :]
        style = "dim" if b.node.is_gone else "plain" if b.depth else "bold"
        line = self.look.line(
            (before, "plain"), (flag, "warn"), (name, style), (f"  {place}" if place else "", "dim")
        )
        used = sum(piece.cell_length for piece in line)
        if used > width:
            return self.look.cell(before + flag + name, width, style)
        return (*line, *self.look.cell("", width - used))

    def _flag(self, n: Node) -> str:
        """Says that a line of code is new or gone since the mark."""
        if n.level == BUFFERS or not (n.is_new or n.is_gone):
            return ""
        return "gone " if n.is_gone else "new " if self.is_sure else "new? "

    def _name_and_place(self, n: Node) -> tuple[str, str]:
        """The name of a node, and its place."""
        if n.level == GROUP:
            return PROGRAMS, ""
        if n.level == LINE:
            return at_line(n), ""
        if n.level == BUFFERS:
            return self._buffers(n), ""
        lines = counted(len(n.children), "line")
        return n.function, f"{n.file}, {lines}" if n.has_lines else at_line(n)

    def _buffers(self, n: Node) -> str:
        """The buffers of a line on one device: where, of what kind, and their mean size."""
        where = self.names.get(n.device, f"device {n.device}") if n.device is not None else ""
        kind = n.kind if not where or n.kind == EXECUTABLE else ""
        mean = ""
        if n.held.bytes is not None and n.held.count > 1:
            mean = f"mean {words.size(n.held.bytes / n.held.count)}"
        return "  ".join(part for part in (where, kind, mean) if part)


def signed_size(change: int | None) -> str:
    """A change in bytes, with its sign: `+1.2 GiB`."""
    if not change:
        return words.size(change)
    return ("-" if change < 0 else "+") + words.size(abs(change))


def signed_rate(bytes_per_s: float | None) -> str:
    """A rate with its sign: `+390 MiB/min`."""
    if bytes_per_s is None:
        return words.UNKNOWN
    if not bytes_per_s:
        return "0"
    return f"{'-' if bytes_per_s < 0 else '+'}{per_minute(abs(bytes_per_s))}/min"


def _grown(change: float | None) -> str:
    """The style of a change: growth may be a leak."""
    if not change:
        return "dim"
    return "warn" if change > 0 else "good"


def _is_compared(b: TreeRow) -> bool:
    return b.node.before is not None
