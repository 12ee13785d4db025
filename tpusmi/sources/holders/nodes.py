"""The device nodes of a host's TPUs, and which of them a process has open.

A node is never opened: if a monitor opened one, the real job could not.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tpusmi.model import Chip, Host
from tpusmi.sources.sysfs.node_paths import lookalikes

Identity = tuple[int, int]

_MEMORY_DEVICES = 1
"""Major number of /dev/null and similar devices: the nodes of a simulated host are of this kind."""


class Nodes(NamedTuple):
    """The device nodes of a host, and how to recognize them."""

    names: dict[str, None]
    """In order, without the host's root: `/dev/vfio/0`."""
    by_identity: dict[Identity, str]
    paths: tuple[str, ...]
    """Where they are, with other names of the same nodes."""
    closed: tuple[str, ...] = ()
    """Names of those that this user has no permission to open, by their modes."""


def known_nodes(host: Host, chips: Iterable[Chip]) -> Nodes:
    """The device nodes of those chips; without a chip, every node that looks like one of a TPU.

    A container may have the nodes and no PCI bus.
    """
    chips = tuple(chips)
    primary = [node for chip in chips for node in chip.nodes] or lookalikes(host)
    also = [pair for chip in chips for pair in chip.other_nodes]
    here: list[tuple[str, str, os.stat_result]] = []
    for name, path in [*((name, name) for name in primary), *also]:
        try:
            here.append((name, host.path(path), os.stat(host.path(path))))
        except OSError:
            continue  # the source of the chips reports it
    numbers = Counter(info.st_rdev for _, _, info in here)
    by_identity = {
        (_place(info) if numbers[info.st_rdev] > 1 else identity(info)): name
        for name, _, info in here
    }
    names = dict.fromkeys(name for name, _, _ in here)
    modes = os.R_OK | os.W_OK
    closed = (name for name in names if not os.access(host.path(name), modes, effective_ids=True))
    return Nodes(names, by_identity, tuple(path for _, path, _ in here), tuple(closed))


def identity(info: os.stat_result) -> Identity:
    """The number of a device, whatever its name; for a file in place of a device, its inode."""
    if stat.S_ISCHR(info.st_mode) and os.major(info.st_rdev) != _MEMORY_DEVICES:
        return (-1, info.st_rdev)
    return _place(info)


def _place(info: os.stat_result) -> Identity:
    return (info.st_dev, info.st_ino)


def is_named_like_a_node(path: str) -> bool:
    """True for `/dev/accel0` and `/dev/vfio/5`, below any root."""
    directory, _, name = path.rpartition("/")
    return name.startswith("accel") or directory.endswith(("/vfio", "/vfio/devices"))


def node_of(pointer: int, nodes: Nodes) -> str | None:
    """The node that a descriptor of ours points at; None for anything else. Raises OSError."""
    info = os.fstat(pointer)
    return nodes.by_identity.get(identity(info)) or nodes.by_identity.get(_place(info))
