"""What the machine has by its chips and nodes alone, and what an agent says laid over it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpusmi.model import Chip, Device, DeviceKey, ProcessKey


def machine_devices(
    chips: Sequence[Chip], holds: Mapping[ProcessKey, tuple[str, ...]]
) -> list[Device]:
    """What the machine has by its chips alone: no id, no job needed."""
    found: list[Device] = []
    for chip in chips:
        apart = len(chip.nodes) == chip.devices
        for core in range(chip.devices):
            index = len(found)
            nodes = chip.nodes[core : core + 1] if apart else chip.nodes
            owners = tuple(p for p, held in holds.items() if set(held) & set(nodes))
            node = nodes[0] if nodes else None
            found.append(
                Device(
                    *(DeviceKey(None, index), index, None, "tpu", chip.kind, None, core),
                    *(chip.index, None, node, owners),
                )
            )
    return found


def is_on(device: Device, chips: Sequence[Chip], held: tuple[str, ...]) -> bool:
    """True when a process that holds those nodes has the device: its own node, or one of its chip,
    of which a process may show only one.
    """
    if device.node in held:
        return True
    return any(c.index == device.chip and set(c.nodes) & set(held) for c in chips)


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
        aka=(machine.key,),
    )


def order_of(node: str) -> tuple[str, int]:
    """By what to sort nodes: `/dev/vfio/9` comes before `/dev/vfio/10`."""
    name = node.rstrip("0123456789")
    return name, int(node[len(name) :] or 0)
