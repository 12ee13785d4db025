"""The device nodes of a host's TPUs, and which of them a process has open.

A node is never opened: a monitor's open would make the real job's fail.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
import stat
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tpusmi.model import Chip, Host
from tpusmi.sources.sysfs.node_paths import lookalikes

Identity = tuple[int, int]

_MEMORY_DEVICES = 1
"""/dev/null and its like: a simulated host's nodes have their numbers, all the same one."""


class Nodes(NamedTuple):
    """The device nodes of a host, and how to know them again."""

    names: dict[str, None]
    """In order, without the host's root: `/dev/vfio/0`."""
    by_identity: dict[Identity, str]
    paths: tuple[str, ...]
    """Where they are, other names of the same chip too."""

    def closed(self, host: Host) -> tuple[str, ...]:
        """Those that this user may not open. That is asked of their modes; none is opened."""
        modes = os.R_OK | os.W_OK
        return tuple(
            name for name in self.names if not os.access(host.path(name), modes, effective_ids=True)
        )


def known_nodes(host: Host, chips: Iterable[Chip]) -> Nodes:
    """The device nodes of those chips; without a chip, every node that looks like one of a TPU.

    A container may have the nodes and no PCI bus.
    """
    chips = tuple(chips)
    primary = [node for chip in chips for node in chip.nodes] or lookalikes(host)
    also = [pair for chip in chips for pair in chip.other_nodes]
    found: list[tuple[str, str, os.stat_result]] = []
    for name, path in [*((name, name) for name in primary), *also]:
        try:
            found.append((name, host.path(path), os.stat(host.path(path))))
        except OSError:
            continue  # the chips' own source says so
    numbers = Counter(info.st_rdev for _, _, info in found)
    by_identity = {
        (_place(info) if numbers[info.st_rdev] > 1 else identity(info)): name
        for name, _, info in found
    }
    names = dict.fromkeys(name for name, _, _ in found)
    return Nodes(names, by_identity, tuple(path for _, path, _ in found))


def identity(found: os.stat_result) -> Identity:
    """Of a device its number, whichever /dev it was opened through; of a file that stands in for
    one its place on disk.
    """
    if stat.S_ISCHR(found.st_mode) and os.major(found.st_rdev) != _MEMORY_DEVICES:
        return (-1, found.st_rdev)
    return _place(found)


def _place(found: os.stat_result) -> Identity:
    return (found.st_dev, found.st_ino)


def is_named_like_a_node(path: str) -> bool:
    """`/dev/accel0`, `/dev/vfio/5`, below whatever root."""
    directory, _, name = path.rpartition("/")
    return name.startswith("accel") or directory.endswith(("/vfio", "/vfio/devices"))


def node_of(link: str, nodes: Nodes) -> str | None:
    """The node that a descriptor, /proc/PID/fd/N, is open on; None for anything else.

    Raises OSError when that may not be looked at, or is gone.
    """
    found = os.stat(link)
    return nodes.by_identity.get(identity(found)) or nodes.by_identity.get(_place(found))


def is_node(link: str, nodes: Nodes) -> bool:
    """True for a descriptor that is open on a node."""
    try:
        return node_of(link, nodes) is not None
    except OSError:
        return False
