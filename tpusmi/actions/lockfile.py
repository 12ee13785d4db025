"""Removes libtpu's lock file where it is proven to be nobody's, and in the way."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from typing import NamedTuple

from tpusmi.model import LOCK_BLOCKING, LOCK_LOCKED, LOCK_UNKNOWN, Host
from tpusmi.sources.holders import is_inside
from tpusmi.sources.holders.lockfile import PATHS, lock_files
from tpusmi.sources.holders.nodes import Nodes
from tpusmi.sources.holders.scan import Scan


class Cleared(NamedTuple):
    """What became of a lock file."""

    path: str
    removed: bool
    message: str


def clear(host: Host, nodes: Nodes) -> tuple[Cleared, ...]:
    """Remove every lock file that is unlocked, in the way, and of no use to any holder.

    `nodes` are the host's, with their paths there. A file that is missing or harmless is left out.
    """
    scan = Scan(host.path("/proc"), nodes, map(host.path, PATHS))
    try:
        scan.look(time.monotonic())
    except OSError:
        return ()  # who cannot see the holders removes nothing
    found = scan.found()
    sees_all = not (found.hidden or found.hides_others or is_inside(host))
    cleared = []
    for file in lock_files(host, found.files, sees_all):
        if file.state == LOCK_LOCKED or file.state == LOCK_UNKNOWN:
            cleared.append(Cleared(file.path, False, f"kept: {file.message}"))
        elif file.state == LOCK_BLOCKING and found.holders:
            pids = ", ".join(map(str, found.holders))
            cleared.append(Cleared(file.path, False, f"kept: pid {pids} holds the TPU"))
        elif file.state == LOCK_BLOCKING:
            cleared.append(_removed(host, file.path))
    return tuple(cleared)


def _removed(host: Host, path: str) -> Cleared:
    """Remove it while we have its lock: who takes it at the same time keeps it."""
    here = host.path(path)
    try:
        # Without O_CREAT, and never through a link: /tmp is everybody's.
        descriptor = os.open(here, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return Cleared(path, False, f"kept: it cannot be opened ({error.strerror}), try sudo")
    try:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            return Cleared(path, False, "kept: it is no regular file")
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = os.lstat(here)
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino):
            return Cleared(path, False, "kept: it is another file by now")
        os.unlink(here)
    except BlockingIOError:
        return Cleared(path, False, "kept: somebody has locked it in this moment")
    except OSError as error:
        return Cleared(path, False, f"kept: {error.strerror}")
    finally:
        os.close(descriptor)
    return Cleared(path, True, "removed: nobody locked it, and it was in the way")
