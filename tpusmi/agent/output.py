"""Where the agent's segment goes: a private directory with room, old segments of the same user
removed.
"""

from __future__ import annotations

import os
import stat
import time

from tpusmi.wire import places
from tpusmi.wire.layout import Identity, plan
from tpusmi.wire.writer import SegmentWriter

KEEP_DEAD_S = 24 * 3600.0
KEEP_DEAD_MOST = 8
"""A script restarted a thousand times a day must not fill /dev/shm with its black boxes."""


def create(who: Identity, devices: int, override: str | None, mode: int = 0o644) -> SegmentWriter:
    """A new segment of this process in the best directory that takes it.

    Raises OSError when none does.
    """
    refusals: list[str] = []
    for directory in places.directories_for(who.uid, override):
        try:
            _prepare(directory, who.uid, trusted=override is not None)
            path = f"{directory}/{who.pid}-{who.start_ticks}{places.SUFFIX}"
            return SegmentWriter(path, plan(who, devices, time.monotonic(), time.time()), mode)
        except OSError as error:
            refusals.append(f"{directory}: {error.strerror or error}")
    raise OSError("; ".join(refusals))


def remove_old(who: Identity, directory: str) -> None:
    """Remove this user's dead segments that are older than a day, and all but the newest few of
    the rest.
    """
    dead = []
    for place in places.segments(directory, who.uid):
        try:
            found = os.lstat(place.path)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_uid == who.uid and not _may_live(place):
            dead.append((found.st_mtime, place.path))
    now = time.time()
    for rank, (written, path) in enumerate(sorted(dead, reverse=True)):
        if rank >= KEEP_DEAD_MOST or now - written > KEEP_DEAD_S:
            _unlink(path)


def discard(writer: SegmentWriter) -> None:
    """Close a segment and remove its file."""
    writer.close()
    _unlink(writer.path)


def _prepare(directory: str, uid: int, trusted: bool) -> None:
    """Make the directory if need be.

    One of ours must be ours alone; a TPUSMI_DIR is the user's own affair.
    """
    if trusted:
        os.makedirs(directory, exist_ok=True)
        return
    try:
        os.mkdir(directory, 0o755)
        os.chmod(directory, 0o755)
    except FileExistsError:
        pass
    if not places.is_private(directory, uid):
        raise PermissionError(0, "is not a directory of this user alone")


def _may_live(place: places.Place) -> bool:
    """False when the segment's process is surely gone.

    Its name in a segment of another pid namespace means nothing here, but a live agent writes
    every few seconds.
    """
    if places.start_ticks("/proc", place.pid) == place.start_ticks:
        return True
    try:
        return time.time() - os.stat(place.path).st_mtime < 60.0
    except OSError:
        return False


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
