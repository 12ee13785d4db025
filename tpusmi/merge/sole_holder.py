"""The memory of a process that says nothing about it, from that of its chips. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tpusmi.merge.processes import process_of
from tpusmi.model import (
    AGENT,
    HOLDERS,
    OK,
    SOLE_HOLDER,
    Chip,
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
    chips: Sequence[Chip],
    outcomes: Iterable[Outcome],
) -> Iterator[tuple[Key, Reading]]:
    """The memory in use of each process that does not say it itself: the sum over its devices, if
    its own agent has measured each, or if it alone holds them. Nothing where another process holds
    one as well, or may: one that could not be inspected.
    """
    sees_holders = any(
        o.source == HOLDERS and o.status == OK and o.visibility.is_complete for o in outcomes
    )
    for p in processes:
        key = p.key, USED
        if not p.holds or p.is_dead or not p.is_verified or key in readings:
            continue
        own = [d for d in devices if p.key in d.owners]
        parts = _parts(readings, own, devices)
        if not parts:
            continue
        is_measured = all(r.source == AGENT and process_of(r.subject) == p.key for r in parts)
        if is_measured or (sees_holders and _is_alone(p, own, chips)):
            source = AGENT if is_measured else SOLE_HOLDER
            oldest = min(parts, key=lambda r: r.at_s)
            total = sum(r.value for r in parts)
            yield key, oldest._replace(subject=p.key, value=total, source=source)


def _is_alone(p: Process, own: Sequence[Device], chips: Sequence[Chip]) -> bool:
    """Whether no other process holds its devices, and these are all that it holds."""
    of_chips = (c.nodes for c in chips if any(d.chip == c.index for d in own))
    nodes = {*(d.node for d in own), *(node for nodes in of_chips for node in nodes)}
    return all(d.owners == (p.key,) for d in own) and nodes.issuperset(p.holds)


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
