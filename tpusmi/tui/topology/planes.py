"""A torus as planes of x and y, side by side and below each other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, overload

from rich.segment import Segment

from tpusmi.model.torus import Coords, Torus, TorusChip
from tpusmi.tui.draw.heat_cells import HeatCell
from tpusmi.tui.draw.heat_map import HeatStyle
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.topology.link_glyphs import glyphs
from tpusmi.tui.topology.plane_lines import CellSize, DrawChip, PlaneLines, TorusGrid, lines_of

SIZES = (CellSize(9, 7), CellSize(7, 5), CellSize(5, 3), *(CellSize(n, 1) for n in (4, 3, 2, 1)))
"""How large cells can be, the largest first."""
USUAL, LEAST = 3, -1
"""Indexes of the size that is used if nothing fits the height, and of the smallest."""
GAP = 1
"""Columns between two planes."""
PLACES_MOST, PLACES_EACH = 4096, 16
"""More places than this, and than that many for each chip, make no picture of a slice."""
WIDEST = 4
"""Columns of a number with its mark: wider cells have it in the middle."""
DEVICES_MOST = 4
"""More devices than any chip has."""
SCATTERED = "The coordinates are too far apart for a picture: those of several slices, perhaps."
CROWDED = "Too many devices say that they are at the same place."


MakeRow = Callable[[], Row]


class LazyRows(Sequence[Row]):
    """Lines that are made when they are taken: of a large slice few are visible."""

    def __init__(self, makers: Sequence[MakeRow]) -> None:
        self._makers = makers

    def __len__(self) -> int:
        return len(self._makers)

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...

    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        if isinstance(at, slice):
            return [make() for make in self._makers[at]]
        return self._makers[at]()


class Drawing(NamedTuple):
    """Planes as lines, and where in them the cells are."""

    rows: Sequence[Row]
    spots: dict[object, tuple[int, int]]
    """Line and column of each chip by its key; beyond the edges for one that is not drawn."""
    chip_width: int


def drawn(look: Look, torus: Torus, width: int, height: int, selected: object = None) -> Drawing:
    """The planes in that width, and where the chips are in them. Cells are only as large as fits
    into that many lines, if that is possible.
    """
    grid = TorusGrid(torus)
    if not torus.chips:
        return Drawing([], {}, 0)
    places = len(grid.xs) * len(grid.ys) * len(grid.zs)
    if places > PLACES_MOST + PLACES_EACH * len(grid.at):
        return Drawing(look.wrapped(SCATTERED, width, "warn"), {}, 0)
    if grid.devices > DEVICES_MOST:
        return Drawing(look.wrapped(CROWDED, width, "warn"), {}, 0)
    return _Planes(look, grid, width, height, selected).drawing()


class _Planes:
    """The planes of a torus, in the largest size that fits."""

    def __init__(
        self, look: Look, grid: TorusGrid, width: int, height: int, selected: object
    ) -> None:
        self._look, self._grid, self._selected = look, grid, selected
        self._gutter = len(str(grid.ys[-1])) + 1
        self._room = max(1, width - self._gutter)
        self._size = self._chosen(height)
        self._plane = PlaneLines(look, grid, self._size, self._window())
        self._across = self._planes_across(self._size)
        self._has_labels = [*grid.zs] != [0]

    def drawing(self) -> Drawing:
        """All bands of planes, below each other."""
        lines: list[MakeRow] = []
        spots: dict[object, tuple[int, int]] = {}
        zs = self._grid.zs
        draw = chip_drawer(self._look)
        for first in range(0, len(zs), self._across):
            lines += [tuple] if lines else []
            band = zs[first : first + self._across]
            lines += self._band(band, draw)
            body = len(lines) - lines_of(self._grid)
            spots.update(self._spots(band, body))
        if len(self._plane.xs) < len(self._grid.xs):
            xs = self._plane.xs
            text = f"x {xs[0]} to {xs[-1]} of {self._grid.xs[0]} to {self._grid.xs[-1]}: the rest "
            text += "does not fit, the cursor moves there."
            rows = self._look.wrapped(text, self._room + self._gutter, "dim")
            lines += [partial(tuple, row) for row in rows]
        return Drawing(LazyRows(lines), spots, self._size.width)

    def _spots(self, band: Sequence[int], body: int) -> Iterator[tuple[object, tuple[int, int]]]:
        """Where the chips of these planes are, below that line."""
        grid, plane = self._grid, self._plane
        lefts = {z: self._gutter + n * (plane.width + GAP) for n, z in enumerate(band)}
        for (x, y, z), chips in grid.at.items():
            if z in lefts:
                line, column = body + 1 + 2 * (y - grid.ys[0]), lefts[z] + plane.column(x)
                for n, chip in enumerate(chips):
                    yield chip.key, (line, column + n * self._size.width)

    def _band(self, zs: Sequence[int], draw: DrawChip) -> Iterator[MakeRow]:
        """Planes side by side, with their labels."""
        plane, blank = self._plane, " " * self._gutter
        if self._has_labels:
            names = (f" z={z}".ljust(plane.width) for z in zs)
            yield partial(self._look.line, (blank + (" " * GAP).join(names), "bold"))
        numbers = (" " * GAP).join(plane.numbers() for _ in zs)
        yield partial(self._look.line, (blank + numbers, "dim"))
        for number in range(lines_of(self._grid)):
            yield partial(self._line, number, zs, draw)

    def _line(self, number: int, zs: Sequence[int], draw: DrawChip) -> Row:
        """That line of each of these planes, with the number of the axis at the left."""
        y = self._grid.ys[0] + number // 2
        label = f"{y:>{self._gutter - 1}} " if number % 2 else " " * self._gutter
        row = [*self._look.line((label, "dim"))]
        gap = self._look.line((" " * GAP, "plain"))
        for n, z in enumerate(zs):
            part = self._plane.line(number, z, draw, self._selected)
            row += [*gap, *part] if n else part
        return tuple(row)

    def _chosen(self, height: int) -> CellSize:
        """The largest size in which all planes fit; if there is none, the usual size or a smaller
        one, in which a plane fits the width.
        """
        for size in SIZES[: USUAL + 2]:
            across = self._planes_across(size)
            bands = -(-len(self._grid.zs) // max(1, across))
            if across and self._lines(bands) <= height:
                return size
        return next((size for size in SIZES[USUAL:] if self._planes_across(size)), SIZES[LEAST])

    def _planes_across(self, size: CellSize) -> int:
        """How many planes of that size fit side by side."""
        width = PlaneLines(self._look, self._grid, size, self._grid.xs).width
        fitting = (self._room + GAP) // (width + GAP)
        return min(fitting, len(self._grid.zs)) if fitting or size != SIZES[LEAST] else 1

    def _lines(self, bands: int) -> int:
        each = lines_of(self._grid) + 1 + ([*self._grid.zs] != [0])
        return bands * (each + 1) - 1

    def _window(self) -> Sequence[int]:
        """The columns of chips that are drawn: all, or those around the selected chip."""
        xs = self._grid.xs
        pitch = PlaneLines(self._look, self._grid, self._size, xs).cell_width + self._size.gap
        fitting = max(1, (self._room - 1) // pitch)
        if fitting >= len(xs):
            return xs
        key = self._selected
        chosen = (c.coords[0] for c in self._grid.torus.chips if key is not None and c.key == key)
        at = next(chosen, xs[0]) - xs[0]
        first = min(max(0, at - fitting // 2), len(xs) - fitting)
        return xs[first : first + fitting]


def chip_drawer(look: Look) -> DrawChip:
    """Draws a chip as a colored cell with its number, in the middle of a wide one."""
    style = HeatStyle(look)

    def draw(chip: TorusChip, width: int, is_selected: bool) -> Row:
        cell = HeatCell(chip.key, chip.name, chip.ratio, chip.mark[:1], is_old=chip.is_old)
        row = style.cell(cell, min(width, WIDEST), selected=is_selected)
        if width <= WIDEST:
            return row
        text, color, _ = row[0]
        before = (width - WIDEST) // 2
        return (Segment(" " * before + text + " " * (width - WIDEST - before), color),)

    return draw


def legend(look: Look, torus: Torus, width: int) -> list[Row]:
    """What links look like; empty without any."""
    if not torus.links:
        return []
    g = glyphs(look.only_ascii)
    parts = [
        (g.healthy.across, g.healthy.style, "healthy"),
        ("1", "warn", "to 5 passing faults"),
        ("6", "bad", "to 9 a lasting fault"),
        ("X", "bad", "unusable"),
        (g.unknown.across, g.unknown.style, "unknown"),
    ]
    behind = {link.health is None for link in torus.links if link.a[2] != link.b[2]}
    if False in behind:
        parts.append((g.healthy.behind, g.healthy.style, "to the next plane"))
    if True in behind:
        parts.append((g.unknown.behind, g.unknown.style, "to the next plane, unknown"))
    lines: list[list[tuple[str, str]]] = [[("links at worst  ", "dim")]]
    used = len("links at worst  ")
    for glyph, style, text in parts:
        needed = len(glyph) + 1 + len(text) + 2
        if used + needed - 2 > width and used:
            lines.append([])
            used = 0
        lines[-1] += [(glyph, style), (f" {text}  ", "dim")]
        used += needed
    return [look.line(*line) for line in lines]


def size_text(size: Coords | None) -> str:
    """`16x16` or `4x4x8`; empty if unknown."""
    if size is None:
        return ""
    return "x".join(map(str, size if size[2] > 1 else size[:2]))


def notes(look: Look, torus: Torus, width: int) -> list[Row]:
    """The bad and the unknown, in sentences."""
    lines = [*((text, "warn") for text in torus.warnings), *((text, "dim") for text in torus.notes)]
    return [row for text, style in lines for row in look.wrapped(text, width, style)]
