"""Forgets ended jobs: removes the segments of processes that have certainly ended, and no others.

The viewer's own judgment comes first. Right before a file is removed, it is opened, proven to be
the one that was judged, and its lock is asked for once more: a lock that is held is a living agent.
"""

from __future__ import annotations

import os
import stat
import time
from typing import NamedTuple

from tpusmi.actions.capture_leftovers import remove_leftovers
from tpusmi.model import Host, Process, State
from tpusmi.sources.segments import Segments
from tpusmi.sources.segments.job_report import Judged
from tpusmi.wire import lock
from tpusmi.wire.places import RECENT_S, SegmentFile

READS_MOST = 64
"""One read shows a few hundred segments of a user. Where that is not all, there is another one."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Forgotten(NamedTuple):
    """What became of the segment of a job that has ended, or may have."""

    path: str
    process: Process
    removed: bool
    why: str
    """Why it was kept; empty for one that was removed, and for one that would be."""
    failed: bool = False
    """True where it should have been removed and could not be."""


class Clearing(NamedTuple):
    """What became of the segments of all ended jobs."""

    done: bool
    """False where it only says what would be removed."""
    files: tuple[Forgotten, ...] = ()
    living: int = 0
    """Jobs that live: their segments are in use."""
    of_others: int = 0
    """Ended jobs of other users, which only those and root may forget."""
    unread: str = ""
    """What could not be read, in words: it may include segments of ended jobs."""
    captures: tuple[str, ...] = ()
    """Files of old captures that were removed, or would be."""

    @property
    def removed(self) -> tuple[Forgotten, ...]:
        """Files that were removed, or would be."""
        return tuple(f for f in self.files if f.removed)

    @property
    def kept(self) -> tuple[Forgotten, ...]:
        """Files that were left, each with the reason."""
        return tuple(f for f in self.files if not f.removed)


def forget(host: Host, dry_run: bool = False) -> Clearing:
    """Remove the segments of this user's ended jobs; as root, those of all users."""
    segments = Segments(host)
    removed: list[Forgotten] = []
    try:
        for _ in range(1 if dry_run else READS_MOST):
            clearing = _look(segments, dry_run)
            removed += clearing.removed
            if not clearing.removed or not clearing.unread:
                break
    finally:
        segments.close()
    captures = remove_leftovers(host, dry_run)
    return clearing._replace(files=(*removed, *clearing.kept), captures=captures)


def _look(segments: Segments, dry_run: bool) -> Clearing:
    """Remove those that one read shows."""
    outcome = segments.read(time.monotonic())
    judged = segments.judged()
    me = os.geteuid()
    own = [j for j in judged if me in (0, j.file.uid)]
    return Clearing(
        done=not dry_run,
        files=tuple(_forgotten(j, dry_run) for j in own if not j.process.is_living),
        living=sum(j.process.is_living for j in own),
        of_others=sum(j.process.state == State.DEAD for j in judged if me not in (0, j.file.uid)),
        unread="; ".join(outcome.notes),
    )


def _forgotten(judged: Judged, dry_run: bool) -> Forgotten:
    kept = _doubt(judged)
    if kept or dry_run:
        return _answer(judged, kept)
    try:
        kept, failed = _removed(judged), False
    except FileNotFoundError:
        kept, failed = "is gone already", False
    except OSError as error:
        kept, failed = f"cannot be removed: {error.strerror or error}", True
    return _answer(judged, kept, failed)


def _answer(judged: Judged, kept: str, failed: bool = False) -> Forgotten:
    return Forgotten(
        path=judged.file.path, process=judged.process, removed=not kept, why=kept, failed=failed
    )


def _doubt(judged: Judged) -> str:
    """Why the file is kept; empty where its process has certainly ended."""
    if judged.process.state != State.DEAD:
        return "nothing proves that its process has ended"
    if judged.evidence.is_locked:
        return "a process still has it locked"
    if judged.evidence.is_alive is not False and judged.evidence.is_locked is None:
        return "nothing proves that its process has ended"
    if judged.evidence.is_alive is not False and _may_be_written(judged):
        return "it was written within the last minute, perhaps by a virtual machine: try again"
    if judged.file.within:
        return "it is among the mounts of another process: clear it from there"
    return ""


def _may_be_written(judged: Judged) -> bool:
    """Whether a machine whose locks our kernel does not know, as gVisor is one, may still write to
    it: a living agent writes often.
    """
    return not judged.is_of_this_boot and time.time() - judged.file.written_s < RECENT_S


def _removed(judged: Judged) -> str:
    """Remove it; why it was kept, or empty. Raises OSError."""
    parent, name = os.path.split(judged.file.path)
    directory = os.open(parent, _DIRECTORY)
    try:
        fd = os.open(name, lock.TO_ASK, dir_fd=directory)
        try:
            kept = _change(judged.file, os.fstat(fd)) or _held(judged, fd)
            named = os.stat(name, dir_fd=directory, follow_symlinks=False)
            kept = kept or _change(judged.file, named)
            if not kept:
                os.unlink(name, dir_fd=directory)
        finally:
            os.close(fd)
    finally:
        os.close(directory)
    return kept


def _held(judged: Judged, fd: int) -> str:
    """Why the lock keeps it. Where the lock proves nothing, /proc has decided."""
    is_held = lock.is_held(fd)
    if is_held or (is_held is None and judged.evidence.is_alive is not False):
        return "a process may have it locked now"
    return ""


def _change(file: SegmentFile, status: os.stat_result) -> str:
    is_same = (status.st_dev, status.st_ino, status.st_uid) == (*file.identity, file.uid)
    return "" if is_same and stat.S_ISREG(status.st_mode) else "it is now another file"
