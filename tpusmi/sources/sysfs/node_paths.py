"""Which device node belongs to which PCI function: the kernel says so, nothing is counted.

`/dev/vfio/7` is IOMMU group 7, which may just as well be a network card's. A node is never opened.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

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


class NodePaths(NamedTuple):
    """Device nodes, and trouble with them, by PCI address."""

    by_address: dict[str, tuple[str, ...]]
    """At most one node for each function."""
    notes: dict[str, tuple[str, ...]]
    others: dict[str, tuple[tuple[str, str], ...]]
    """Pairs of a function's node and another node that opens the same device."""


def find_nodes(host: Host, functions: Sequence[PciFunction]) -> NodePaths:
    """The device node of each function."""
    accels = _accels_by_address(host) if functions else {}
    nodes = NodePaths({}, {}, {})
    guessed: list[PciFunction] = []
    for f in functions:
        names = _names(f, accels)
        here = [name for name in names if _is_here(host.path(name))]
        if not here and _is_accel(f) and f.address not in accels and not f.directory.names("accel"):
            guessed.append(f)
            continue
        node, notes = _judged(host, here[0]) if here else (None, [_missing(f, names)])
        _put(nodes, f, node, notes)
        nodes.others[f.address] = tuple((node, other) for other in here[1:]) if node else ()
    _guess(host, guessed, set(accels.values()), nodes)
    return nodes


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


def _judged(host: Host, node: str) -> tuple[str | None, list[str]]:
    """The node, or None if it is not one, and notes for this user."""
    path = host.path(node)
    try:
        info = os.stat(path)
    except PermissionError:
        return node, [f"{node} cannot be inspected: Permission denied"]
    except OSError as error:
        return None, [f"{node} is not a device node: {error.strerror}"]
    if stat.S_ISDIR(info.st_mode):
        # Docker's -v makes a directory for a path that the host does not have.
        return None, [f"{node} is a directory, not a device node; {_with_device(node)}"]
    if os.access(path, os.R_OK | os.W_OK, effective_ids=True):
        return node, []
    mode = stat.S_IMODE(info.st_mode)
    return node, [
        f"you have no permission to open {node} (mode {mode:04o}, owner {info.st_uid}, "
        f"group {info.st_gid}): jobs need sudo, or that group"
    ]


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


def _guess(host: Host, functions: Sequence[PciFunction], taken: set[str], nodes: NodePaths) -> None:
    """Nodes by PCI order, for a kernel that does not say: only if their numbers match."""
    free = [n for n in map(ACCEL.format, _numbers(host, "/dev", "accel")) if n not in taken]
    for i, f in enumerate(functions):
        if len(free) != len(functions):
            _put(nodes, f, None, [_missing(f, ())])
            continue
        node, notes = _judged(host, free[i])
        note = f"{free[i]} is a guess by PCI order: the kernel does not say which node it is"
        _put(nodes, f, node, [note, *notes])


def _put(nodes: NodePaths, f: PciFunction, node: str | None, notes: Sequence[str]) -> None:
    nodes.by_address[f.address] = () if node is None else (node,)
    nodes.notes[f.address] = tuple(notes)


def _numbers(host: Host, directory: str, prefix: str) -> list[int]:
    """The N of every `<prefix>N` in a directory, sorted."""
    try:
        names = os.listdir(host.path(directory))
    except OSError:
        return []
    return sorted(n for name in names if (n := number_after(prefix, name)) is not None)
