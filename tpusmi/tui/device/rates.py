"""What the chip of a device can do by its name, per device and per chip. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.chips import GIB, Generation, by_kind, by_name
from tpusmi.model import Chip, Device, Snapshot
from tpusmi.tui.draw.blocks import VALUE_END, WIDE, Block, Fact, of_facts
from tpusmi.tui.draw.look import Look, Row

NUMBER_WIDTH = 6
_RATES = (
    ("bf16 TFLOP/s", "bf16_flops_per_s", 1e12),
    ("int8 TOP/s", "int8_flops_per_s", 1e12),
    ("fp8 TFLOP/s", "fp8_flops_per_s", 1e12),
    ("HBM GiB", "hbm_bytes", GIB),
    ("HBM GB/s", "hbm_bytes_per_s", 1e9),
)
"""Of a chip, and in which unit they are told."""


def generation_of(s: Snapshot, d: Device) -> Generation | None:
    """Of which generation a device is, by its chip, else by its kind."""
    chip = s.chip_of(d)
    if chip is not None and chip.generation:
        return by_name(chip.generation)
    return None if d.kind is None else by_kind(d.kind)


def rates(look: Look, s: Snapshot, d: Device) -> Block | None:
    """A table of nominal rates, then where the chip sits; None where nothing is known of it."""
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
    """Name, number of one device, number of one chip."""
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
    """At most six characters: `61.5`, `2307`."""
    return f"{value:.0f}" if value >= 999.95 or value == int(value) else f"{value:.1f}"
