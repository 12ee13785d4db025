"""The devices of a job by the slice that they are in, and what is missing of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tpusmi.model.slice_hosts import Slice, SliceDevice, SliceProcess
from tpusmi.model.states import NOT_HEARD_OF
from tpusmi.model.torus import Coords
from tpusmi.report.torus.placed_jobs import left_out
from tpusmi.text import counted, noun

IN_ORDER = (
    "The job has {count} slices, which its agents do not tell apart: its processes are in order, "
    "those of one slice after those of another."
)


class PlacedMember(NamedTuple):
    """A device of a process, and its place."""

    process: SliceProcess
    number: int
    """Its number in the process."""
    device: SliceDevice
    coords: Coords


def apart(placed: Sequence[PlacedMember], processes: int) -> list[list[PlacedMember]]:
    """The devices of each slice of a job, as its agents say. Where one of them does not, those at
    the same place are of different slices, which have as many processes each, in order.
    """
    if says_which(member.process for member in placed):
        return _by(placed, lambda h: h.slice_index or 0)
    at: dict[tuple[Coords, int | None], int] = {}
    for member in placed:
        place = member.coords, member.device.core_on_chip
        at[place] = at.get(place, 0) + 1
    slices = max(at.values(), default=1)
    if slices == 1 or processes % slices:
        return [[*placed]]
    each = processes // slices
    return _by(placed, lambda h: h.process_index // each)


def says_which(hosts: Iterable[SliceProcess]) -> bool:
    """Whether each of them says in which slice it is."""
    return all(h.slice_index is not None for h in hosts)


def _by(
    placed: Sequence[PlacedMember], which: Callable[[SliceProcess], int]
) -> list[list[PlacedMember]]:
    parts: dict[int, list[PlacedMember]] = {}
    for member in placed:
        parts.setdefault(which(member.process), []).append(member)
    return [parts[number] for number in sorted(parts)] or [[]]


def missing(x: Slice, placed: int, slices: int) -> list[str]:
    """What is missing of a slice."""
    notes = []
    silent = x.process_count - len(x.hosts)
    if silent > 0:
        is_not = f"{noun(silent, 'is', 'are')} {NOT_HEARD_OF}"
        which = noun(silent, "its chips are", "their chips are")
        notes.append(f"{counted(silent, 'process', 'processes')} {is_not}: {which} not drawn.")
    lost = sum(len(h.devices) for h in x.hosts) - placed
    if lost:
        notes.append(left_out(lost))
    if slices > 1 and not says_which(x.hosts):
        notes.append(IN_ORDER.format(count=slices))
    return notes
