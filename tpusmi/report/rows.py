"""What a device's row shows beside its own values: those of its whole chip, and its owner's."""

from __future__ import annotations

from typing import NamedTuple

from tpusmi.model import Device, Snapshot, Value

DITTO = '"'
"""In place of a figure of the whole chip that stands in the row of its first device."""


class Shown(NamedTuple):
    """A value for a row."""

    value: Value | None
    repeats: bool = False
    """True when it is the whole chip's, and stands in the row of the chip's first device."""


def shown(s: Snapshot, d: Device, name: str) -> Shown:
    """The device's own value; where only its chip was measured, the chip's."""
    own = s.values.get((d.key, name))
    if own is not None:
        return Shown(own)
    whole = s.of_chip(name, d)
    return Shown(whole, repeats=whole is not None and bool(d.core_on_chip))


def mfu(s: Snapshot, d: Device) -> Value | None:
    """MFU of the job that owns the device; None when several do or nobody tells."""
    known = [s.values.get((owner, "mfu_percent")) for owner in d.owners]
    found = [v for v in known if v is not None]
    return found[0] if len(found) == 1 else None


def pids(d: Device) -> str:
    """Its owners: `4321`, or `4321+2` when two more processes hold it; empty for none."""
    if not d.owners:
        return ""
    more = len(d.owners) - 1
    return f"{d.owners[0].pid}+{more}" if more else str(d.owners[0].pid)


def node(d: Device) -> str:
    """Its device node as short as it can be told: `vfio/0`, `accel3`; empty for none."""
    return (d.node or "").removeprefix("/dev/")
