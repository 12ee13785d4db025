"""Segments among the mounts of another process: listed and opened without going another way."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
import stat
from collections.abc import Callable

from tpusmi.sources import mounts
from tpusmi.sources.mounts import Pointer
from tpusmi.wire import places
from tpusmi.wire.places import Directory, Place


def opener(place: Place) -> Callable[[str, int], int]:
    """How the file of that place is opened."""
    if not place.within:
        return os.open

    def opened(path: str, flags: int) -> int:
        directory, _, name = path.removeprefix(f"{place.within}/root").rpartition("/")
        with (
            mounts.pointed_at(place.within, directory) as parent,
            mounts.pointed_in(place.within, parent, name) as point,
        ):
            return mounts.opened(point, flags)

    return opened


def segments(directory: Directory, most: int) -> places.Found:
    """The segments in a directory there, of its owner, among so many names. Raises OSError."""
    with mounts.pointed_at(directory.within, directory.inner) as point:
        seen = mounts.names(point, most + 1)
        found = [_segment(directory, point, name) for name in seen[:most]]
    return places.Found([place for place in found if place is not None], len(seen))


def _segment(directory: Directory, parent: Pointer, name: str) -> Place | None:
    named = places.named_process(name)
    if named is None:
        return None
    try:
        with mounts.pointed_in(directory.within, parent, name) as point:
            found = os.fstat(point.fd)
    except OSError:
        return None
    if found.st_uid != directory.uid or not stat.S_ISREG(found.st_mode):
        return None
    path = f"{directory.path}/{name}"
    found_there = places.place(path, named, found)
    return found_there._replace(within=directory.within, payer=directory.payer)
