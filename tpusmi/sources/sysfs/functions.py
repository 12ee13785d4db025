"""PCI functions: which of them are TPUs, and what sysfs says about each."""

import os
from collections.abc import Iterable
from typing import NamedTuple

from tpusmi.chips import (
    GENERATIONS,
    GOOGLE_PCI_VENDOR,
    OTHER_PCI_DEVICES,
    TPU_PCI_DEVICE_IDS,
    Generation,
    by_pci,
)
from tpusmi.sources.sysfs.files import SysfsDirectory

FUNCTIONS_MOST = 4096

Position = tuple[int, int, int, int]
"""Domain, bus, slot and function: sorts by number, where text puts 10000: before 2000:."""


class PciFunction(NamedTuple):
    """One PCI function of a TPU."""

    address: str
    position: Position
    device_id: int | None
    generation: Generation | None
    kind: str
    devices: int
    """Number of its JAX devices."""
    driver: str | None
    driver_version: str | None
    numa_node: int | None
    cpus: str | None
    """The processors near it: `0-47,96-143`."""
    pcie_link: str | None
    directory: SysfsDirectory
    notes: tuple[str, ...]
    """Notes beside the troubles of its directory."""


class Survey(NamedTuple):
    """The PCI bus, sorted out."""

    tpus: list[PciFunction]
    others: list[str]
    """Google's devices that are not TPUs, in words."""
    notes: list[str]
    """Notes on functions that may be TPUs."""
    doubtful: list[SysfsDirectory]
    """The directories of those functions."""


def survey(bus: str, names: Iterable[str]) -> Survey:
    """Every TPU among the functions of that bus, in PCI order."""
    surveyed = Survey([], [], [], [])
    functions = sorted((p, name) for name in names if (p := position(name)) is not None)
    if len(functions) > FUNCTIONS_MOST:
        count = len(functions)
        surveyed.notes.append(f"{count} PCI functions, of which {FUNCTIONS_MOST} were looked at")
    for at, name in functions[:FUNCTIONS_MOST]:
        directory = SysfsDirectory(f"{bus}/{name}")
        vendor = directory.number("vendor")
        if vendor is None:
            surveyed.doubtful.append(directory)
            surveyed.notes.append(f"{name}: {_why_unknown(directory, 'vendor')}")
        elif vendor == GOOGLE_PCI_VENDOR:
            _add(surveyed, name, at, directory)
    return surveyed


def _add(surveyed: Survey, name: str, at: Position, directory: SysfsDirectory) -> None:
    device_id = directory.number("device")
    if _is_tpu(directory, device_id):
        surveyed.tpus.append(_function(name, at, device_id, directory))
    elif device_id is None:
        surveyed.doubtful.append(directory)
        surveyed.notes.append(f"{name} is a Google device, but {_why_unknown(directory, 'device')}")
    else:
        surveyed.others.append(OTHER_PCI_DEVICES.get(device_id, f"device 0x{device_id:04x}"))


def position(address: str) -> Position | None:
    """The position of `0000:00:0a.1` on the bus; None when that is not a PCI address."""
    parts = address.replace(".", ":", 1).split(":")
    if len(parts) != 4 or not all(0 < len(p) <= 8 and set(p) <= _HEX for p in parts):
        return None
    domain, bus, slot, function = (int(p, 16) for p in parts)
    return domain, bus, slot, function


_HEX = frozenset("0123456789abcdefABCDEF")


def _why_unknown(directory: SysfsDirectory, file: str) -> str:
    if directory.troubles:
        return directory.troubles[0]
    is_there = os.path.isdir(directory.path)
    return (
        f"its PCI `{file}` id is missing" if is_there else "vanished: the device is being removed"
    )


def _is_tpu(directory: SysfsDirectory, device_id: int | None) -> bool:
    """True for a known TPU, and for a device that can hardly be anything else.

    TPUs have PCI class ff00 (v2, v5e) and not that of a card or disk; a driver hands each to
    programs.
    """
    if device_id in TPU_PCI_DEVICE_IDS:
        return True
    if device_id in OTHER_PCI_DEVICES:
        return False
    pci_class = directory.number("class")
    if pci_class is None or not (pci_class >> 8 == 0xFF00 or pci_class >> 16 == 0x12):
        return False
    return directory.link("driver") == "vfio-pci" or bool(directory.names("accel"))


def _function(
    address: str, at: Position, device_id: int | None, directory: SysfsDirectory
) -> PciFunction:
    subsystem_id = directory.number("subsystem_device")
    generation = None if device_id is None else by_pci(device_id, subsystem_id)
    kin = [g for g in GENERATIONS if g.pci_device_id == device_id]
    numa_node = directory.number("numa_node", 10)
    driver = directory.link("driver")
    link = _pcie_link(directory)
    notes = []
    if generation is None and kin:
        notes.append("its subsystem id does not show which of the two it is")
    if numa_node is None and not directory.troubles:
        notes.append("sysfs has no numa_node")
    return PciFunction(
        address=address,
        position=at,
        device_id=device_id,
        generation=generation,
        kind=_kind(generation, kin, device_id),
        devices=kin[0].devices_per_chip // kin[0].pci_functions if kin else 1,
        driver=driver,
        driver_version=None if driver is None else directory.text("driver/module/version"),
        numa_node=numa_node if numa_node is not None and numa_node >= 0 else None,
        cpus=_cpus(directory),
        pcie_link=link,
        directory=directory,
        notes=tuple(f"{address}: {note}" for note in notes),
    )


def _kind(generation: Generation | None, kin: list[Generation], device_id: int | None) -> str:
    if generation is not None:
        return generation.kind
    if kin:
        return " or ".join(g.kind for g in kin)
    return "unknown TPU" if device_id is None else f"unknown TPU 0x{device_id:04x}"


def _cpus(directory: SysfsDirectory) -> str | None:
    """`0-47,96-143`; None where the kernel does not tell, and for a list that is too long."""
    text = directory.text("local_cpulist") or ""
    is_list = set(text) <= _LIST and len(text) <= CPUS_MOST
    return text if text and is_list else None


_LIST = frozenset("0123456789-,")
CPUS_MOST = 200
"""Characters of a list of processors: of a longer one, only the beginning was read."""


def _pcie_link(directory: SysfsDirectory) -> str | None:
    """`8.0 GT/s x8 of 16.0 GT/s x16`; None where the kernel does not know, as in most VMs."""
    now, most = (_link(directory, which) for which in ("current", "max"))
    if now is None:
        return None
    is_less = most is not None and (now[0] < most[0] or now[1] < most[1])
    return f"{_words(now)} of {_words(most)}" if most is not None and is_less else _words(now)


def _link(directory: SysfsDirectory, which: str) -> tuple[float, int] | None:
    """Speed in GT/s, and lanes. A VM's kernel may say `Unknown`, and 0, 63 or 255 lanes."""
    speed = (directory.text(f"{which}_link_speed") or "").split()
    lanes = directory.text(f"{which}_link_width") or ""
    if len(speed) < 2 or speed[1] != "GT/s" or lanes not in _LANES:
        return None
    try:
        gigatransfers = float(speed[0])
    except ValueError:
        return None
    return (gigatransfers, int(lanes)) if 0 < gigatransfers < 1000 else None


_LANES = frozenset(("1", "2", "4", "8", "12", "16", "32"))


def _words(link: tuple[float, int]) -> str:
    return f"{link[0]:.1f} GT/s x{link[1]}"
