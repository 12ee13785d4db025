"""Graphs of several lines, with a scale at the left and a time axis below. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.tui.look import Look, Row

_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""Dots of a braille cell, bottom to top, of its left and its right column."""
BRAILLE = 0x2800
SCALE_WIDTH = 9
"""Columns of the scale at the left: `15.8 GiB ` and its line."""
_STEPS_S = (10, 15, 30, 60, 120, 300, 600)
LABEL_EVERY = 12
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


def area(
    look: Look, values: Sequence[float | None], top: float, width: int, height: int
) -> list[str]:
    """The area under a curve from 0 to `top` in `height` lines, newest value last, blank where
    unknown. Nothing, when measured, is a line of dots at the bottom.
    """
    draw = _ascii if look.only_ascii else _braille
    values = list(values[-slots_across(look, width) :])
    values = [None] * (slots_across(look, width) - len(values)) + values
    return draw(values, top, width, height)


def graph(look: Look, curve: Curve, width: int, height: int) -> list[Row]:
    """The curve under its name and present value, with its scale at the left. The time axis is not
    in it: several share one.
    """
    rows = [_title(look, curve, width)]
    lines = area(look, curve.values, curve.top, max(1, width - SCALE_WIDTH), max(1, height - 1))
    for n, line in enumerate(lines):
        text = curve.top_text if n == 0 else "0" if n == len(lines) - 1 else ""
        left = look.cell(text, SCALE_WIDTH - 1, "dim", right=True)
        rows.append((*left, *look.line((look.glyphs.frame[3], "dim"), (line, curve.style))))
    return rows


def axis(look: Look, span_s: float, width: int, end: str = "now") -> Row:
    """The time below a graph of that width, its scale included: `-10m … -5m … now`."""
    room = max(1, width - SCALE_WIDTH)
    step_s = next((s for s in _STEPS_S if s * room / span_s >= LABEL_EVERY), _STEPS_S[-1])
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


def _title(look: Look, curve: Curve, width: int) -> Row:
    name, now = look.fitted(curve.name, min(len(curve.name), width)), curve.now
    room = max(0, width - len(name))
    return (*look.cell(name, len(name), "title"), *look.cell(f" {now}", room, "bold"))


def _heights(values: Sequence[float | None], top: float, most: int) -> list[int]:
    """Of each value, 1 to `most`; 0 where unknown."""
    scale = most / top if top > 0 else 0.0
    return [0 if v is None else min(max(round(v * scale), 1), most) for v in values]


def _braille(values: Sequence[float | None], top: float, width: int, height: int) -> list[str]:
    heights = _heights(values, top, height * 4)
    lines = []
    for line in range(height):
        below = (height - 1 - line) * 4
        cells = []
        for x in range(width):
            bits = 0
            for column, dots in enumerate(_DOTS):
                for bit in dots[: max(0, heights[2 * x + column] - below)]:
                    bits |= bit
            cells.append(chr(BRAILLE + bits) if bits else " ")
        lines.append("".join(cells))
    return lines


def _ascii(values: Sequence[float | None], top: float, width: int, height: int) -> list[str]:
    heights = _heights(values, top, height * 2)
    lines = []
    for line in range(height):
        below = (height - 1 - line) * 2
        lines.append("".join(" .#"[min(max(h - below, 0), 2)] for h in heights))
    return lines
