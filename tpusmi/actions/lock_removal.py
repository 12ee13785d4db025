"""Removes libtpu's lock file where it is proven that no process locks it, and it is in the way."""

from __future__ import annotations

import fcntl
import os
import stat
from typing import NamedTuple

from tpusmi.model import Host, LockFile, LockState
from tpusmi.sources.holders.lockfile import lock_files
from tpusmi.sources.holders.passes import is_inside
from tpusmi.sources.holders.scan import ScanResult


class Cleared(NamedTuple):
    """What became of a lock file."""

    path: str
    removed: bool
    message: str


def clear(host: Host, scanned: ScanResult) -> tuple[Cleared, ...]:
    """Remove every lock file that is unlocked, in the way, and of no use to any holder.

    `scanned` is the result of a full scan a moment ago. A missing or harmless file is left out of
    the answer.
    """
    sees_all = not (scanned.hides_others or is_inside(host))
    return tuple(
        _cleared(host, file, scanned)
        for file in lock_files(host, scanned.lock_files, sees_all)
        if file.state in (LockState.LOCKED, LockState.UNKNOWN, LockState.BLOCKING)
    )


def _cleared(host: Host, file: LockFile, scanned: ScanResult) -> Cleared:
    kept = "" if file.state == LockState.BLOCKING else file.message
    if not kept and scanned.holders:
        kept = f"pid {', '.join(map(str, scanned.holders))} holds the TPU"
    elif not kept and scanned.hidden:
        kept = "a process that could not be inspected may hold the TPU"
    return Cleared(file.path, False, f"kept: {kept}") if kept else _removed(host, file.path)


def _removed(host: Host, path: str) -> Cleared:
    """Remove it while we have its lock: a process that takes the lock at the same time keeps it."""
    here = host.path(path)
    try:
        # Without O_CREAT, and never through a link: any user can write to /tmp.
        descriptor = os.open(here, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return Cleared(path, False, f"kept: it cannot be opened ({error.strerror}), try sudo")
    try:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            return Cleared(path, False, "kept: not a regular file")
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = os.lstat(here)
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino):
            return Cleared(path, False, "kept: it is now another file")
        os.unlink(here)
    except BlockingIOError:
        return Cleared(path, False, "kept: another process has just locked it")
    except OSError as error:
        return Cleared(path, False, f"kept: {error.strerror}")
    finally:
        os.close(descriptor)
    return Cleared(path, True, "removed: not locked, and in the way")
