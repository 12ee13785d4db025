"""Where the agent's segment goes: a private directory with room. Old segments of the same user are
removed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from tpusmi.model import PHASES, Phase
from tpusmi.wire import identity, lock, places
from tpusmi.wire.layout import Header, Identity, SegmentError, plan
from tpusmi.wire.reader import SegmentReader
from tpusmi.wire.writer import SegmentWriter

KEEP_DEAD_S = 24 * 3600.0
KEEP_DEAD_MOST = 8
"""How many dead segments are kept: a script that is restarted a thousand times a day must not fill
/dev/shm with its black boxes.
"""
ENDED = PHASES.index(Phase.ENDED)
HALF_SUFFIX = f"{places.SUFFIX}.new"
HALF_S = 1.0
"""A file is locked within less than this after it was made."""
SWEEP_CPU_S = 0.25
"""CPU time for cleaning a directory; the rest is left to the next start."""
EMPTY_S = 3600.0
"""An empty directory older than this is not one that another process has just made."""
_ONCE_MORE = (FileNotFoundError, FileExistsError, IsADirectoryError, PermissionError)


def create(
    who: Identity,
    devices: int,
    override: str | None,
    mode: int = 0o644,
    fill: Callable[[SegmentWriter], None] | None = None,
    processes: int = 1,
) -> SegmentWriter:
    """A new segment of this process, of a job of so many, in the best directory that has room,
    filled by `fill`.

    Raises OSError when none does.
    """
    header = plan(who, devices, time.monotonic(), time.time(), processes)
    refusals: list[str] = []
    for directory in [override] if override else _directories(who.uid):
        is_taken = False
        for is_last in (False, True):
            try:
                prepare(directory, who.uid, trusted=override is not None)
                return SegmentWriter(_free_name(directory, who, is_taken), header, mode, fill)
            except _ONCE_MORE as error:
                # The directory, or the file, may have been removed in this very moment; and in one
                # that users share, another user may have taken the name.
                is_taken = not isinstance(error, FileNotFoundError)
                if is_last:
                    refusals.append(f"{directory}: {error.strerror or error}")
            except OSError as error:
                refusals.append(f"{directory}: {error.strerror or error}")
                break
    raise OSError("; ".join(refusals))


def remove_old(who: Identity, directory: str) -> None:
    """Remove this user's dead segments that are older than a day, and all but the newest few of
    the rest; and empty directories of its own beside this one.
    """
    try:
        segments, _ = places.segments(directory, who.uid)
    except OSError:
        return
    now = time.time()
    until_s = time.thread_time() + SWEEP_CPU_S
    newest_first = sorted(segments, key=lambda place: -place.written_s)
    kept = 0
    for place in newest_first:
        if time.thread_time() > until_s:
            break
        if is_dead(place, who):
            kept += 1
            if kept > KEEP_DEAD_MOST or now - place.written_s > KEEP_DEAD_S:
                _unlink(place.path)
    _remove_halves(directory, who.uid, now, until_s)
    if places.user_in_name(os.path.basename(directory)) == who.uid:
        _remove_empty(who.uid, os.path.dirname(directory), now)


def is_dead(place: places.SegmentFile, who: Identity) -> bool:
    """True when the process of that segment has surely ended, or has let go of it.

    The lock decides. Where there is none to see, a pid of another pid namespace or machine means
    nothing here, but a live agent writes every few seconds.
    """
    try:
        reader = SegmentReader(place.path)
    except SegmentError:  # damaged, or cannot even be opened
        answer = _status_and_lock(place.path)
        return answer is not None and not answer[1] and not _runs(place) and _is_old(place)
    h = reader.header
    try:
        is_locked, is_near = reader.is_locked(), _is_of_machine(h, who)
        if is_locked or (is_locked is False and is_near):
            return not is_locked
        if is_near and h.pid_namespace == who.pid_namespace:
            return not _runs(place)
        return not _runs(place) and (_has_ended(reader) or _is_old(place))
    finally:
        reader.close()


def _is_of_machine(h: Header, who: Identity) -> bool:
    """True when it was made on this machine, where its lock can be seen, since it was started."""
    if any(h.boot_id) and any(who.boot_id):
        return h.boot_id == who.boot_id
    return h.pid_namespace == who.pid_namespace


def _runs(place: places.SegmentFile) -> bool:
    """True also where that cannot be found out, as without a free descriptor."""
    try:
        return identity.start_ticks_if_there("/proc", place.pid) == place.start_ticks
    except OSError:
        return True


def _is_old(place: places.SegmentFile) -> bool:
    return time.time() - place.written_s >= places.RECENT_S


def _has_ended(reader: SegmentReader) -> bool:
    """True when its newest sample says so."""
    try:
        sample = reader.newest()
    except SegmentError:
        return False
    return sample is not None and sample.process.get("phase") == ENDED


def _free_name(directory: str, who: Identity, is_taken: bool = False) -> str:
    """The path of the segment in that directory: an unpredictable one if the usual one is taken,
    by a living process or, in a directory that users share, by another user.
    """
    path = f"{directory}/{places.segment_name(who.pid, who.start_ticks)}"
    by_others = any(_is_of_another(name, who.uid) for name in (path, f"{path}.new"))
    if not (is_taken or by_others or _is_of_living(path, who)):
        return path
    return f"{directory}/{places.segment_name(who.pid, who.start_ticks, os.urandom(8).hex())}"


def _is_of_another(path: str, uid: int) -> bool:
    """True for a file that only another user may remove, where the directory is like /tmp."""
    try:
        return os.lstat(path).st_uid != uid
    except OSError:
        return False


def _is_of_living(path: str, who: Identity) -> bool:
    """True when another process that lives has its segment there."""
    try:
        reader = SegmentReader(path)
    except SegmentError:
        return False
    try:
        return reader.header[: len(who)] != who and reader.is_locked() is True
    finally:
        reader.close()


def _directories(uid: int) -> Iterator[str]:
    """Where that user's agents may write, best first. In a place that all users share, another user
    may have taken a predictable name: then an unpredictable one.
    """
    for base in places.bases(uid):
        usual = f"{base}/{places.directory_name(uid)}"
        is_taken = usual in places.never_answering("/proc")
        if not is_taken:
            yield usual
        if is_taken or (os.path.lexists(usual) and not places.is_private(usual, uid)):
            yield from _own_by_chance(uid, base)
            yield f"{base}/{places.directory_name(uid, os.urandom(8).hex())}"


def _own_by_chance(uid: int, base: str) -> list[str]:
    """The directories of this user there with unpredictable names."""
    paths = (f"{base}/{name}" for name in places.names(base, places.ENTRIES_MOST) if "." in name)
    named = [path for path in paths if places.user_in_name(os.path.basename(path)) == uid]
    taken = places.never_answering("/proc") if named else {}
    own = [path for path in named if path not in taken and places.is_private(path, uid)]
    return own[: places.OF_USER_MOST]


def prepare(directory: str, uid: int, trusted: bool) -> None:
    """Make the directory if need be.

    A directory of ours must belong to us alone; a TPUSMI_DIR is the user's own choice.
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


def _remove_halves(directory: str, uid: int, now: float, until_s: float) -> None:
    """Remove the files of that user's processes that were killed while they made a segment."""
    for name in places.names(directory, places.ENTRIES_MOST):
        if time.thread_time() > until_s:
            break
        path = f"{directory}/{name}"
        if name.endswith(HALF_SUFFIX) and _is_left_half(path, uid, now):
            _unlink(path)


def _is_left_half(path: str, uid: int, now: float) -> bool:
    """False while a process is making it. A file with a size was locked before it got that size; an
    empty one may have been made just now.
    """
    if (answer := _status_and_lock(path)) is None:
        return False
    status, is_held = answer
    least_s = places.RECENT_S if is_held is None else 0.0 if status.st_size else HALF_S
    return status.st_uid == uid and not is_held and now - status.st_mtime >= least_s


def _status_and_lock(path: str) -> tuple[os.stat_result, bool | None] | None:
    """A file, and whether a process holds its lock; None when it cannot be opened."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.fstat(fd), lock.is_held(fd)
    finally:
        os.close(fd)


def _remove_empty(uid: int, base: str, now: float) -> None:
    """Remove directories with unpredictable names that no process uses any longer."""
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
