"""How many lines each part of the main page gets, and how its devices are shown. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from tpusmi.tui.feed import DeviceView
from tpusmi.tui.page import AROUND

LEAST_DETAIL = 4
"""The least lines of details worth showing."""
LEAST_OTHER = 8
"""The least lines of the details of another process."""
LEAST_NOTICES = 3
"""Lines for notices on a screen that has so many to spare."""
ROOMY = 32
"""Screens with at least this many lines have graphs, and a blank line below each table."""
HOST_FROM = 16
"""Screens with at least this many lines have one about the host."""


class WantedLines(NamedTuple):
    """Lines that each part would fill, title rows included; 0 for a part that is absent."""

    devices: Mapping[DeviceView, int]
    """Lines of the devices in each view."""
    processes: int
    notices: int
    prompt: int
    detail: int
    graphs: int = 0
    """The least lines for graphs; they get more if there is room."""
    others: Iterable[int] = ()
    """Lines of the details of each other process. Read only as far as there may be room."""
    header: int = 1
    host: int = 1


def without(want: WantedLines, hidden: Collection[str]) -> WantedLines:
    """The same without the hidden panels. Details are a part of the processes."""
    if "header" in hidden:
        want = want._replace(host=0)
    if "devices" in hidden:
        want = want._replace(devices=dict.fromkeys(want.devices, 0))
    if "graphs" in hidden:
        want = want._replace(graphs=0)
    if "processes" in hidden:
        want = want._replace(processes=0, detail=0, others=())
    return want


class Heights(NamedTuple):
    """Lines that each part gets."""

    view: DeviceView
    """Never `auto`."""
    host: int
    devices: int
    graphs: int
    processes: int
    detail: int
    notices: int
    prompt: int


def arrange(want: WantedLines, height: int, view: DeviceView = DeviceView.AUTO) -> Heights:
    """Share a screen: the tables first, then details. The heights add up to the screen's."""
    room = max(0, height - AROUND + 1 - want.header - want.prompt)
    host = int(height >= HOST_FROM) and want.host
    room -= host
    smallest = DeviceView.HEAT if view is DeviceView.AUTO else view
    spare = room - want.processes - want.devices[smallest]
    least = min(LEAST_NOTICES, max(room // 4, spare))
    notices = min(want.notices, max(room // 6, least))
    room -= notices
    # The devices get at least half of the screen, and all that the processes leave over.
    lower = max(min(want.processes, 4), room // 2 if want.processes else 0)
    most = max(room - lower, min(3, room))
    if view is DeviceView.AUTO:
        fitting = (v for v in (DeviceView.FULL, DeviceView.COMPACT) if want.devices[v] <= most)
        view = next(fitting, DeviceView.HEAT)
    devices = min(want.devices[view], most)
    room -= devices
    spare = room - want.processes - _least(want, height, room)
    if want.processes and height >= ROOMY and spare > ROOMY // 3:
        devices, room = devices + bool(devices), room - bool(devices)
        want = want._replace(processes=want.processes + 1)
    graphs = _graphs(want, height, room)
    processes, detail = _lower(want, room - graphs)
    return Heights(
        view=view,
        host=host,
        devices=devices,
        graphs=graphs,
        processes=processes,
        detail=detail,
        notices=notices,
        prompt=want.prompt,
    )


def _least(want: WantedLines, height: int, room: int) -> int:
    """The least lines of graphs, 0 where details would have no room beside them."""
    if not want.processes and not want.detail:  # hidden
        return want.graphs if room >= want.graphs else 0
    is_roomy = height >= ROOMY and room - want.processes >= want.graphs + LEAST_DETAIL + 2
    return want.graphs if is_roomy else 0


def _graphs(want: WantedLines, height: int, room: int) -> int:
    """Lines of graphs: what the details leave over. Large graphs leave some of it to the details
    of other processes.
    """
    least = _least(want, height, room)
    detail = max(want.detail, LEAST_DETAIL) if want.detail or want.processes else 0
    graphs = max(least, room - want.processes - detail) if least else 0
    for lines in want.others if graphs >= 2 * least + LEAST_OTHER else ():
        if graphs - lines < 2 * least:
            break
        graphs -= lines
    return graphs


def _lower(want: WantedLines, room: int) -> tuple[int, int]:
    """Lines of processes and of details."""
    if not want.processes:
        return 0, room
    if room < 2 + (LEAST_DETAIL if want.detail else 0):
        return room, 0
    spare = room - want.processes
    processes = min(want.processes, max(2, room // 2)) if spare < LEAST_DETAIL else want.processes
    return processes, room - processes
