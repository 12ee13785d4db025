"""`tpusmi topo -m`: how the devices are connected, in the layout of `nvidia-smi topo -m`."""

from collections.abc import Iterator

from tpusmi.model import Chip, Device, Snapshot
from tpusmi.report.device_names import listed_name

LEGEND = """
Legend:

  X    = Self
  CHP  = The same chip: two cores of a v2 or v3, two chiplets of a 7x
  ICI  = Neighbors in the slice, by the coordinates that one job reports: a direct link
  NODE = The same NUMA node
  SYS  = Different NUMA nodes
  ?    = Unknown: no PCI bus is visible, or it does not tell the NUMA node
"""


def matrix(s: Snapshot) -> str:
    """Devices by devices, then the processors near each; and the legend. Tabs separate cells."""
    names = [listed_name(d).replace(" ", "") for d in s.devices]
    lines = ["\t".join(("", *names, "CPU Affinity", "NUMA Affinity"))]
    for name, d in zip(names, s.devices, strict=True):
        lines.append("\t".join((name, *(_tie(s, d, other) for other in s.devices), *_near(s, d))))
    return "\n".join(lines) + "\n" + LEGEND


def _tie(s: Snapshot, a: Device, b: Device) -> str:
    if a.key == b.key:
        return " X "
    if a.chip is not None and a.chip == b.chip:
        return "CHP"
    if _are_neighbors(a, b):
        return "ICI"
    nodes = (_numa(s.chip_of(a)), _numa(s.chip_of(b)))
    if None in nodes:
        return "?"
    return "NODE" if nodes[0] == nodes[1] else "SYS"


def _are_neighbors(a: Device, b: Device) -> bool:
    """True where they differ by one step. Coordinates of two jobs may count from two places, and
    whether the ends of a row are joined depends on the slice: neither is a neighbor here.
    """
    if a.coords is None or b.coords is None or len(a.coords) != len(b.coords):
        return False
    if a.key.process is None or a.key.process != b.key.process:
        return False
    return sum(abs(x - y) for x, y in zip(a.coords, b.coords, strict=True)) == 1


def _numa(chip: Chip | None) -> int | None:
    return None if chip is None else chip.numa_node


def _near(s: Snapshot, d: Device) -> Iterator[str]:
    """The processors and the NUMA node that are near its chip."""
    chip = s.chip_of(d)
    yield (None if chip is None else chip.cpus) or "N/A"
    numa = _numa(chip)
    yield "N/A" if numa is None else str(numa)
