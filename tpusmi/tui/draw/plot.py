"""Graphs side by side and below each other, over one time axis. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from math import log
from typing import NamedTuple

from tpusmi.tui.draw.look import Look, Row

_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""Dots of a braille cell, bottom to top, of its left and its right column."""
BRAILLE = 0x2800
KEPT = 64
"""Drawn graphs that are kept: more than any screen has."""
SCALE_WIDTH = 9
"""Columns of the scale at the left: `15.8 GiB ` and its line."""
_STEPS_S = (10, 15, 30, 60, 120, 300, 600)
LABEL_EVERY = 9
"""Columns between two labels of the time axis, at least."""


def slots_across(look: Look, width: int) -> int:
    """How many values a graph that wide shows."""
    return width * (1 if look.only_ascii else 2)


class Curve(NamedTuple):
    """Values over time, and what is said of them."""

    name: str
    now: str
    """The present value in words."""
    values: Sequence[float | None]
    """Oldest first, None where unknown."""
    top: float
    """Of the scale, which begins at 0."""
    top_text: str
    style: str = "graph"
    line: Sequence[float | None] = ()
    """Other values, drawn as a line over the first."""


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
    """As many as there is room for, after unknown ones where there are fewer."""
    newest = list(values[-slots_across(look, width) :])
    return [None] * (slots_across(look, width) - len(newest)) + newest


def graph(look: Look, curve: Curve, width: int, height: int) -> list[Row]:
    """The curve under its name and present value, with its scale at the left. The time axis is not
    in it: several share one.
    """
    rows = [_title(look, curve, width)]
    lines = _drawn(look, curve, max(1, width - SCALE_WIDTH), max(1, height - 1))
    for n, line in enumerate(lines):
        text = curve.top_text if n == 0 else "0" if n == len(lines) - 1 else ""
        left = look.cell(text, SCALE_WIDTH - 1, "dim", right=True)
        rows.append((*left, *look.line((look.glyphs.frame[3], "dim")), *line))
    return rows


def round_top(value: float) -> float:
    """A round number that is not below the value, as the top of a scale that stays for a while."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return next((step * power for step in steps if step * power >= value), 10 * power)


def axis(look: Look, span_s: float, width: int, end: str = "now") -> Row:
    """The time below a graph of that width, its scale included: `-10m … -5m … now`."""
    room = max(1, width - SCALE_WIDTH)
    # The oldest second has a label, and those of some minutes are whole minutes.
    steps_s = [s for s in _STEPS_S if span_s % s == 0 and (s >= 60 or span_s <= 120)]
    step_s = next((s for s in steps_s if s * room / span_s >= LABEL_EVERY), steps_s[-1])
    line = [" "] * room
    back_s = 0
    while back_s <= span_s:
        text = end if not back_s else f"-{back_s // 60}m" if back_s % 60 == 0 else f"-{back_s}s"
        until = room - round(back_s * room / span_s)
        start = max(0, until - len(text))
        if start + len(text) <= room and (not back_s or line[start + len(text)] == " "):
            line[start : start + len(text)] = text
        back_s += step_s
    return look.line((" " * SCALE_WIDTH, "plain"), ("".join(line[:room]), "dim"))


def _drawn(look: Look, curve: Curve, width: int, height: int) -> list[Row]:
    """The area, and the line over it; where both are in a cell, its dots have the area's colour."""
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
    name, now = look.fitted(curve.name, min(len(curve.name), width)), curve.now
    room = max(0, width - len(name))
    return (*look.cell(name, len(name), "title"), *look.cell(f" {now}", room, "bold"))


def _heights(values: Sequence[float | None], top: float, most: int) -> list[int]:
    """Of each value, 1 to `most`; 0 where unknown."""
    scale = most / top if top > 0 else 0.0
    return [0 if v is None else min(max(round(v * scale), 1), most) for v in values]


@lru_cache(maxsize=KEPT)
def _braille(heights: tuple[int, ...], height: int) -> tuple[str, ...]:
    """Columns of so many dots. From one second to the next most graphs are the same in dots."""
    pairs = [*zip(heights[::2], heights[1::2], strict=True)]
    lines = []
    for below in range((height - 1) * 4, -1, -4):
        lines.append(
            "".join(_CELLS[min(max(a - below, 0), 4)][min(max(b - below, 0), 4)] for a, b in pairs)
        )
    return tuple(lines)


def _cell(left: int, right: int) -> str:
    """A braille cell with so many dots in its columns, from the bottom."""
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
"""Of one graph that has another beside it."""
BEST_SHAPE = 6.0
"""Columns for each line of a graph that looks right."""

Graph = Callable[[int, int], "list[Row]"]
"""Draws itself in so many columns and exactly so many lines."""


def columns_for(count: int, width: int, height: int, least: int = 1) -> int:
    """In how many columns so many graphs look best: no place stays empty, none is too flat, and
    none has fewer lines than `least` if that can be.
    """
    fitting = [
        n
        for n in range(1, count + 1)
        if count % n == 0 and (n == 1 or (width + GAP) // n - GAP >= LEAST_WIDTH)
    ]
    tall = [n for n in fitting if height // (count // n) >= least]
    return min(tall or fitting, key=lambda n: _oddness(count, n, width, height), default=1)


def in_ranks(
    look: Look, ranks: Sequence[Sequence[Graph]], axis: Graph, width: int, height: int
) -> list[Row]:
    """The graphs rank by rank in exactly that many lines, the first rank the widest. Under the last
    one is a time axis for each column.
    """
    across, gap = len(ranks[0]), look.cell("", GAP)
    each = (width + GAP) // across - GAP
    tall, more = divmod(height - 1, len(ranks))
    found: list[Row] = []
    for n, rank in enumerate(ranks):
        drawn = [graph(each, tall + (n < more)) for graph in rank]
        found += [_beside(line, gap) for line in zip(*drawn, strict=True)]
    return [*found, _beside(axis(each, 1) * across, gap)]


def _oddness(count: int, across: int, width: int, height: int) -> float:
    tall = max(1.0, height / (count // across))
    return abs(log(max(1, width) / across / tall / BEST_SHAPE))


def _beside(cells: Sequence[Row], gap: Row) -> Row:
    return tuple(piece for n, row in enumerate(cells) for piece in (*(gap if n else ()), *row))
