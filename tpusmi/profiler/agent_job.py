"""The files through which a job's agent takes requests, found by its pid and opened with care.

The kernel has proven which process wrote the segment; the files beside it count if its user owns
them. Root opens those of others by no link, and on local file systems only.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tpusmi.model import Host, Process, State
from tpusmi.sources import mounts
from tpusmi.sources.mounts import Pointer
from tpusmi.sources.segments import Segments
from tpusmi.sources.segments.job_report import Judged
from tpusmi.sources.segments.listing import opener
from tpusmi.trace.troubles import CaptureError, Trouble
from tpusmi.wire import capture_files, identity, places
from tpusmi.wire.capture_files import DIRECTORY, READ
from tpusmi.wire.capture_messages import AgentRequest
from tpusmi.wire.layout import Header, SegmentError
from tpusmi.wire.places import SegmentFile
from tpusmi.wire.reader import SegmentReader


class AgentJob(NamedTuple):
    """A living job whose segment the kernel has proven to be its own."""

    host: Host
    pid: int
    start_ticks: int
    file: SegmentFile
    process: Process
    header: Header
    """As the agent wrote it: pid, start and pid namespace are those that the job itself sees."""
    captures: int | None
    """The version of the requests that it serves; 0 where it forbids them, None where its agent is
    too old to know them.
    """

    @property
    def uid(self) -> int:
        """Its user."""
        return self.file.uid

    def is_alive(self) -> bool:
        """False once it has ended."""
        return identity.start_ticks(self.host.path("/proc"), self.pid) == self.start_ticks

    def reader(self) -> SegmentReader:
        """Its segment, opened. Raises SegmentError."""
        return SegmentReader(self.file.path, opener(self.file))


def find(host: Host, pid: int) -> AgentJob:
    """The job of that pid. Raises CaptureError where there is none with an agent."""
    segments = Segments(host)
    try:
        outcome = segments.read(time.monotonic())
        judged = [j for j in segments.judged() if j.process.key.pid == pid]
    finally:
        segments.close()
    proven = [j for j in judged if j.evidence.process is not None and j.process.is_living]
    if not proven:
        raise _absent(host, pid, judged, outcome.notes)
    newest = max(proven, key=lambda j: (bool(j.evidence.is_locked), j.file.written_s))
    return _opened(host, newest)


def _opened(host: Host, judged: Judged) -> AgentJob:
    file, process = judged.file, judged.process
    try:
        reader = SegmentReader(file.path, opener(file))
    except SegmentError as error:
        why = f"the segment of process {process.pid} {error}"
        raise CaptureError(Trouble.FAILED, why) from None
    try:
        header, facts = reader.header, reader.facts()[1]
    except SegmentError:
        facts = {}
    finally:
        reader.close()
    captures = facts.get("captures")
    is_number = isinstance(captures, int) and not isinstance(captures, bool)
    return AgentJob(
        host=host,
        pid=process.pid,
        start_ticks=process.key.start_ticks,
        file=file,
        process=process,
        header=header,
        captures=captures if is_number else None,
    )


def _absent(host: Host, pid: int, judged: list[Judged], notes: tuple[str, ...]) -> CaptureError:
    if identity.start_ticks(host.path("/proc"), pid) is None:
        if any(j.process.state == State.DEAD for j in judged):
            return CaptureError(Trouble.ABSENT, f"process {pid} has ended")
        return CaptureError(Trouble.ABSENT, f"there is no process {pid} here")
    if any(j.process.is_living for j in judged):
        why = f"nothing proves that the segment that names process {pid} is its own"
        return CaptureError(Trouble.DENIED, why)
    unread = f" (not everything could be read: {notes[0]})" if notes else ""
    return CaptureError(
        Trouble.ABSENT, f"process {pid} has no agent: call tpusmi.start() in it{unread}"
    )


class JobDirectory:
    """The directory of a job's segment, open."""

    def __init__(self, job: AgentJob, point: Pointer) -> None:
        self._job = job
        self._point = point
        self._is_careful = bool(job.file.within) or os.geteuid() != job.uid
        self._process = job.file.within or "/proc/self"

    @property
    def fd(self) -> int:
        """Its descriptor, for calls with `dir_fd`."""
        return self._point.fd

    def is_safe(self) -> bool:
        """True where only the user of the job and root can replace files."""
        return capture_files.is_safe_directory(os.fstat(self.fd), self._job.uid)

    def open(self, path: str, flags: int) -> int:
        """A regular file at that path in the directory, or one below it. Raises OSError."""
        if not self._is_careful:
            return os.open(path, flags, dir_fd=self.fd)
        above, _, name = path.rpartition("/")
        if not above:
            with mounts.pointed_in(self._process, self._point, name) as point:
                return mounts.opened(point, flags)
        with (
            mounts.pointed_in(self._process, self._point, above) as parent,
            mounts.pointed_in(self._process, parent, name) as point,
        ):
            return mounts.opened(point, flags)

    def open_trace(self, path: str) -> int:
        """The trace at that path: in the directory, or, where it is absolute, among what the job
        sees. Raises OSError, also where it is not a file of the job's user.
        """
        fd = self._open_absolute(path) if os.path.isabs(path) else self.open(path, READ)
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode) and (status.st_uid, status.st_nlink) == (self._job.uid, 1):
            return fd
        os.close(fd)
        raise mounts.NotFollowedError(0, "is not a file of the user of the job")

    def _open_absolute(self, path: str) -> int:
        process = self._other_mounts()
        if process is None and not self._is_careful:
            return os.open(path, READ)
        with mounts.pointed_at(process or "/proc/self", path) as point:
            return mounts.opened(point, READ)

    def _other_mounts(self) -> str | None:
        """The job, /proc/PID, where it sees other mounts than we do; else None."""
        if self._job.host.root != "/":
            return None
        process = f"/proc/{self._job.pid}"
        theirs = mounts.namespace(process, "mnt")
        is_other = theirs is not None and theirs != mounts.namespace("/proc/self", "mnt")
        return process if is_other else None

    def write_request(self, request: AgentRequest) -> tuple[int, int]:
        """Write the request, as the user of the job; the device and inode of its file. Raises
        FileExistsError where there is one, and other OSErrors.
        """
        path, uid = self._job.file.path, self._job.uid
        with as_user(uid, os.fstat(self.fd).st_gid):
            return capture_files.write_request(self.fd, path, request, uid)

    def remove(self, name: str) -> None:
        """Remove a file in it, if it is there. Raises nothing."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except OSError:
            pass

    def remove_same(self, name: str, file: tuple[int, int]) -> None:
        """Remove it if it is that file, by device and inode. Raises nothing."""
        try:
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except OSError:
            return
        if (status.st_dev, status.st_ino) == file:
            self.remove(name)

    def remove_folder(self, path: str) -> None:
        """Remove the directory of a trace that a dead job of this user has left. Raises nothing."""
        is_plain = not self._is_careful and self._other_mounts() is None
        if is_plain and (os.path.isabs(path) or "/" not in path):
            above = os.path.dirname(self._job.file.path)
            folder = os.path.join(above, path)
            shutil.rmtree(folder, ignore_errors=True)
            if places.user_in_name(os.path.basename(os.path.dirname(folder))) == self._job.uid:
                try:
                    os.rmdir(os.path.dirname(folder))  # made for it; refused where more is in it
                except OSError:
                    pass


@contextmanager
def as_user(uid: int, gid: int) -> Iterator[None]:
    """For root: this thread makes files as that user, and no other thread does. A file system that
    was mounted in a user namespace takes no file of a user whom that does not know.
    """
    if os.geteuid() != 0 or uid == 0:
        yield
        return
    import ctypes

    libc = ctypes.CDLL(None)
    libc.setfsgid(gid)
    libc.setfsuid(uid)
    try:
        yield
    finally:
        libc.setfsuid(0)
        libc.setfsgid(os.getegid())


@contextmanager
def opened_directory(job: AgentJob) -> Iterator[JobDirectory]:
    """The directory of its segment. Raises OSError."""
    path = os.path.dirname(job.file.path)
    if job.file.within:
        inner = path.removeprefix(f"{job.file.within}/root")
        with mounts.pointed_at(job.file.within, inner) as point:
            yield JobDirectory(job, point)
        return
    fd = os.open(path, DIRECTORY)
    try:
        yield JobDirectory(job, Pointer(fd, b""))
    finally:
        os.close(fd)
