"""How many lines each part of the screen gets. Pure."""

from __future__ import annotations

from typing import NamedTuple

AROUND = 2
"""The header and the footer."""
LEAST_DETAIL = 4
"""Fewer lines of details than these tell nothing."""

ROOMY = 32
"""Screens of so many lines have a blank one under each table."""


class Wanted(NamedTuple):
    """Lines that each part would fill, title rows included; 0 for a part that is not there."""

    devices: int
    processes: int
    notices: int
    prompt: int
    detail: bool
    expanded: bool


class Heights(NamedTuple):
    """Lines that each part gets."""

    devices: int
    processes: int
    detail: int
    notices: int
    prompt: int


def arrange(want: Wanted, height: int) -> Heights:
    """Share a screen: the tables first, then details. The heights add up to the screen's."""
    room = max(0, height - AROUND - want.prompt)
    notices = min(want.notices, max(0, room // 8))
    room -= notices
    # Half of the screen is the devices' at least, and all that the processes leave over.
    lower = max(min(want.processes, 4), room // 2 if want.processes else 0)
    devices = min(want.devices, max(room - lower, min(3, room)))
    room -= devices
    if want.expanded or not want.processes:
        return Heights(devices, 0, room, notices, want.prompt)
    if height >= ROOMY and room - want.processes > ROOMY // 2:
        devices, room = devices + bool(devices), room - bool(devices)
        want = want._replace(processes=want.processes + 1)
    spare = room - want.processes
    if room < 2 + (LEAST_DETAIL if want.detail else 0):
        return Heights(devices, room, 0, notices, want.prompt)
    processes = min(want.processes, max(2, room // 2)) if spare < LEAST_DETAIL else want.processes
    return Heights(devices, processes, room - processes, notices, want.prompt)
