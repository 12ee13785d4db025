"""The devices of a job by the slice that they are in, and what is missing of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tpusmi.model.slice_hosts import Slice, SliceDevice, SliceProcess
from tpusmi.model.torus import Coords
from tpusmi.report.torus_jobs import left_out
from tpusmi.text import counted, noun

IN_ORDER = (
    "The job has {count} slices, which its agents do not tell apart: its processes are in order, "
    "those of one slice after those of another."
)
PlacedMember = tuple[SliceProcess, int, SliceDevice, Coords]
"""A device of a process, its number there, and its place."""


def apart(placed: Sequence[PlacedMember], processes: int) -> list[list[PlacedMember]]:
    """The devices of each slice of a job: those at the same place are of different slices, which
    have as many processes each, in order.
    """
    at: dict[tuple[Coords, int | None], int] = {}
    for _, _, d, coords in placed:
        at[coords, d.core_on_chip] = at.get((coords, d.core_on_chip), 0) + 1
    slices = max(at.values(), default=1)
    if slices == 1 or processes % slices:
        return [[*placed]]
    each = processes // slices
    return [[*part] for _, part in groupby(placed, lambda p: p[0].process_index // each)]


def missing(x: Slice, placed: int, slices: int) -> list[str]:
    """What is missing of a slice."""
    notes = []
    silent = x.process_count - len(x.hosts)
    if silent > 0:
        is_not = f"{noun(silent, 'is', 'are')} not heard of"
        which = noun(silent, "its chips are", "their chips are")
        notes.append(f"{counted(silent, 'process', 'processes')} {is_not}: {which} not drawn.")
    lost = sum(len(h.devices) for h in x.hosts) - placed
    if lost:
        notes.append(left_out(lost))
    if slices > 1:
        notes.append(IN_ORDER.format(count=slices))
    return notes
