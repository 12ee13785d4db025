"""One plane of a torus as lines: a cell for each chip, links between them, hosts outlined. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tpusmi.model.torus import Coords, Torus, TorusChip, TorusLink
from tpusmi.tui.draw.look import Look, Row, width_of
from tpusmi.tui.topology.link_glyphs import DOWN, LEFT, RIGHT, UP, glyphs

X, Y, Z = range(3)


class CellSize(NamedTuple):
    """How large a chip is drawn."""

    width: int
    """Columns of each device."""
    gap: int
    """Columns between two chips: odd, with a link or the outline of a host in the middle."""


class TorusGrid:
    """The chips of a torus by place, and its links by the chip that they lead to or from."""

    def __init__(self, torus: Torus) -> None:
        self.torus = torus
        self.at: dict[Coords, list[TorusChip]] = {}
        for chip in torus.chips:
            self.at.setdefault(chip.coords, []).append(chip)
        self.after: dict[tuple[Coords, int], TorusLink] = {}
        """The link to the next chip on an axis."""
        self.before: dict[tuple[Coords, int], TorusLink] = {}
        """The link from the chip before."""
        for link in torus.links:
            self._add(link)
        axes = [sorted({place[axis] for place in self.at}) for axis in (X, Y, Z)]
        self.xs, self.ys = (range(n[0], n[-1] + 1) if n else range(0) for n in axes[:2])
        self.zs: Sequence[int] = axes[Z]
        self.devices = max((len(chips) for chips in self.at.values()), default=1)
        """Devices of a chip."""
        self.has_planes_linked = any(axis == Z for _, axis in self.after)

    def _add(self, link: TorusLink) -> None:
        axes = [axis for axis in (X, Y, Z) if link.a[axis] != link.b[axis]]
        if len(axes) != 1:
            return  # not of neighbors
        axis = axes[0]
        low, high = sorted((link.a, link.b))
        first, second = (low, high) if high[axis] - low[axis] == 1 else (high, low)
        self.after[first, axis] = self.before[second, axis] = link

    def host(self, place: Coords) -> str | None:
        """The host of the chip there; None without one."""
        chips = self.at.get(place)
        return chips[0].host if chips else None

    def is_border(self, a: Coords, b: Coords) -> bool:
        """Whether the outline of a host is between two places."""
        return self.host(a) != self.host(b)


DrawChip = Callable[[TorusChip, int, bool], Row]
"""Draws a chip in that many columns; the flag is True for the selected one."""


class PlaneLines:
    """Draws the planes of one torus."""

    def __init__(self, look: Look, grid: TorusGrid, size: CellSize, xs: Sequence[int]) -> None:
        self._look, self._grid, self._size = look, grid, size
        self._glyphs = glyphs(look.only_ascii)
        self.xs = xs
        self.cell_width = size.width * grid.devices + grid.has_planes_linked
        self.width = (self.cell_width + size.gap) * len(xs) + 1
        self._half = size.gap // 2

    def line(self, number: int, z: int, draw: DrawChip, selected: object) -> Row:
        """One line of a plane: a border above each row of chips, the chips, and a border below the
        last.
        """
        y = self._grid.ys[0] + number // 2
        return self._chip_line(y, z, draw, selected) if number % 2 else self._border_line(y, z)

    def column(self, x: int) -> int:
        """Where the cell of that x begins."""
        return 1 + self._half + (x - self.xs[0]) * (self.cell_width + self._size.gap)

    def numbers(self) -> str:
        """The numbers of the axis above the cells, as many as have room."""
        text = ""
        for x in self.xs:
            number = str(x)
            begin = self.column(x) + max(0, self._size.width * self._grid.devices - len(number))
            begin = min(begin, self.column(x) + self._center)
            if not text or begin > len(text):
                text = text.ljust(begin) + number
        return text.ljust(self.width)

    @property
    def _center(self) -> int:
        """Where in a cell a link leads down."""
        return (self.cell_width - self._grid.has_planes_linked) // 2

    # -- a row of chips

    def _chip_line(self, y: int, z: int, draw: DrawChip, selected: object) -> Row:
        row: list[object] = []
        for x in self.xs:
            row += self._between(x, y, z, x == self.xs[0], False)
            row += self._cell((x, y, z), draw, selected)
        row += self._between(self.xs[-1] + 1, y, z, False, True)
        return tuple(row)  # type: ignore[arg-type]

    def _between(self, x: int, y: int, z: int, is_first: bool, is_last: bool) -> Row:
        """The link or the border in front of that x."""
        grid, half = self._grid, self._half
        here, before = (x, y, z), (x - 1, y, z)
        link = grid.after.get((before, X)) if is_last else grid.before.get((here, X))
        if not is_first and not is_last and before not in grid.at:
            link = None
        border = grid.is_border(before, here)
        if link is None:
            middle, pad, style = self._glyphs.corners[UP | DOWN if border else 0], " ", "dim"
        else:
            glyph = self._glyphs.link(link.health)
            middle = glyph.across_border if border else glyph.across
            line = self._glyphs.unknown if link.health is None else self._glyphs.healthy
            pad, style = line.across, glyph.style
        left, right = ("" if is_first else pad * half), ("" if is_last else pad * half)
        return self._look.line((f"{left}{middle}{right}", style))

    def _cell(self, place: Coords, draw: DrawChip, selected: object) -> Row:
        chips = self._grid.at.get(place, [])
        parts: list[Row] = []
        for chip in chips:
            is_selected = selected is not None and chip.key == selected
            parts.append(draw(chip, self._size.width, is_selected))
        drawn = tuple(piece for row in parts for piece in row)
        behind = int(self._grid.has_planes_linked)
        blank = self.cell_width - behind - width_of(drawn)
        row = (*drawn, *self._look.line((" " * blank, "plain")))
        link = self._grid.after.get((place, Z))
        if not behind:
            return row
        if link is None:
            return (*row, *self._look.line((" ", "plain")))
        glyph = self._glyphs.link(link.health)
        return (*row, *self._look.line((glyph.behind, glyph.style)))

    # -- between two rows of chips

    def _border_line(self, y: int, z: int) -> Row:
        """The borders and links above the row of that y."""
        row = [*self._corner(self.xs[0], y, z)]
        for x in self.xs:
            row += self._above(x, y, z)
            row += self._corner(x + 1, y, z)
        return tuple(row)

    def _corner(self, x: int, y: int, z: int) -> Row:
        """Where the borders of four places meet: left above that place."""
        grid, half = self._grid, self._half
        nw, ne, sw, se = (x - 1, y - 1, z), (x, y - 1, z), (x - 1, y, z), (x, y, z)
        inside = (nw[X] in self.xs, se[X] in self.xs)
        left = LEFT if inside[0] and grid.is_border(nw, sw) else 0
        right = RIGHT if inside[1] and grid.is_border(ne, se) else 0
        up = UP if grid.is_border(nw, ne) else 0
        down = DOWN if grid.is_border(sw, se) else 0
        corners = self._glyphs.corners
        text = corners[left and LEFT | RIGHT] * half if inside[0] else ""
        text += corners[up | right | down | left]
        text += corners[right and LEFT | RIGHT] * half if inside[1] else ""
        return self._look.line((text, "dim"))

    def _above(self, x: int, y: int, z: int) -> Row:
        """The border or the link above a place, as wide as its cell."""
        grid = self._grid
        here, above = (x, y, z), (x, y - 1, z)
        is_last = y == grid.ys[-1] + 1
        link = grid.after.get((above, Y)) if is_last else grid.before.get((here, Y))
        if not is_last and y != grid.ys[0] and above not in grid.at:
            link = None
        border = grid.is_border(above, here)
        fill = self._glyphs.corners[LEFT | RIGHT if border else 0]
        if link is None:
            return self._look.line((fill * self.cell_width, "dim"))
        glyph = self._glyphs.link(link.health)
        after = self.cell_width - self._center - 1
        return self._look.line(
            (fill * self._center, "dim"),
            (glyph.down_border if border else glyph.down, glyph.style),
            (fill * after, "dim"),
        )


def lines_of(grid: TorusGrid) -> int:
    """Lines of a plane."""
    return 2 * len(grid.ys) + 1
