"""What a device is called: its UUID, and every name by which `--id` finds it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property

from tpusmi.model import Chip, Device, DeviceKey, Snapshot
from tpusmi.text import span

NAMESPACE = "tpusmi"


def uuid(snapshot: Snapshot, device: Device) -> str:
    """Unique name of the device, in nvidia-smi's form: `TPU-` and a UUID.

    That of a chip's device is made of the machine's id (without one, of the host's name) and the
    PCI address or node, with the core where two share one: no job, agent or boot changes it. A
    device of a process alone, such as a CPU device of JAX, has the process in its name.
    """
    place = hardware_name(snapshot, device)
    if place is None:
        return _name_in_process(device)
    from uuid import NAMESPACE_OID, uuid5  # here, because only queries show it

    machine = snapshot.host.machine_id or snapshot.host.name
    return f"TPU-{uuid5(NAMESPACE_OID, f'{NAMESPACE}/{machine}/{place}')}"


def listed_name(d: Device) -> str:
    """`TPU 0` by its index; by its number, as in its name, where indexes repeat: `TPU 4@6320`."""
    has_no_place = d.chip is None and (d.key.process is None or bool(d.apart_by))
    apart = f"@{d.apart_by}" if d.apart_by else ""
    return f"{(d.platform or 'device').upper()} {d.number if has_no_place else d.index}{apart}"


def hardware_name(snapshot: Snapshot, device: Device) -> str | None:
    """`TPU-0000:00:05.0`, with `/0` and `/1` for the cores of a v2 or v3; `TPU-/dev/vfio/0` where
    no PCI bus is visible; None for a device of a process or server alone.
    """
    chip = snapshot.chip_of(device)
    if chip is not None and chip.pci_addresses:
        addresses = chip.pci_addresses
        core = _core(snapshot, chip, device)
        if len(addresses) == chip.devices:
            return f"TPU-{addresses[core]}"
        return f"TPU-{addresses[0]}/{core}"
    has_own_name = device.key.process is not None or device.node is None
    return None if has_own_name else f"TPU-{device.node}"


def _core(snapshot: Snapshot, chip: Chip, device: Device) -> int:
    return device.index - sum(c.devices for c in snapshot.chips if c.index < chip.index)


def _name_in_process(device: Device) -> str:
    process, server = device.key.process, device.key.server
    if process is not None:
        return f"{device.own_name}@{process.pid}-{process.start_ticks}"
    return f"{device.own_name}@{server}" if server else device.own_name


def named(snapshot: Snapshot, words: Collection[str]) -> set[DeviceKey]:
    """The devices that those words name."""
    calls = _NamesHere(snapshot)
    return {key for word in words for key in calls.of(word)}


def unknown_words(snapshot: Snapshot, words: Sequence[str]) -> list[str]:
    """The words that name no device, and the ranges that are not here in full."""
    calls = _NamesHere(snapshot)
    return [word for word in words if not calls.has_all(word)]


class _NamesHere:
    """What each device of a snapshot is called."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._devices = snapshot, snapshot.devices

    def of(self, word: str) -> set[DeviceKey]:
        """The devices of that name: in the first of the ways in which any is called so, the names
        that are a device's alone first.
        """
        if word.isascii() and word.isdigit():
            return self._where(lambda d: word == str(d.index)) or self._where(
                lambda d: word == str(d.number)
            )
        return self._between(word) if _range(word) is not None else self._called(word)

    def _called(self, word: str) -> set[DeviceKey]:
        start, at = word.lower(), _position(word)
        ways: tuple[Callable[[], set[DeviceKey]], ...] = (
            lambda: self._where(lambda d: word in _names(self._snapshot, d)),
            lambda: {key for key, own in self._uuids.items() if own == start},
            lambda: self._where(lambda d: at is not None and at in _positions(self._snapshot, d)),
            lambda: self._where(lambda d: word in _shared_names(d)),
            lambda: self._beginning(start),
        )
        return next(filter(None, (way() for way in ways)), set())

    def _where(self, is_so: Callable[[Device], bool]) -> set[DeviceKey]:
        return {d.key for d in self._devices if is_so(d)}

    @cached_property
    def _uuids(self) -> dict[DeviceKey, str]:
        return {d.key: uuid(self._snapshot, d).lower() for d in self._devices}

    def has_all(self, word: str) -> bool:
        """True when it names a device; for a range, when each of its numbers does."""
        keys, ends = self.of(word), _range(word)
        return bool(keys) and (ends is None or len(keys) > ends[1] - ends[0])

    def _between(self, word: str) -> set[DeviceKey]:
        """The devices of a range of indexes; of numbers in names where none has such an index."""
        ends = _range(word)
        if ends is None:
            return set()
        by_index = {d.key for d in self._devices if ends[0] <= d.index <= ends[1]}
        return by_index or {d.key for d in self._devices if ends[0] <= d.number <= ends[1]}

    def _beginning(self, start: str) -> set[DeviceKey]:
        """The only device whose UUID begins so."""
        if not start.startswith("tpu-") or start == "tpu-":
            return set()
        keys = {key for key, own in self._uuids.items() if own.startswith(start)}
        return keys if len(keys) == 1 else set()


def _names(snapshot: Snapshot, d: Device) -> Iterator[str]:
    """The names that are its alone."""
    yield d.name
    if d.node:
        yield from (d.node, d.node.removeprefix("/dev/"))
    hardware = hardware_name(snapshot, d)
    if hardware:
        yield hardware


def _shared_names(d: Device) -> tuple[str, ...]:
    """The names that devices of several processes can have."""
    return (d.own_name, *(f"{d.own_name}@{owner.pid}" for owner in d.owners))


def _positions(snapshot: Snapshot, d: Device) -> Iterator[tuple[int, ...]]:
    """Where it is on the PCI bus: a chip with an address for each of its devices has one here."""
    chip = snapshot.chip_of(d)
    if chip is None:
        return
    addresses = chip.pci_addresses
    if len(addresses) == chip.devices:
        core = _core(snapshot, chip, d)
        addresses = addresses[core : core + 1]
    for address in addresses:
        if place := _position(address):
            yield place


def _position(word: str) -> tuple[int, ...] | None:
    """Domain, bus, slot and function of `0000:00:05.0`, `00000000:00:05.0` or `00:05.0`; None for
    other text.
    """
    parts = word.replace(".", ":", 1).split(":")
    if len(parts) == 3:
        parts = ["0", *parts]
    if len(parts) != 4 or not all(0 < len(p) <= 8 and set(p) <= _HEX for p in parts):
        return None
    return tuple(int(p, 16) for p in parts)


_HEX = frozenset("0123456789abcdefABCDEF")


def _range(word: str) -> tuple[int, int] | None:
    """The ends of `0-3`; None for other text, and where the first is the larger."""
    ends = span(word) if "-" in word and not word.endswith("-") else None
    return ends if ends is not None and ends[0] <= ends[1] else None
