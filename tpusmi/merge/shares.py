"""Who uses which chip, of processes that have all opened the same nodes: by the variables that told
libtpu which to use, and only where the ids of their devices say the same. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from tpusmi.model import Chip, Device, Process, ProcessKey
from tpusmi.text import whole_number

PATHS_VARIABLE = "TPU_VISIBLE_DEVICE_PATHS"
"""libtpu obeys this one, where several of the three are set."""
CHIPS_VARIABLES = ("TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES")

Shares = dict[ProcessKey, frozenset[int]]
"""Indexes of devices."""


def shares(
    processes: Iterable[Process],
    machine: Sequence[Device],
    chips: Sequence[Chip],
    ids: Mapping[ProcessKey, tuple[int, ...]],
) -> Shares:
    """The devices that each process uses of the nodes that it holds together with others; no entry
    for processes that do not say, or that contradict each other.
    """
    groups: dict[tuple[str, ...], list[Process]] = {}
    for p in processes:
        if len(p.holds) > 1 and p.key in ids and not p.is_dead:
            groups.setdefault(tuple(sorted(p.holds, key=order_of)), []).append(p)
    certain: Shares = {}
    for nodes, group in groups.items():
        if len(group) < 2:
            continue
        held = [c for c in chips if not set(c.nodes).isdisjoint(nodes)]
        parts = {p.key: _part(p, held, machine) for p in group}
        indexes = {c.index for c in held}
        whole = {d.index for d in machine if d.chip in indexes}
        if _are_certain(parts, whole, ids):
            certain.update(parts)
    return certain


def used_first(device: Device, parts: Shares) -> Device:
    """The device with the process that uses it in front of the others that hold its node."""
    return device._replace(
        owners=tuple(sorted(device.owners, key=lambda o: device.index not in parts.get(o, ())))
    )


def order_of(node: str) -> tuple[str, int]:
    """By what to sort nodes: `/dev/vfio/9` comes before `/dev/vfio/10`."""
    name = node.rstrip("0123456789")
    return name, int(node[len(name) :] or 0)


def _part(p: Process, held: Sequence[Chip], machine: Sequence[Device]) -> frozenset[int]:
    """The devices of the chips that the variables of a process name; empty when they name none."""
    paths = [path for path in p.environment.get(PATHS_VARIABLE, "").split(",") if path]
    if paths:
        named = {c.index for c in held if set(c.nodes) & set(paths)}
    else:
        values = (p.environment.get(name, "") for name in CHIPS_VARIABLES)
        words = next(filter(None, values), "").split(",")
        numbers = [whole_number(word.strip()) for word in words]
        if any(n is None or n >= len(held) for n in numbers):
            return frozenset()
        named = {held[n].index for n in numbers if n is not None}
    return frozenset(d.index for d in machine if d.chip in named)


def _are_certain(
    parts: Mapping[ProcessKey, frozenset[int]],
    whole: set[int],
    ids: Mapping[ProcessKey, tuple[int, ...]],
) -> bool:
    """True when no device is in two parts, each process has as many ids as devices, and the ids of
    all are in the order of the devices: of the whole, or the very same numbers.
    """
    pairs: list[tuple[int, int]] = []
    for key, part in parts.items():
        if not part or len(part) != len(ids[key]):
            return False
        pairs += zip(sorted(part), sorted(ids[key]), strict=True)
    pairs.sort()
    is_ordered = all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
    return is_ordered and (len(pairs) == len(whole) or all(a == b for a, b in pairs))
