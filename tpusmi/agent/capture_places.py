"""Where the agent lets JAX write a trace: a private directory in a place with room, and what was
left over from captures of processes that were killed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from tpusmi.agent.output import prepare
from tpusmi.wire import capture_files, places

ROOM_LEAST_BYTES = 64 * 2**20
"""Free room without which no capture begins: traces of a second take tens of megabytes, and the
job also needs room.
"""
ROOM_AMPLE_BYTES = 1024 * 2**20
"""A place with this much room is taken, also where another has more."""


class NoRoomError(OSError):
    """No place has the room for a trace."""


def make_folder(segment_path: str, nonce: str, uid: int, override: str | None) -> str:
    """A new directory for that capture, which only this user may enter. Raises OSError."""
    name = capture_files.folder_name(segment_path, nonce)
    hanging = places.never_answering("/proc")
    parents = [p for p in dict.fromkeys(_parents(uid, override)) if p not in hanging]
    rooms = [(_room(p), p) for p in parents if _is_printable(p)]
    ample = [parent for room, parent in rooms if room >= ROOM_AMPLE_BYTES]
    others = [p for room, p in sorted(rooms, reverse=True) if room >= ROOM_LEAST_BYTES]
    trouble = f"no place has {ROOM_LEAST_BYTES >> 20} MiB for a trace"
    for parent in dict.fromkeys((*ample, *others)):
        try:
            prepare(parent, uid, trusted=parent == override)
            if not capture_files.is_safe_place(parent, uid):
                raise PermissionError(0, "other users can replace it")
            path = os.path.realpath(f"{parent}/{name}")
            os.mkdir(path, 0o700)
            os.chmod(path, 0o700)  # the job may have any umask
            return path
        except OSError as error:
            trouble = f"{parent}: {error.strerror or error}"
    raise NoRoomError(0, trouble)


def remove_folder(path: str, override: str | None) -> None:
    """Remove it with all that is in it, and the directory that was made for it. No link is
    followed, the path itself included. Raises nothing.
    """
    if not os.path.islink(path):
        remove_file(f"{path}/{capture_files.TRACE_NAME}")  # also without a free descriptor
    try:
        for _, folders, files, directory in os.fwalk(path, topdown=False):
            for name in files:
                remove_file(name, directory)
            for name in folders:
                remove_file(name, directory)  # a link to one
                _remove_directory(name, directory)
    except OSError:
        pass  # it is gone
    _remove_directory(path)
    parent = os.path.dirname(path)
    if parent != override and places.user_in_name(os.path.basename(parent)) is not None:
        _remove_directory(parent)  # refused where there is another file; agents make it again


def sweep(segment_path: str, uid: int, override: str | None) -> None:
    """Remove what captures of killed processes have left; not where another user can have put it.
    Raises nothing.
    """
    now_s = time.time()
    directories = dict.fromkeys((os.path.dirname(segment_path), *_parents(uid, override)))
    hanging = places.never_answering("/proc")
    for directory in directories:
        if directory in hanging or not capture_files.is_safe_place(directory, uid):
            continue
        for name in places.names(directory, places.ENTRIES_MOST):
            path = f"{directory}/{name}"
            try:
                is_left = capture_files.is_leftover(name, os.lstat(path), uid, now_s)
            except OSError:
                continue
            if is_left and name.endswith(capture_files.FOLDER):
                remove_folder(path, override)
            elif is_left:
                remove_file(path)


def remove_file(path: str, directory: int | None = None) -> None:
    """Remove it if it is there, in an open directory if one is given. Raises nothing."""
    try:
        os.unlink(path, dir_fd=directory)
    except OSError:
        pass


def _remove_directory(path: str, directory: int | None = None) -> None:
    try:
        os.rmdir(path, dir_fd=directory)
    except OSError:
        pass


def _parents(uid: int, override: str | None) -> Iterator[str]:
    """Places for traces, best first: a disk, since shared memory is part of the job's memory."""
    if override is not None:
        yield override
    name = places.directory_name(uid)
    temporary = os.environ.get("TMPDIR", "")
    if os.path.isabs(temporary):
        yield f"{temporary.rstrip('/')}/{name}"
    yield from (f"{base}/{name}" for base in reversed(places.bases(uid)))


def _is_printable(parent: str) -> bool:
    """True if the agent can name it to a viewer, without the links on its way."""
    return os.path.realpath(parent).isprintable()


def _room(parent: str) -> int:
    """Free bytes for this user where that directory is, or would be; 0 where that is unknown."""
    for path in (parent, os.path.dirname(parent)):
        try:
            status = os.statvfs(path)
        except OSError:
            continue
        return status.f_bavail * status.f_frsize if status.f_blocks else ROOM_AMPLE_BYTES
    return 0
