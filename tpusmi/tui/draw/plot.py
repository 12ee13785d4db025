"""Graphs side by side and below each other, over one time axis. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from rich.segment import Segment

from tpusmi.tui.draw.look import Look, Row

_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""Dots of a braille cell, bottom to top, of its left and its right column."""
BRAILLE = 0x2800
KEPT = 64
"""Drawn graphs that are cached: more than any screen has."""
COLUMNS_KEPT = 8192
"""Columns of graphs that are cached: those of one second are nearly all in the next one."""
SCALE_WIDTH = 9
"""Columns of the scale at the left: `15.8 GiB ` and its line."""


def slots_across(look: Look, width: int) -> int:
    """How many values fit in that many columns, without a scale."""
    return width * (1 if look.only_ascii else 2)


class Curve(NamedTuple):
    """Values over time, and the text above them."""

    name: str
    now: str
    """The present value in words."""
    values: Sequence[float | None]
    """Oldest first, None where unknown."""
    top: float
    """The value at the top of the scale, which begins at 0."""
    top_text: str
    style: str = "graph"
    line: Sequence[float | None] = ()
    """Other values, drawn as a line over the first."""
    mark: tuple[float, str] | None = None
    """A value at which a line crosses the graph, and its text in the scale."""
    remarks: Sequence[str] = ()
    """Text behind the present value, as much of it as fits."""
    is_stale: bool = False
    """The present value is out of date."""


def area(
    look: Look, values: Sequence[float | None], top: float, width: int, height: int
) -> list[str]:
    """The area under a curve from 0 to `top` in `height` lines, newest value last, blank where
    unknown. Nothing, when measured, is a line of dots at the bottom.
    """
    values = _newest(look, values, width)
    if look.only_ascii:
        return _ascii(values, top, height)
    return [*_braille(tuple(_heights(values, top, height * 4)), height)]


def _edge(
    look: Look, values: Sequence[float | None], top: float, width: int, height: int
) -> list[str]:
    """The upper edge of that area alone."""
    values = _newest(look, values, width)
    if look.only_ascii:
        lines = _ascii(values, top, height)
        above = [" " * width, *lines]
        return [
            "".join("-" if a == " " and here != " " else " " for a, here in zip(*pair, strict=True))
            for pair in zip(above, lines, strict=False)
        ]
    heights = _heights(values, top, height * 4)
    lower = _braille(tuple(max(0, h - 1) for h in heights), height)
    return [
        "".join(map(_without, *lines))
        for lines in zip([*_braille(tuple(heights), height)], lower, strict=True)
    ]


def _newest(look: Look, values: Sequence[float | None], width: int) -> list[float | None]:
    """The newest values that fit, after None for missing ones."""
    newest = list(values[-slots_across(look, width) :])
    return [None] * (slots_across(look, width) - len(newest)) + newest


def graph(look: Look, curve: Curve, width: int, height: int) -> list[Row]:
    """The curve under its name and present value, with its scale at the left. The time axis is not
    in it: several share one.
    """
    rows, tall = [_title(look, curve, width)], max(1, height - 1)
    lines = _drawn(look, curve, max(1, width - SCALE_WIDTH), tall)
    scale = {}
    if curve.mark is not None:
        value, text = curve.mark
        marked = min(max(int((1 - value / curve.top) * tall), 0), tall - 1)
        lines[marked] = _crossed(look, lines[marked])
        scale[marked] = text
    scale |= {tall - 1: "0", 0: curve.top_text}
    for n, line in enumerate(lines):
        left = look.cell(_in_scale(scale.get(n, "")), SCALE_WIDTH - 1, "dim", right=True)
        rows.append((*left, *look.line((look.glyphs.frame[3], "dim")), *line))
    return rows


def _in_scale(text: str) -> str:
    """The text of a value, without its decimal where the scale has no room: `100 GiB`."""
    number, point, rest = text.partition(".")
    is_long = len(text) >= SCALE_WIDTH and point and rest[:1].isdigit()
    return f"{number}{rest.lstrip('0123456789')}" if is_long else text


def values_across(look: Look, width: int) -> int:
    """How many values a graph of that width shows, its scale included in the width."""
    return slots_across(look, max(1, width - SCALE_WIDTH))


def round_top(value: float) -> float:
    """A round number not below the value, for the top of a scale that seldom changes."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return next((step * power for step in steps if step * power >= value), 10 * power)


def _drawn(look: Look, curve: Curve, width: int, height: int) -> list[Row]:
    """The area, and the line over it; where both are in a cell, its dots have the area's color."""
    under = area(look, curve.values, curve.top, width, height)
    if not curve.line:
        return [look.line((text, curve.style)) for text in under]
    over = _edge(look, curve.line, curve.top, width, height)
    return [_both(look, curve.style, *lines) for lines in zip(under, over, strict=True)]


def _both(look: Look, style: str, under: str, over: str) -> Row:
    parts = []
    for cells in groupby(zip(under, over, strict=True), lambda cell: cell[0] != " "):
        is_under, pairs = cells
        text = "".join(_joined(*pair) for pair in pairs)
        parts.append((text, style if is_under else "plain"))
    return look.line(*parts)


