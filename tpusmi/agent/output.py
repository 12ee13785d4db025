"""Where the agent's segment goes: a private directory with room, old segments of the same user
removed.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator

from tpusmi.wire import places
from tpusmi.wire.layout import HEADER, PREAMBLE, Header, Identity, plan
from tpusmi.wire.writer import SegmentWriter

KEEP_DEAD_S = 24 * 3600.0
KEEP_DEAD_MOST = 8
"""A script restarted a thousand times a day must not fill /dev/shm with its black boxes."""
HALF_SUFFIX = f"{places.SUFFIX}.new"
WRITES_EVERY_S = 60.0
"""A live agent does so more often."""
EMPTY_S = 3600.0
"""So old, an empty directory is not one that another process has made this moment."""


def create(who: Identity, devices: int, override: str | None, mode: int = 0o644) -> SegmentWriter:
    """A new segment of this process in the best directory that takes it.

    Raises OSError when none does.
    """
    refusals: list[str] = []
    for directory in [override] if override else _directories(who.uid):
        try:
            _prepare(directory, who.uid, trusted=override is not None)
            path = f"{directory}/{who.pid}-{who.start_ticks}{places.SUFFIX}"
            return SegmentWriter(path, plan(who, devices, time.monotonic(), time.time()), mode)
        except OSError as error:
            refusals.append(f"{directory}: {error.strerror or error}")
    raise OSError("; ".join(refusals))


def remove_old(who: Identity, directory: str) -> None:
    """Remove this user's dead segments that are older than a day, and all but the newest few of
    the rest; and empty directories of its own beside this one.
    """
    try:
        found = places.segments(directory, who.uid).places
    except OSError:
        return
    dead = [place for place in found if not _may_live(place, who)]
    now = time.time()
    for rank, place in enumerate(sorted(dead, key=lambda place: -place.written_s)):
        if rank >= KEEP_DEAD_MOST or now - place.written_s > KEEP_DEAD_S:
            _unlink(place.path)
    _remove_halves(directory, now)
    if places.user_in_name(os.path.basename(directory)) == who.uid:
        _remove_empty(who.uid, os.path.dirname(directory), now)


def discard(writer: SegmentWriter) -> None:
    """Close a segment and remove its file."""
    writer.close()
    _unlink(writer.path)


def _directories(uid: int) -> Iterator[str]:
    """Where that user's agents may write, best first. Another user may have taken a name that can
    be foreseen, in a place where everybody may make one: then a name that cannot.
    """
    for base in places.bases(uid):
        usual = f"{base}/{places.directory_name(uid)}"
        yield usual
        if os.path.lexists(usual) and not places.is_private(usual, uid):
            yield from _own_by_chance(uid, base)
            yield f"{base}/{places.directory_name(uid, os.urandom(8).hex())}"


def _own_by_chance(uid: int, base: str) -> list[str]:
    """The directories of this user there whose names nobody could foresee."""
    found = (f"{base}/{name}" for name in places.names(base, places.ENTRIES_MOST) if "." in name)
    own = (path for path in found if places.user_in_name(os.path.basename(path)) == uid)
    return [path for path in own if places.is_private(path, uid)][: places.OF_USER_MOST]


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


def _may_live(place: places.Place, who: Identity) -> bool:
    """False when the segment's process is surely gone.

    In a segment of another pid namespace its number means nothing here, but a live agent writes
    every few seconds.
    """
    if places.start_ticks("/proc", place.pid) == place.start_ticks:
        return True
    if _pid_namespace(place.path) == who.pid_namespace:
        return False
    return time.time() - place.written_s < WRITES_EVERY_S


def _pid_namespace(path: str) -> int | None:
    """The pid namespace in a segment's header; None when that cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return Header(*HEADER.unpack(os.pread(fd, HEADER.size, PREAMBLE.size))).pid_namespace
    except (OSError, struct.error):
        return None
    finally:
        os.close(fd)


def _remove_halves(directory: str, now: float) -> None:
    """Remove what processes left that were ended while they made a segment."""
    for name in places.names(directory, places.ENTRIES_MOST):
        path = f"{directory}/{name}"
        try:
            if name.endswith(HALF_SUFFIX) and now - os.lstat(path).st_mtime > WRITES_EVERY_S:
                os.unlink(path)
        except OSError:
            pass


def _remove_empty(uid: int, base: str, now: float) -> None:
    """Remove what `_directories` has made by chance and nobody uses any more."""
    for path in _own_by_chance(uid, base):
        try:
            if now - os.lstat(path).st_mtime > EMPTY_S:
                os.rmdir(path)  # refused where there is a segment
        except OSError:
            pass


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
