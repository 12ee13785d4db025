"""Which device node belongs to which PCI function: the kernel says so, nothing is counted.

`/dev/vfio/7` is IOMMU group 7, which may just as well be a network card's. A node is never opened.
"""

import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.chips import ACCEL, VFIO
from tpusmi.model import Host
from tpusmi.sources.sysfs.files import SysfsDirectory, number_after
from tpusmi.sources.sysfs.functions import PciFunction

VFIO_DEVICE = "/dev/vfio/devices/vfio{}"
"""The node of a device instead of its group, where the kernel has iommufd."""


class FunctionNode(NamedTuple):
    """The device node of a PCI function, and trouble with it."""

    path: str | None
    """None where there is no node."""
    notes: list[str]
    others: Sequence[str] = ()
    """Other nodes that open the same device."""


def find_nodes(host: Host, functions: Sequence[PciFunction]) -> dict[str, FunctionNode]:
    """The device node of each function, by its PCI address."""
    accels = _accels_by_address(host) if functions else {}
    nodes: dict[str, FunctionNode] = {}
    guessed: list[PciFunction] = []
    for f in functions:
        names = _names(f, accels)
        here = [name for name in names if _is_here(host.path(name))]
        if not here and _is_accel(f) and f.address not in accels and not f.directory.names("accel"):
            guessed.append(f)
            continue
        node = _judged(host, here[0]) if here else FunctionNode(None, [_missing(f, names)])
        nodes[f.address] = node._replace(others=here[1:])
    return {**nodes, **_guess(host, guessed, set(accels.values()))}


def lookalikes(host: Host) -> list[str]:
    """Nodes in /dev that could be a TPU's, in the order of their numbers."""
    accels = [ACCEL.format(n) for n in _numbers(host, "/dev", "accel")]
    groups = [VFIO.format(n) for n in _numbers(host, "/dev/vfio", "")]
    devices = [VFIO_DEVICE.format(n) for n in _numbers(host, "/dev/vfio/devices", "vfio")]
    return [*accels, *groups, *devices]


def _names(f: PciFunction, accels: dict[str, str]) -> list[str]:
    """Possible nodes of a function by sysfs, the most likely first."""
    names = [
        ACCEL.format(n)
        for name in f.directory.names("accel")
        if (n := number_after("accel", name)) is not None
    ]
    names += [accels[f.address]] if f.address in accels else []
    group = number_after("", f.directory.link("iommu_group") or "")
    names += [] if group is None else [VFIO.format(group)]
    for name in f.directory.names("vfio-dev"):
        if (n := number_after("vfio", name)) is not None:
            names.append(VFIO_DEVICE.format(n))
    return names


def _accels_by_address(host: Host) -> dict[str, str]:
    """The node of each PCI address in /sys/class/accel."""
    accel_class = SysfsDirectory(host.path("/sys/class"))
    nodes = {}
    for name in sorted(accel_class.names("accel")):
        number = number_after("accel", name)
        address = accel_class.link(f"accel/{name}/device")
        if number is not None and address is not None:
            nodes[address] = ACCEL.format(number)
    return nodes


def _is_accel(f: PciFunction) -> bool:
    return f.generation is not None and f.generation.node == ACCEL


def _is_here(path: str) -> bool:
    """True if it exists, also when this user may not look at it."""
    try:
        os.lstat(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _judged(host: Host, node: str) -> FunctionNode:
    """The node, or none if that is not one, and notes for this user."""
    path = host.path(node)
    try:
        info = os.stat(path)
    except PermissionError:
        return FunctionNode(node, [f"{node} cannot be inspected: Permission denied"])
    except OSError as error:
        return FunctionNode(None, [f"{node} is not a device node: {error.strerror}"])
    if stat.S_ISDIR(info.st_mode):
        # Docker's -v makes a directory for a path that the host does not have.
        cure = _with_device(node)
        return FunctionNode(None, [f"{node} is a directory, not a device node; {cure}"])
    if os.access(path, os.R_OK | os.W_OK, effective_ids=True):
        return FunctionNode(node, [])
    rights = f"mode {stat.S_IMODE(info.st_mode):04o}, owner {info.st_uid}, group {info.st_gid}"
    note = f"you have no permission to open {node} ({rights}): jobs need sudo, or that group"
    return FunctionNode(node, [note])


def _missing(f: PciFunction, names: Sequence[str]) -> str:
    if not names and _is_accel(f):
        return "no device node: is the TPU's driver loaded?"
    if not names:
        return f"no device node: {f.address} is in no IOMMU group; a restart of the VM may help"
    if f.driver is None:
        return f"no device node {names[0]}: no driver is bound; a restart of the VM may help"
    return f"no device node {names[0]}; {_with_device(names[0])}"


def _with_device(node: str) -> str:
    return f"in a container, start it with --device={node}"


def _guess(
    host: Host, functions: Sequence[PciFunction], taken: set[str]
) -> dict[str, FunctionNode]:
    """Nodes by PCI order, for a kernel that does not say: only if their numbers match."""
    free = [n for n in map(ACCEL.format, _numbers(host, "/dev", "accel")) if n not in taken]
    if len(free) != len(functions):
        return {f.address: FunctionNode(None, [_missing(f, ())]) for f in functions}
    nodes = {}
    for f, name in zip(functions, free, strict=True):
        node = _judged(host, name)
        note = f"{name} is a guess by PCI order: the kernel does not say which node it is"
        nodes[f.address] = node._replace(notes=[note, *node.notes])
    return nodes


def _numbers(host: Host, directory: str, prefix: str) -> list[int]:
    """The N of every `<prefix>N` in a directory, sorted."""
    try:
        names = os.listdir(host.path(directory))
    except OSError:
        return []
    return sorted(n for name in names if (n := number_after(prefix, name)) is not None)