def _joined(under: str, over: str) -> str:
    """Both in one cell: the dots of the two, or in ASCII the area."""
    if " " in (under, over) or under.isascii():
        return over if under == " " else under
    return chr(ord(under) | ord(over))


def _title(look: Look, curve: Curve, width: int) -> Row:
    name = look.fitted(curve.name, min(len(curve.name), width))
    room = width - len(name)
    now = look.fitted(f" {curve.now}", min(len(curve.now) + 1, room) if curve.remarks else room)
    row = look.line((name, "title"), (now, "dim" if curve.is_stale else "bold"))
    gap, room = "  ", room - len(now)
    for remark in curve.remarks:
        room -= len(gap + remark)
        if room < 0:
            break
        row = (*row, *look.line((gap + remark, "dim")))
        gap = f" {look.glyphs.dot} "
    return tuple(Segment.adjust_line_length(list(row), width, look.style["plain"]))


def _crossed(look: Look, row: Row) -> Row:
    """The line of a graph with a line across its blank cells."""
    pieces = []
    for text, style, _ in row:
        for is_blank, cells in groupby(text, " ".__eq__):
            run = "".join(cells)
            if is_blank:
                pieces.append(Segment(look.glyphs.track * len(run), look.style["dim"]))
            else:
                pieces.append(Segment(run, style))
    return tuple(pieces)


def _heights(values: Sequence[float | None], top: float, most: int) -> list[int]:
    """The height of each value, 1 to `most`; 0 where unknown."""
    scale = most / top if top > 0 else 0.0
    return [0 if v is None else min(max(round(v * scale), 1), most) for v in values]


@lru_cache(maxsize=KEPT)
def _braille(heights: tuple[int, ...], height: int) -> tuple[str, ...]:
    """Lines of braille cells. Most graphs have the same dots as a second before."""
    pairs = zip(heights[::2], heights[1::2], strict=True)
    columns = [_column(left, right, height) for left, right in pairs]
    return tuple(map("".join, zip(*columns, strict=True))) or ("",) * height


@lru_cache(maxsize=COLUMNS_KEPT)
def _column(left: int, right: int, height: int) -> str:
    """The braille cells of two values, from top to bottom."""
    return "".join(
        _CELLS[min(max(left - below, 0), 4)][min(max(right - below, 0), 4)]
        for below in range((height - 1) * 4, -1, -4)
    )


def _cell(left: int, right: int) -> str:
    """A braille cell with that many dots in its columns, from the bottom."""
    bits = sum(_DOTS[0][:left]) + sum(_DOTS[1][:right])
    return chr(BRAILLE + bits) if bits else " "


_CELLS = [[_cell(left, right) for right in range(5)] for left in range(5)]


def _without(upper: str, lower: str) -> str:
    """The dots of a cell that are not in the other."""
    bits = (0 if upper == " " else ord(upper)) ^ (0 if lower == " " else ord(lower))
    return chr(bits | BRAILLE) if bits & 0xFF else " "


def _ascii(values: Sequence[float | None], top: float, height: int) -> list[str]:
    heights = _heights(values, top, height * 2)
    lines = []
    for line in range(height):
        below = (height - 1 - line) * 2
        lines.append("".join(" .#"[min(max(h - below, 0), 2)] for h in heights))
    return lines


GAP = 2
"""Blank columns between two graphs."""
LEAST_WIDTH = 34
"""The least width of a graph that has another beside it."""
BEST_SHAPE = 6.0
"""Columns for each line of a graph that looks right."""


def columns_for(count: int, width: int, height: int, least: int = 1) -> int:
    """In how many columns so many graphs look best: every place is filled, none is too flat, and
    if possible none has fewer lines than `least`.
    """
    fitting = [
        n
        for n in range(1, count + 1)
        if count % n == 0 and (n == 1 or each(width, n) >= LEAST_WIDTH)
    ]
    tall = [n for n in fitting if height // (count // n) >= least]
    return min(tall or fitting, key=lambda n: _oddness(count, n, width, height), default=1)


def each(width: int, columns: int) -> int:
    """The width of each of so many columns."""
    return (width + GAP) // columns - GAP


def in_columns(
    look: Look, curves: Sequence[Curve], columns: int, axis: Row, size: tuple[int, int]
) -> list[Row]:
    """The graphs in exactly the lines of that size, row by row, with the axis below each column."""
    width, height = size
    gap = look.cell("", GAP)
    tall, more = divmod(height - 1, -(-len(curves) // columns))
    lines: list[Row] = []
    for n, start in enumerate(range(0, len(curves), columns)):
        beside = curves[start : start + columns]
        drawn = [graph(look, curve, each(width, columns), tall + (n < more)) for curve in beside]
        lines += [_joined_row(line, gap) for line in zip(*drawn, strict=True)]
    return [*lines, _joined_row([axis] * columns, gap)]


def _oddness(count: int, columns: int, width: int, height: int) -> float:
    tall = max(1.0, height / (count // columns))
    return abs(math.log(max(1, width) / columns / tall / BEST_SHAPE))


def _joined_row(cells: Sequence[Row], gap: Row) -> Row:
    return tuple(piece for n, row in enumerate(cells) for piece in (*(gap if n else ()), *row))
