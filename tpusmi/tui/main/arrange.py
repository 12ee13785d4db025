"""How many lines each part of the main page gets, and how its devices are shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tpusmi.tui.feed import View
from tpusmi.tui.page import AROUND

LEAST_DETAIL = 4
"""Fewer lines of details than these tell nothing."""
LEAST_OTHER = 8
"""The details of no other process have fewer lines."""
ROOMY = 32
"""Screens of so many lines have a blank one under each table, and graphs."""
HOST_FROM = 16
"""Screens of so many lines have one about the host."""


class Wanted(NamedTuple):
    """Lines that each part would fill, title rows included; 0 for a part that is not there."""

    devices: Mapping[View, int]
    """Lines of the devices in each view."""
    processes: int
    notices: int
    prompt: int
    detail: int
    graphs: int = 0
    """The least lines that graphs make sense in; they get more where there is room."""
    others: Iterable[int] = ()
    """Of the details of other processes. Looked at as far as there may be room for them."""


class Heights(NamedTuple):
    """Lines that each part gets."""

    view: View
    """Never `auto`."""
    host: int
    devices: int
    graphs: int
    processes: int
    detail: int
    notices: int
    prompt: int


def arrange(want: Wanted, height: int, view: View = View.AUTO) -> Heights:
    """Share a screen: the tables first, then details. The heights add up to the screen's."""
    room = max(0, height - AROUND - want.prompt)
    host = int(height >= HOST_FROM)
    room -= host
    notices = min(want.notices, max(0, room // 8))
    room -= notices
    # Half of the screen is the devices' at least, and all that the processes leave over.
    lower = max(min(want.processes, 4), room // 2 if want.processes else 0)
    most = max(room - lower, min(3, room))
    view = _view(want.devices, most, view)
    devices = min(want.devices[view], most)
    room -= devices
    if not want.processes:
        graphs = _graphs(want, height, room)
        return Heights(view, host, devices, graphs, 0, room - graphs, notices, want.prompt)
    if height >= ROOMY and room - want.processes - _least(want, height, room) > ROOMY // 3:
        devices, room = devices + bool(devices), room - bool(devices)
        want = want._replace(processes=want.processes + 1)
    graphs = _graphs(want, height, room)
    processes, detail = _lower(want, room - graphs)
    return Heights(view, host, devices, graphs, processes, detail, notices, want.prompt)


def _view(devices: Mapping[View, int], most: int, view: View) -> View:
    if view is not View.AUTO:
        return view
    return next((v for v in (View.FULL, View.COMPACT) if devices[v] <= most), View.HEAT)


def _least(want: Wanted, height: int, room: int) -> int:
    """The least that graphs get: they are there where details have room beside them."""
    is_roomy = height >= ROOMY and room - want.processes >= want.graphs + LEAST_DETAIL + 2
    return want.graphs if is_roomy else 0


def _graphs(want: Wanted, height: int, room: int) -> int:
    """Graphs grow into what the details leave over, and large ones leave some to the details of
    other processes.
    """
    least = _least(want, height, room)
    graphs = max(least, room - want.processes - max(want.detail, LEAST_DETAIL)) if least else 0
    for lines in want.others if graphs >= 2 * least + LEAST_OTHER else ():
        if graphs - lines < 2 * least:
            break
        graphs -= lines
    return graphs


def _lower(want: Wanted, room: int) -> tuple[int, int]:
    """Processes and details."""
    if room < 2 + (LEAST_DETAIL if want.detail else 0):
        return room, 0
    spare = room - want.processes
    processes = min(want.processes, max(2, room // 2)) if spare < LEAST_DETAIL else want.processes
    return processes, room - processes
