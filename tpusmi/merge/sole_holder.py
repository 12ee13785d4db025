"""The memory of a process that says nothing about it, from that of its chips. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tpusmi.model import (
    HOLDERS,
    OK,
    SOLE_HOLDER,
    ChipKey,
    Device,
    Outcome,
    Process,
    Reading,
    Subject,
)
from tpusmi.model.history import Key

USED = "hbm_used_bytes"


def of_sole_holders(
    readings: Mapping[Key, Reading],
    processes: Iterable[Process],
    devices: Sequence[Device],
    outcomes: Iterable[Outcome],
) -> Iterator[tuple[Key, Reading]]:
    """The memory in use of each process that says nothing about it, and holds all its chips alone:
    their sum. None where a process could not be inspected: it may hold them as well.
    """
    sees_holders = any(
        o.source == HOLDERS and o.status == OK and o.visibility.is_complete for o in outcomes
    )
    for p in processes if sees_holders else ():
        key = p.key, USED
        if not p.holds or p.is_dead or not p.is_verified or key in readings:
            continue
        own = [d for d in devices if p.key in d.owners]
        parts = _parts(readings, own, devices)
        if parts and all(d.owners == (p.key,) for d in own):
            oldest = min(parts, key=lambda r: r.at_s)
            total = sum(r.value for r in parts)
            yield key, oldest._replace(subject=p.key, value=total, source=SOLE_HOLDER)


def _parts(
    readings: Mapping[Key, Reading], own: Sequence[Device], devices: Sequence[Device]
) -> list[Reading]:
    """What these devices have in use, or their chips where those are measured as a whole; empty
    unless that is known of all of them.
    """
    parts = {}
    for d in own:
        subject: Subject = d.key
        if (subject, USED) not in readings and d.chip is not None:
            subject = ChipKey(d.chip)
            if any(other.chip == d.chip and other not in own for other in devices):
                return []
        part = readings.get((subject, USED))
        if part is None:
            return []
        parts[subject] = part
    return [*parts.values()]
