"""Sums and means over chips and devices, each with how many of them it knows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from tpusmi.fleet.fleet_figures import FleetDevice, FleetHost, HostState

USED, LIMIT = "hbm_used_bytes", "hbm_limit_bytes"
IDLE_HELD_S = 900.0
"""A chip that is held and idle for this long is one to ask about, as in the alert."""


class Total(NamedTuple):
    """A sum or a mean over the items of which it is known."""

    value: float | None
    """None where it is known of none of them."""
    known: int
    """How many items are in it."""
    of: int
    """How many there are."""

    @property
    def of_some(self) -> bool:
        """Whether it is the sum or mean of only some of them."""
        return 0 < self.known < self.of

    @property
    def is_unknown(self) -> bool:
        """Whether it says nothing: a sum of at least 0 says as little as none."""
        return self.value is None or (self.of_some and not self.value)


def total(values: Iterable[float | None]) -> Total:
    """The sum of those that are known."""
    each = [*values]
    numbers = [v for v in each if v is not None]
    return Total(value=sum(numbers) if numbers else None, known=len(numbers), of=len(each))


def mean(numbers: Sequence[float], of: int) -> Total:
    """The mean of the known ones, of so many."""
    return Total(value=fmean(numbers) if numbers else None, known=len(numbers), of=of)


_UNKNOWN = FleetDevice(
    chip=None, name="", kind=None, coords=None, core_on_chip=None, pid=None, job=None, values={}
)
"""Stands for the devices of a host that does not answer, where none of them is known: without it,
sums would look as if they were of all hosts.
"""


class OfHost(NamedTuple):
    """Devices of a host, and whether their numbers are of the present."""

    host: FleetHost
    devices: Sequence[FleetDevice]
    is_live: bool


def of_host(host: FleetHost, devices: Iterable[FleetDevice]) -> OfHost:
    """Its TPU devices among these; an unknown one where it is not live and has none."""
    is_live = host.state == HostState.LIVE
    is_unknown = not is_live and not host.devices
    return OfHost(
        host=host,
        devices=[_UNKNOWN] if is_unknown else [d for d in devices if is_tpu(d)],
        is_live=is_live,
    )


def is_tpu(device: FleetDevice) -> bool:
    """False for a device of the CPU or of another accelerator."""
    return (
        device.chip is not None
        or device.platform == "tpu"
        or (device.platform is None and (device.kind or "").startswith("TPU"))
    )


def memory(device: FleetDevice) -> tuple[float | None, float | None]:
    """Bytes in use and their limit: its own, or those of the chip that it shares. None is an
    unknown one.
    """
    own, of_chip = device.values, device.of_chip
    if USED in own or not of_chip:
        return own.get(USED), own.get(LIMIT)
    return of_chip.get(USED), of_chip.get(LIMIT, own.get(LIMIT))


def memory_percent(device: FleetDevice) -> float | None:
    """The share of its memory, or of that of the chip that it shares, which is in use. None if
    unknown.
    """
    used, limit = memory(device)
    return 100.0 * used / limit if used is not None and limit else None


def ratio(device: FleetDevice, metric: str) -> float | None:
    """A percentage of a device, or memory in use of its limit, from 0 to 1. None if unknown."""
    percent = memory_percent(device) if metric == USED else device.values.get(metric)
    return None if percent is None else percent / 100.0


def memory_totals(parts: Iterable[OfHost]) -> tuple[Total, Total]:
    """Bytes in use and their limit. Memory that devices of a chip share is counted once."""
    pairs = [pair for part in parts for pair in _memory_of(part)]
    return total(used for used, _ in pairs), total(limit for _, limit in pairs)


def _memory_of(part: OfHost) -> Iterator[tuple[float | None, float | None]]:
    shared: set[int | None] = set()
    for d in part.devices:
        if d.of_chip and d.chip in shared:
            continue
        if d.of_chip:
            shared.add(d.chip)
        yield memory(d) if part.is_live else (None, None)


class ChipUse(NamedTuple):
    """A chip of a host. None is unknown."""

    is_held: bool | None
    idle_s: float | None


def chip_uses(part: OfHost) -> Iterator[ChipUse]:
    """The chips of these devices; a device of which no chip is known is one."""
    of_chip: dict[int, list[FleetDevice]] = {}
    for d in part.devices:
        if d.chip is not None:
            of_chip.setdefault(d.chip, []).append(d)
    yield from (_use(part, devices) for devices in of_chip.values())
    yield from (_use(part, [d]) for d in part.devices if d.chip is None)


def _use(part: OfHost, devices: Sequence[FleetDevice]) -> ChipUse:
    if not part.is_live:
        return ChipUse(is_held=None, idle_s=None)
    idle = [d.values.get("idle_s") for d in devices]
    times = [s for s in idle if s is not None]
    has_owner = any(d.pid is not None for d in devices)
    holders = devices[0].holders
    return ChipUse(
        is_held=True if has_owner else None if holders is None else holders > 0,
        idle_s=min(times) if len(times) == len(idle) else None,
    )


def held(uses: Iterable[ChipUse]) -> Total:
    """How many chips a process holds."""
    return total(None if u.is_held is None else int(u.is_held) for u in uses)


def idle_held(uses: Iterable[ChipUse]) -> Total:
    """How many have been idle for IDLE_HELD_S, of the chips that are held or may be."""
    return total(
        int(u.idle_s >= IDLE_HELD_S) if u.is_held and u.idle_s is not None else None
        for u in uses
        if u.is_held is not False
    )


def added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of each, the largest first."""
    sums: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            sums[name] = sums.get(name, 0) + number
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))
