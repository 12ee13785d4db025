"""What the machine has by its chips and nodes alone, and which of it a process can have. Pure.

Where processes have all opened the same nodes, the variables that told libtpu which to use say who
uses which, and only where the ids of their devices say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from tpusmi.model import (
    HOLDERS,
    LIBTPU_SDK,
    OK,
    Chip,
    ChipKey,
    Device,
    DeviceKey,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    Subject,
    Visibility,
)
from tpusmi.model.history import Key
from tpusmi.text import whole_number

Agents = Mapping[ProcessKey | None, Sequence[Device]]
"""The devices that agents report, by process."""


class Machine:
    """The devices of the chips: no id, no job needed."""

    def __init__(
        self, outcomes: Sequence[Outcome], processes: Sequence[Process], agents: Agents
    ) -> None:
        self.chips = tuple(c for o in outcomes for c in o.chips)
        self.holds = {p.key: p.holds for p in processes if p.holds}
        self.dead = frozenset(p.key for p in processes if p.is_dead)
        self._users = {p.key: p.uid for p in processes}
        self._sees_holders = any(
            o.source == HOLDERS and o.status == OK and not o.visibility.not_inspected
            for o in outcomes
        )
        devices = _devices(self.chips, self.holds)
        ids = {key: i for key, i in _ids(outcomes, agents).items() if key not in self.dead}
        self._shares = shares(processes, devices, self.chips, ids)
        """The devices that each holder uses, where several have opened the same nodes."""
        self.devices = [used_first(d, self._shares) for d in devices] if self._shares else devices

    def of(self, process: ProcessKey | None, with_bare: bool = False) -> list[Device]:
        """The devices that only that process's user can have: of the nodes it holds; all if the
        process is unknown, or may hold what cannot be seen. `with_bare` adds those of chips without
        a node, which no process can be seen to hold.
        """
        if process is None:
            return list(self.devices)
        # Not those that a process of another user holds: two users' numbers are not one chip's.
        user = self._users.get(process)
        mine = [d for d in self.devices if all(self._users.get(o) == user for o in d.owners)]
        if process in self._shares:
            return [d for d in mine if d.index in self._shares[process]]
        held = frozenset(self.holds.get(process, ()))
        if not held and not self._sees_holders:
            return mine
        # A process may show only one of the nodes of a chip.
        chips = {c.index for c in self.chips if not held.isdisjoint(c.nodes)}
        return [d for d in mine if d.node in held or d.chip in chips or (with_bare and not d.node)]

    def nodes_of(self, process: ProcessKey | None, count: int) -> Sequence[str | None]:
        """The nodes of so many devices of a process, where no PCI bus shows them: those that it
        holds, when they are as many.
        """
        held = self.holds.get(process, ()) if process and not self.devices else ()
        if len(held) != count:
            return [None] * count
        return sorted(held, key=order_of)


def _devices(chips: Iterable[Chip], holds: Mapping[ProcessKey, tuple[str, ...]]) -> list[Device]:
    holders: dict[str, list[ProcessKey]] = {}
    for process, held in holds.items():
        for node in held:
            holders.setdefault(node, []).append(process)
    order = {process: rank for rank, process in enumerate(holds)}
    devices: list[Device] = []
    for chip in chips:
        has_node_each = len(chip.nodes) == chip.devices
        for core in range(chip.devices):
            nodes = chip.nodes[core : core + 1] if has_node_each else chip.nodes
            owners = {process for node in nodes for process in holders.get(node, ())}
            devices.append(
                Device(
                    key=DeviceKey(None, len(devices)),
                    index=len(devices),
                    id=None,
                    platform="tpu",
                    kind=chip.kind,
                    coords=None,
                    core_on_chip=core,
                    chip=chip.index,
                    node=nodes[0] if nodes else None,
                    owners=tuple(sorted(owners, key=order.__getitem__)),
                )
            )
    return devices


def _ids(outcomes: Sequence[Outcome], agents: Agents) -> dict[ProcessKey, tuple[int, ...]]:
    """The ids of the devices of each process, as its server or its agent has them."""
    ids = {s.process: s.ids for o in outcomes for s in o.servers if s.process and s.ids}
    for process, devices in agents.items():
        own = [d.id for d in devices if d.platform == "tpu" and d.id is not None]
        if process and own:
            ids.setdefault(process, tuple(sorted(own)))
    return ids


def laid_over(machine: Device, own: Device) -> Device:
    """An agent's device with its place in the machine."""
    is_tpu = own.platform == "tpu"
    owners = (own.key.process,) if own.key.process else ()
    return own._replace(
        index=machine.index,
        platform="tpu",
        kind=own.kind if is_tpu else machine.kind,
        chip=machine.chip,
        core_on_chip=machine.core_on_chip if own.core_on_chip is None else own.core_on_chip,
        node=machine.node,
        owners=(*owners, *(o for o in machine.owners if o not in owners)),
    )


def owners_of(devices: Iterable[Device]) -> dict[Subject, tuple[ProcessKey, ...]]:
    """The processes that have each device, and each chip of devices."""
    owners: dict[Subject, tuple[ProcessKey, ...]] = {}
    for d in devices:
        if d.owners:
            owners[d.key] = d.owners
            if d.chip is not None:
                chip = ChipKey(d.chip)
                owners[chip] = (*owners.get(chip, ()), *d.owners)
    return owners


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


MXU, DUTY = "tensorcore_utilization_percent", "duty_cycle_percent"


def disbelieved(
    readings: Mapping[Key, Reading],
    devices: Iterable[Device],
    chips: Iterable[Chip],
    outcomes: Iterable[Outcome],
) -> list[Key]:
    """The MXU of chips that no process holds, where libtpu's SDK reports more than 0.

    The SDK goes on with the last figure of a program that has ended. That a chip is not held
    is certain only where all its nodes were looked for, and every process that may hold one was
    inspected; a duty cycle is a sign of a program that this user cannot see.
    """
    looked = _looked_for(outcomes)
    unheld = {c.index for c in chips if c.nodes and looked.issuperset(c.nodes)}
    idle = (d for d in devices if d.chip in unheld and not d.owners)
    return [key for d in idle if _is_left_over(readings, key := (d.key, MXU), d)]


def _is_left_over(readings: Mapping[Key, Reading], key: Key, d: Device) -> bool:
    reading = readings.get(key)
    if reading is None or reading.source != LIBTPU_SDK or not reading.value:
        return False
    of_chip = None if d.chip is None else (ChipKey(d.chip), DUTY)
    return (d.key, DUTY) not in readings and of_chip not in readings


def _looked_for(outcomes: Iterable[Outcome]) -> frozenset[str]:
    """The nodes whose holders are all known."""
    seen = next((o.visibility for o in outcomes if (o.source, o.status) == (HOLDERS, OK)), None)
    complete = seen is not None and seen.is_complete and not seen.reason
    return frozenset((seen or Visibility()).nodes if complete else ())
