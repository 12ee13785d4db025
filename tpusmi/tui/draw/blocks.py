"""Short blocks of facts, side by side in columns as wide as each other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment

from tpusmi.tui.draw.look import Look, Row, width_of

GAP = 2
"""Blank columns between two columns of blocks."""
LEAST_WIDTH = 25
"""The least width of a column: the name of a fact, and its value."""
WIDE = 38
"""The least width of a column that also shows where its values are from."""
VALUE_END = 25
"""Values of a wide column end here, and their notes begin."""


class Fact(NamedTuple):
    """A name, a value, and the source of the value."""

    name: str
    text: str
    note: str = ""
    """Shown where there is room for it."""
    old: str = ""
    """Its age, if it is stale: shown where there is no room for the note."""
    style: str = "plain"


class Block(NamedTuple):
    """Lines under a title."""

    title: str
    height: int
    """Lines of the block, without its title."""
    draw: Callable[[int, int], list[Row]]
    """Draws its lines in a width and height."""


def of_facts(look: Look, title: str, facts: Sequence[Fact]) -> Block:
    """A block with a line for each fact."""
    return Block(title, len(facts), lambda width, _: [_line(look, f, width) for f in facts])


def packed(blocks: Sequence[Block], columns: int) -> list[list[Block]]:
    """The blocks in that many columns: each goes below the shortest column."""
    packed: list[list[Block]] = [[] for _ in range(columns)]
    for block in blocks:
        min(packed, key=_height).append(block)
    return packed


def height_of(columns: Sequence[Sequence[Block]]) -> int:
    """Lines of the longest column."""
    return max((_height(column) for column in columns), default=0)


def fitting(count: int, width: int, least: int = LEAST_WIDTH) -> int:
    """How many columns of the least width fit, at most one for each block."""
    return max(1, min(count, (width + GAP) // (least + GAP)))


def drawn(look: Look, columns: Sequence[Sequence[Block]], width: int) -> list[Row]:
    """All lines of the columns, side by side."""
    each = max(1, (width + GAP) // max(1, len(columns)) - GAP)
    height = height_of(columns)
    texts = [_column(look, column, each, height) for column in columns]
    gap = look.line((" " * GAP, "plain"))
    return [
        tuple(piece for n, row in enumerate(line) for piece in (*(gap if n else ()), *row))
        for line in zip(*texts, strict=True)
    ]


def _height(column: Sequence[Block]) -> int:
    """Lines of a column: each block has a title, and a blank line above unless it is the first."""
    return max(0, sum(block.height + 2 for block in column) - 1)


def _column(look: Look, column: Sequence[Block], width: int, height: int) -> list[Row]:
    lines: list[Row] = []
    for block in column:
        lines += [()] if lines else []
        lines.append(look.cell(block.title, width, "head"))
        lines += block.draw(width, block.height)[: block.height]
    lines += [()] * (height - len(lines))
    plain = look.style["plain"]
    return [tuple(Segment.adjust_line_length(list(row), width, plain)) for row in lines]


def _line(look: Look, fact: Fact, width: int) -> Row:
    """The name at the left, the value in a column of values, and its note."""
    end = VALUE_END if width >= WIDE else width
    text = look.fitted(fact.text, min(cell_len(fact.text), end))
    room = max(0, end - cell_len(text) - 1)
    old = f" {fact.old}" if fact.old and width < WIDE else ""
    name = look.cell(fact.name, min(cell_len(fact.name), max(0, room - len(old))))
    before = (*name, *look.line((old, "dim")))
    blank = " " * (end - cell_len(text) - width_of(before))
    note = look.cell(f"  {fact.note}", width - end, "dim")
    return (*before, *look.line((blank, "plain"), (text, fact.style)), *note)
