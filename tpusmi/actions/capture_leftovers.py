"""Removes what captures have left whose job, or whose viewer, was killed: files of this user that
are older than any capture lasts.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator

from tpusmi.model import Host
from tpusmi.wire import capture_files, places

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_leftovers(host: Host, dry_run: bool) -> tuple[str, ...]:
    """The paths of the files and directories that were removed, or would be."""
    removed: list[str] = []
    for directory in _directories(host):
        try:
            fd = os.open(directory, _DIRECTORY)
        except OSError:
            continue
        try:
            names = [*_leftovers(fd)]
            removed += [f"{directory}/{n}" for n in names if dry_run or _remove(fd, n)]
        finally:
            os.close(fd)
    return tuple(removed)


def _directories(host: Host) -> Iterator[str]:
    """Where this user's agents let JAX write: the user's own directories, and a TPUSMI_DIR."""
    if host.segment_dir is not None:
        yield host.segment_dir
    else:
        me = os.geteuid()
        ours = (d for d in places.directories(host.root) if d.uid == me and not d.trouble)
        yield from (directory.path for directory in ours)


def _leftovers(fd: int) -> Iterator[str]:
    me, now_s = os.geteuid(), time.time()
    with os.scandir(fd) as entries:
        for entry, _ in zip(entries, range(places.ENTRIES_MOST), strict=False):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it was removed
            if capture_files.is_leftover(entry.name, status, me, now_s):
                yield entry.name


def _remove(directory: int, name: str) -> bool:
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            shutil.rmtree(f"/proc/self/fd/{directory}/{name}")
        else:
            os.unlink(name, dir_fd=directory)
    except OSError:
        return False
    return True
