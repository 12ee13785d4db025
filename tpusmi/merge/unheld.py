"""What a chip cannot be doing while no process holds it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpusmi.model import (
    HOLDERS,
    LIBTPU_SDK,
    OK,
    Chip,
    ChipKey,
    Device,
    Outcome,
    Reading,
    Visibility,
)
from tpusmi.model.history import Key

MXU, DUTY = "tensorcore_utilization_percent", "duty_cycle_percent"


def disbelieved(
    readings: Mapping[Key, Reading],
    devices: Iterable[Device],
    chips: Iterable[Chip],
    outcomes: Iterable[Outcome],
) -> list[Key]:
    """The MXU of chips that no process holds, where libtpu's SDK reports more than 0.

    The SDK goes on with the last figure of a program that has ended. That nobody holds a chip is
    certain only where all its nodes were looked for, and every process that may hold one was
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
