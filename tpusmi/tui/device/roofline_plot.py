"""Where a program stands under the roof of its chip: as a plot, or in words. Pure."""

from __future__ import annotations

from math import ceil, floor, log10

from tpusmi.merge.roofline import Roofline
from tpusmi.report import words
from tpusmi.tui.draw.blocks import Block
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.plot import BRAILLE

TITLE = "ROOFLINE"
PLOT_LINES = 13
"""With the words below it, and its axis."""
LEAST_PLOT = 5
SCALE_WIDTH = 6
DECADES_DOWN, DECADES_UP = 3.0, 1.5
"""What is drawn on both sides of the ridge, at least."""
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Dots of a braille cell, top to bottom, of its left and its right column."""


def block(look: Look, r: Roofline, *, roomy: bool) -> Block | None:
    """The roofline with a plot where there is room; None for a chip whose peaks nobody knows."""
    if r.ridge_flops_per_byte is None:
        return None
    if not roomy or r.intensity_flops_per_byte is None:
        return Block(TITLE, 4, lambda width, height: look.wrapped(told(r), width, "plain"))

    def draw(width: int, height: int) -> list[Row]:
        text = look.wrapped(told(r), width, "plain")
        room = height - len(text)
        return [*(plot(look, r, width, room) if room >= LEAST_PLOT else []), *text]

    return Block(TITLE, PLOT_LINES, draw)


def told(r: Roofline) -> str:
    """`memory-bound: 123 FLOP/byte of 240 at the ridge, 61 % of the roof`, or what is missing."""
    ridge, intensity = r.ridge_flops_per_byte, r.intensity_flops_per_byte
    if ridge is None:
        return "the peaks of this chip are not known"
    at_ridge = f"ridge at {_short(ridge)} FLOP/byte"
    if r.flops_per_s is None:
        return f"{at_ridge}; FLOP/s of the program unknown: step(flops=), track() tell"
    if intensity is None:
        return f"{at_ridge}; the HBM bandwidth is not measured"
    ratio = None if r.roof_ratio is None else 100 * r.roof_ratio
    return (
        f"{r.bound}-bound: {_short(intensity)} FLOP/byte of {_short(ridge)} at the ridge, "
        f"{words.percent(ratio)} of the roof"
    )


def plot(look: Look, r: Roofline, width: int, height: int) -> list[Row]:
    """Attainable FLOP/s over FLOP/byte, both logarithmic, and the program's point; the last line is
    the axis. Nothing where the point is not known.
    """
    ridge, peak = r.ridge_flops_per_byte, r.peak_flops_per_s
    intensity, flops = r.intensity_flops_per_byte, r.flops_per_s
    if not ridge or not peak or not intensity or not flops:
        return []
    room, lines = max(1, width - SCALE_WIDTH - 1), max(1, height - 1)
    left = floor(min(log10(ridge) - DECADES_DOWN, log10(intensity) - 0.3))
    right = ceil(max(log10(ridge) + DECADES_UP, log10(intensity) + 0.3))
    top = log10(max(peak, flops)) + 0.2
    bottom = log10(min(peak * 10**left / ridge, flops)) - 0.1
    across, down = (1, 1) if look.only_ascii else (2, 4)

    def at(x: float, y: float) -> tuple[int, int]:
        """The dot of a place, in decades."""
        column = round((x - left) / (right - left) * (room * across - 1))
        return column, round((top - y) / (top - bottom) * (lines * down - 1))

    roof = []
    for n in range(room * across):
        x = left + (right - left) * n / max(1, room * across - 1)
        roof.append(at(x, log10(min(peak, peak * 10**x / ridge)))[1])
    column, dot = at(log10(intensity), log10(flops))
    point = column // across, dot // down
    drawn = _ascii(roof, lines) if look.only_ascii else _braille(roof, room, lines)
    peak_line = at(0, log10(peak))[1] // down
    rows = [_line(look, text, y, peak_line, peak, point) for y, text in enumerate(drawn)]
    return [*rows, _axis(look, at(log10(ridge), 0)[0] // across, ridge, room)]


def _line(
    look: Look, text: str, y: int, peak_line: int, peak: float, point: tuple[int, int]
) -> Row:
    """A line with its part of the scale, and the point if it is on it."""
    scale = f"{_short(peak / 1e12)} T" if y == peak_line else ""
    left = look.cell(scale, SCALE_WIDTH, "dim", right=True)
    x, line = point
    side = (look.glyphs.frame[3], "dim")
    if y != line:
        return (*left, *look.line(side, (text, "graph")))
    mark = "O" if look.only_ascii else "●"
    parts = ((text[:x], "graph"), (mark, "bold"), (text[x + 1 :], "graph"))
    return (*left, *look.line(side, *parts))


def _axis(look: Look, at: int, ridge: float, room: int) -> Row:
    """The ridge under its place, and the unit at the left, as far as there is room."""
    text = f"^ {_short(ridge)}" if look.only_ascii else f"↑ {_short(ridge)}"
    unit = "FLOP/byte"
    start = min(at, max(0, room - len(text)))
    before = unit if start > len(unit) else ""
    return look.cell(
        " " * (SCALE_WIDTH + 1) + f"{before:<{start}}{text}", SCALE_WIDTH + 1 + room, "dim"
    )


def _braille(roof: list[int], room: int, lines: int) -> list[str]:
    bits = [[0] * room for _ in range(lines)]
    before = roof[0]
    for n, dot in enumerate(roof):
        for y in range(dot, max(dot, before - 1) + 1):
            bits[y // 4][n // 2] |= _BITS[n % 2][y % 4]
        before = dot
    return ["".join(chr(BRAILLE + cell) if cell else " " for cell in line) for line in bits]


def _ascii(roof: list[int], lines: int) -> list[str]:
    drawn = [[" "] * len(roof) for _ in range(lines)]
    for n, y in enumerate(roof):
        flat = n and roof[n - 1] == y
        drawn[y][n] = "-" if flat else "/"
    return ["".join(line) for line in drawn]


def _short(value: float) -> str:
    """Three digits: `0.12`, `61.5`, `240`."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.3g}"
