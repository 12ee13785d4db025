"""What a chip can do at most: its nominal rates, and where a program is on its roofline. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, log10

from tpusmi.chips import GIB, Generation, by_kind, by_name
from tpusmi.merge.roofline import Roofline
from tpusmi.model import Chip, Device, Snapshot
from tpusmi.report import words
from tpusmi.tui.draw.blocks import VALUE_END, WIDE, Block, Fact, of_facts
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.plot import BRAILLE

NUMBER_WIDTH = 6
_RATES = (
    ("bf16 TFLOP/s", "bf16_flops_per_s", 1e12),
    ("int8 TOP/s", "int8_flops_per_s", 1e12),
    ("fp8 TFLOP/s", "fp8_flops_per_s", 1e12),
    ("HBM GiB", "hbm_bytes", GIB),
    ("HBM GB/s", "hbm_bytes_per_s", 1e9),
)
"""Rates of a chip: name, field of Generation, and the unit they are shown in."""


def generation_of(s: Snapshot, d: Device) -> Generation | None:
    """The generation of a device, by its chip, else by its kind."""
    chip = s.chip_of(d)
    if chip is not None and chip.generation:
        return by_name(chip.generation)
    return None if d.kind is None else by_kind(d.kind)


def rates(look: Look, s: Snapshot, d: Device) -> Block | None:
    """A table of nominal rates, then where the chip sits; None for an unknown chip."""
    generation, chip = generation_of(s, d), s.chip_of(d)
    place = of_facts(look, "", tuple(_place(chip)) if chip is not None else ())
    table = () if generation is None else tuple(_table(generation))
    if not table and not place.height:
        return None
    title = generation.kind if generation is not None else chip.kind if chip is not None else ""

    def draw(width: int, height: int) -> list[Row]:
        heads = [_row(look, "nominal", "device", "chip", width, "dim")] if table else []
        numbers = [_row(look, *line, width) for line in table]
        return [*heads, *numbers, *place.draw(width, place.height)]

    return Block(title, len(table) + bool(table) + place.height, draw)


def _table(g: Generation) -> Iterator[tuple[str, str, str]]:
    """Rows of a name, the number for a device, and the number for a chip."""
    for name, field, unit in _RATES:
        of_chip = getattr(g, field)
        if of_chip is not None:
            yield name, _number(of_chip / g.devices_per_chip / unit), _number(of_chip / unit)
    mxus = g.mxus_per_core * g.cores_per_device
    yield "TensorCores", str(g.cores_per_device), str(g.cores_per_chip)
    yield f"MXUs {g.mxu_size}×{g.mxu_size}", str(mxus), str(mxus * g.devices_per_chip)


def _place(c: Chip) -> Iterator[Fact]:
    for address in c.pci_addresses:
        yield Fact("PCI", address)
    if c.pcie_link:
        yield Fact("link", c.pcie_link)
    if c.numa_node is not None:
        yield Fact("NUMA node", str(c.numa_node))


def _row(look: Look, name: str, one: str, all: str, width: int, style: str = "plain") -> Row:
    end = VALUE_END if width >= WIDE else width
    left = look.cell(name, max(0, end - 2 * NUMBER_WIDTH - 1), style)
    number = look.cell(one, NUMBER_WIDTH, style, right=True)
    return (*left, *number, *look.cell(all, NUMBER_WIDTH + 1, style, right=True))


def _number(value: float) -> str:
    """A number in at most six characters: `61.5`, `2307`."""
    return f"{value:.0f}" if value >= 999.95 or value == int(value) else f"{value:.1f}"


TITLE = "ROOFLINE"
PLOT_LINES = 13
"""Lines of the plot, with the words below it and its axis."""
LEAST_PLOT = 5
SCALE_WIDTH = 6
DECADES_DOWN, DECADES_UP = 3.0, 1.5
"""Decades that are drawn on both sides of the ridge, at least."""
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Dots of a braille cell, top to bottom, of its left and its right column."""


def roofline_block(look: Look, r: Roofline, *, roomy: bool) -> Block | None:
    """The roofline, with a plot where there is room; None for a chip with unknown peaks."""
    if r.ridge_flops_per_byte is None:
        return None
    if not roomy or r.intensity_flops_per_byte is None:
        return Block(TITLE, 4, lambda width, height: look.wrapped(in_words(r), width, "plain"))

    def draw(width: int, height: int) -> list[Row]:
        text = look.wrapped(in_words(r), width, "plain")
        room = height - len(text)
        return [*(plot(look, r, width, room) if room >= LEAST_PLOT else []), *text]

    return Block(TITLE, PLOT_LINES, draw)


def in_words(r: Roofline) -> str:
    """`memory-bound: 123 FLOP/byte (ridge: 240), 61 % of the roof`, or what is missing."""
    ridge, intensity = r.ridge_flops_per_byte, r.intensity_flops_per_byte
    if ridge is None:
        return "the peaks of this chip are unknown"
    at_ridge = f"ridge at {_short(ridge)} FLOP/byte"
    if r.flops_per_s is None:
        return f"{at_ridge}; the program's FLOP/s are unknown: use step(flops=) or track()"
    if intensity is None:
        return f"{at_ridge}; the HBM bandwidth is not measured"
    ratio = None if r.roof_ratio is None else 100 * r.roof_ratio
    witness = "" if r.age_s is None else f"; witness: {r.witness}, {words.elapsed(r.age_s)} old"
    return (
        f"{r.bound}-bound: {_short(intensity)} FLOP/byte (ridge: {_short(ridge)}), "
        f"{words.percent(ratio)} of the roof{witness}"
    )


def plot(look: Look, r: Roofline, width: int, height: int) -> list[Row]:
    """Attainable FLOP/s over FLOP/byte, both logarithmic, and the program's point; the last line is
    the axis. Empty if the point is unknown.
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
        """The dot at a place given in decades."""
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
    """A line of the plot with its part of the scale, and the point if it is there."""
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
    """The axis: the ridge below its place, and the unit at the left if there is room."""
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
    """A number with three digits: `0.12`, `61.5`, `240`."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.3g}"
