"""The columns of the tree of what holds memory. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len

from tpusmi.report import words
from tpusmi.text import counted
from tpusmi.tui.draw.columns import Column
from tpusmi.tui.draw.folds import INDENT, Branch
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.memory.allocations import (
    BUFFERS,
    BYTES,
    CHANGE,
    CHANGE_COUNT,
    COUNT,
    EXECUTABLE,
    FUNCTION,
    GROUP,
    LINE,
    Node,
    at_line,
)

PERCENT, LEAST_BAR, MOST_BAR = 6, 4, 10
SHUT, SHUT_ASCII = "▸", ">"
PROGRAMS = "programs (executables)"


class MemoryTable:
    """Draws cells of branches."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.live_bytes: int | None = None
        """What a share is of."""
        self.names: Mapping[int | None, str] = {}
        """Of devices by their global id."""
        self.is_sure = True
        """What the mark does not list was not there then."""
        self._shut = SHUT_ASCII if look.only_ascii else SHUT

    def columns(self) -> tuple[Column[Any], ...]:
        """The table, left to right."""
        text = Column[Any]
        bar = PERCENT + 1 + MOST_BAR
        return (
            text(BYTES, self._bytes, 10, right=True),
            text("SHARE", self._share, PERCENT, 2, most=bar),
            text(COUNT, self._count, 6, 3, right=True),
            text(CHANGE, self._change, 11, 1, right=True, known=_is_compared),
            text(CHANGE_COUNT, self._change_count, 6, 4, right=True, known=_is_compared),
            text("ALLOCATED BY", self._where, 28, most=400),
        )

    def _bytes(self, b: Branch, width: int) -> Row:
        style = "dim" if b.node.is_gone else "plain" if b.depth else "bold"
        return self.look.cell(words.size(b.node.held.bytes), width, style, right=True)

    def _share(self, b: Branch, width: int) -> Row:
        """Of all live arrays; a program is none."""
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

    def _count(self, b: Branch, width: int) -> Row:
        style = "dim" if b.node.is_gone else "plain"
        return self.look.cell(words.count(b.node.held.count), width, style, right=True)

    def _change(self, b: Branch, width: int) -> Row:
        change = b.node.change_bytes
        return self.look.cell(signed_size(change), width, _grown(change), right=True)

    def _change_count(self, b: Branch, width: int) -> Row:
        change = b.node.change_count
        text = words.count(change if change is None else abs(change))
        sign = "" if not change else "-" if change < 0 else "+"
        return self.look.cell(sign + text, width, _grown(change), right=True)

    def _where(self, b: Branch, width: int) -> Row:
        """Its name behind the mark, and where it is: of a long path the end is what tells."""
        mark = " " if not b.node.children else self.look.glyphs.down if b.is_open else self._shut
        flag = self._flag(b.node)
        before = f"{' ' * (INDENT * b.depth)}{mark} "
        name, place = self._told(b.node)
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
        """Of a line of code that came after the mark, or went."""
        if n.level == BUFFERS or not (n.is_new or n.is_gone):
            return ""
        return "gone " if n.is_gone else "new " if self.is_sure else "new? "

    def _told(self, n: Node) -> tuple[str, str]:
        """What it is, and where."""
        if n.level == GROUP:
            return PROGRAMS, ""
        if n.level == LINE:
            return at_line(n), ""
        if n.level == BUFFERS:
            return self._buffers(n), ""
        several = n.level == FUNCTION and n.children[0].level == LINE
        lines = counted(len(n.children), "line")
        return n.function, f"{n.file}, {lines}" if several else at_line(n)

    def _buffers(self, n: Node) -> str:
        """What a line keeps on one device, and how large each is."""
        where = self.names.get(n.device, f"device {n.device}") if n.device is not None else ""
        kind = n.kind if not where or n.kind == EXECUTABLE else ""
        mean = ""
        if n.held.bytes is not None and n.held.count > 1:
            mean = f"mean {words.size(n.held.bytes / n.held.count)}"
        return "  ".join(part for part in (where, kind, mean) if part)


def signed_size(change: int | None) -> str:
    """Bytes more or less: `+1.2 GiB`."""
    if not change:
        return words.size(change)
    return ("-" if change < 0 else "+") + words.size(abs(change))


def _grown(change: int | None) -> str:
    """The style of a change: growth is what a leak looks like."""
    if not change:
        return "dim"
    return "warn" if change > 0 else "good"


def _is_compared(b: Branch) -> bool:
    return b.node.before is not None
