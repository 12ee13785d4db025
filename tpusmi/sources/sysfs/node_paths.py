"""Which device node belongs to which PCI function: asked of the kernel, never counted.

`/dev/vfio/7` is IOMMU group 7, which may as well be a network card's. A node is never opened.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.chips import ACCEL, VFIO
from tpusmi.model import Host
from tpusmi.sources.sysfs.files import Directory, number_after
from tpusmi.sources.sysfs.functions import Function

VFIO_DEVICE = "/dev/vfio/devices/vfio{}"
"""The node of a device instead of its group, where the kernel has iommufd."""


class Nodes(NamedTuple):
    """Device nodes, and what is wrong with them, by PCI address."""

    of: dict[str, tuple[str, ...]]
    """At most one for each function."""
    notes: dict[str, tuple[str, ...]]
    others: dict[str, tuple[tuple[str, str], ...]]
    """Of a function's node, the others that open the same."""


def find_nodes(host: Host, functions: Sequence[Function]) -> Nodes:
    """The device node of each function."""
    accels = _accels_by_address(host) if functions else {}
    found = Nodes({}, {}, {})
    guessed: list[Function] = []
    for f in functions:
        names = _names(f, accels)
        here = [name for name in names if _is_here(host.path(name))]
        if not here and _is_accel(f) and f.address not in accels and not f.directory.names("accel"):
            guessed.append(f)
            continue
        node, notes = _judged(host, here[0]) if here else (None, [_missing(f, names)])
        _put(found, f, node, notes)
        found.others[f.address] = tuple((node, other) for other in here[1:]) if node else ()
    _guess(host, guessed, set(accels.values()), found)
    return found


def lookalikes(host: Host) -> list[str]:
    """Nodes in /dev that could be a TPU's, in the order of their numbers."""
    accels = [ACCEL.format(n) for n in _numbers(host, "/dev", "accel")]
    groups = [VFIO.format(n) for n in _numbers(host, "/dev/vfio", "")]
    devices = [VFIO_DEVICE.format(n) for n in _numbers(host, "/dev/vfio/devices", "vfio")]
    return [*accels, *groups, *devices]


def _names(f: Function, accels: dict[str, str]) -> list[str]:
    """Where sysfs says the node of a function could be, the likeliest first."""
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
    """The node of each PCI address that /sys/class/accel knows."""
    accel_class = Directory(host.path("/sys/class"))
    found = {}
    for name in sorted(accel_class.names("accel")):
        number = number_after("accel", name)
        address = accel_class.link(f"accel/{name}/device")
        if number is not None and address is not None:
            found[address] = ACCEL.format(number)
    return found


def _is_accel(f: Function) -> bool:
    return f.generation is not None and f.generation.node == ACCEL


def _is_here(path: str) -> bool:
    """True too for what this user may not look at."""
    try:
        os.lstat(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _judged(host: Host, node: str) -> tuple[str | None, list[str]]:
    """The node, None if it is none after all, and what this user should know of it."""
    path = host.path(node)
    try:
        found = os.stat(path)
    except PermissionError:
        return node, [f"{node} may not be looked at: Permission denied"]
    except OSError as error:
        return None, [f"{node} is not a device node: {error.strerror}"]
    if stat.S_ISDIR(found.st_mode):
        # Docker's -v makes one for what the host does not have.
        return None, [
            f"{node} is a directory and not a device node: a container needs --device={node}"
        ]
    if os.access(path, os.R_OK | os.W_OK, effective_ids=True):
        return node, []
    mode = stat.S_IMODE(found.st_mode)
    return node, [
        f"{node} may not be opened by you (mode {mode:04o}, owner {found.st_uid}, group"
        f" {found.st_gid}): jobs need sudo, or that group"
    ]


def _missing(f: Function, names: Sequence[str]) -> str:
    if not names and _is_accel(f):
        return "no device node: is the TPU's driver loaded?"
    if not names:
        return f"no device node: {f.address} is in no IOMMU group; a restart of the VM may help"
    if f.driver is None:
        return f"no device node {names[0]}: no driver is bound; a restart of the VM may help"
    return f"no device node {names[0]}: a container must be given it (--device={names[0]})"


def _guess(host: Host, functions: Sequence[Function], taken: set[str], found: Nodes) -> None:
    """Nodes by PCI order, for a kernel that does not say: only if there is one for each."""
    free = [n for n in map(ACCEL.format, _numbers(host, "/dev", "accel")) if n not in taken]
    for i, f in enumerate(functions):
        if len(free) != len(functions):
            _put(found, f, None, [_missing(f, ())])
            continue
        node, notes = _judged(host, free[i])
        note = f"{free[i]} by the order on the PCI bus: the kernel does not tell which node it is"
        _put(found, f, node, [note, *notes])


def _put(found: Nodes, f: Function, node: str | None, notes: Sequence[str]) -> None:
    found.of[f.address] = () if node is None else (node,)
    found.notes[f.address] = tuple(notes)


def _numbers(host: Host, directory: str, prefix: str) -> list[int]:
    """The N of every `<prefix>N` in a directory, sorted."""
    try:
        names = os.listdir(host.path(directory))
    except OSError:
        return []
    return sorted(n for name in names if (n := number_after(prefix, name)) is not None)
