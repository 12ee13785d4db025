"""The memory of a process that says nothing about it, from that of its chips. Pure."""

from __future__ import annotations

from collections import Counter
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
    ProcessKey,
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
    owned: dict[ProcessKey, list[Device]] = {}
    on_chip = Counter(d.chip for d in devices)
    for d in devices:
        for owner in d.owners:
            owned.setdefault(owner, []).append(d)
    for p in processes:
        key = p.key, USED
        if not p.holds or p.is_dead or not p.is_verified or key in readings:
            continue
        own = owned.get(p.key, [])
        parts = _parts(readings, own, on_chip)
        if not parts:
            continue
        is_measured = all(r.source == AGENT and process_of(r.subject) == p.key for r in parts)
        if is_measured or (sees_holders and _is_alone(p, own, chips)):
            source = AGENT if is_measured else SOLE_HOLDER
            oldest = min(parts, key=lambda r: r.at_s)
            total = sum(r.value for r in parts)
            yield key, oldest._replace(subject=p.key, value=total, source=source)


def _is_alone(p: Process, own: Sequence[Device], chips: Sequence[Chip]) -> bool:
    """Whether no other process holds its devices, and these are all that it holds. False where one
    of them has no node that others could be seen to hold.
    """
    if any(d.node is None for d in own):
        return False
    own_chips = {d.chip for d in own}
    of_chips = (c.nodes for c in chips if c.index in own_chips)
    nodes = {*(d.node for d in own), *(node for nodes in of_chips for node in nodes)}
    return all(d.owners == (p.key,) for d in own) and nodes.issuperset(p.holds)


def _parts(
    readings: Mapping[Key, Reading], own: Sequence[Device], on_chip: Mapping[int | None, int]
) -> list[Reading]:
    """What these devices have in use, or their chips where those are measured as a whole; empty
    unless that is known of all of them. `on_chip` is the number of devices on each chip.
    """
    parts = {}
    own_on_chip = Counter(d.chip for d in own)
    for d in own:
        subject: Subject = d.key
        if (subject, USED) not in readings and d.chip is not None:
            subject = ChipKey(d.chip)
            if own_on_chip[d.chip] != on_chip[d.chip]:
                return []
        part = readings.get((subject, USED))
        if part is None:
            return []
        parts[subject] = part
    return [*parts.values()]
