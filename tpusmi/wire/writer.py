"""The agent's end of a segment: made whole, then filled slot by slot."""

from __future__ import annotations

import errno
import os
import resource
import struct
import zlib
from collections.abc import Callable

from tpusmi.wire import lock
from tpusmi.wire.layout import (
    BLOB_HEAD,
    CRC,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    MAJOR,
    MINOR,
    NEWEST,
    PREAMBLE,
    Header,
    fields_in_slot,
)


class _File:
    """Our file, and no other: a job may close descriptors that it does not know, and open its own.

    A number that means another file by now is neither written to nor closed.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._identity = _identity(fd)

    def write(self, data: bytes, offset: int) -> None:
        """Write at that place. Raises OSError, also when the descriptor is no longer ours."""
        if _identity(self._fd) != self._identity:
            raise OSError(errno.EBADF, "the job closed the segment's descriptor")
        check_limit(offset + len(data))
        os.pwrite(self._fd, data, offset)

    def reserve(self, size: int) -> None:
        """Make it so large, with every byte there. Raises OSError."""
        check_limit(size)
        check_room(self._fd, size)
        os.posix_fallocate(self._fd, 0, size)

    def is_at(self, path: str, size: int = 0) -> bool:
        """True when that path is this file, and it has so many bytes; no link is followed."""
        try:
            found = os.stat(path, follow_symlinks=False)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity and found.st_size >= size

    def remove(self, path: str) -> None:
        """Close it, and remove it from that path if it is there."""
        try:
            if self.is_at(path):
                os.unlink(path)
        except OSError:
            pass  # the directory has become another user's
        self.close()

    def close(self) -> None:
        """Close it. A child that is forked meanwhile still finds it among the open ones."""
        try:
            if self._fd >= 0 and _identity(self._fd) == self._identity:
                os.close(self._fd)
        except OSError:
            pass  # closed already
        self._fd = -1
        _files.discard(self)


_files: set[_File] = set()
"""Those that are open."""
_opening: list[str] = []
"""The name of the file that is being opened, and is not among those yet."""


def close_inherited() -> None:
    """In a forked child: close every segment of the parent. The child would keep the parent's locks
    alive. The parent's thread may have been opening one, and nothing but the kernel knows which
    descriptor that is.
    """
    for file in tuple(_files):
        file.close()
    while _opening:
        _close_by_name(_opening.pop())


def _close_by_name(name: str) -> None:
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:
        return
    for number in numbers:
        try:
            if os.path.basename(os.readlink(f"/proc/self/fd/{number}")) == name:
                os.close(int(number))
        except OSError:
            pass  # the descriptor of the listing itself


def check_room(fd: int, size: int) -> None:
    """Raises OSError when the file system has less room than that. To reserve what is there, and
    only then be refused, would leave nothing to anybody else meanwhile.
    """
    found = os.fstatvfs(fd)
    if found.f_blocks and found.f_bfree * found.f_frsize < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def check_limit(size: int) -> None:
    """Raises OSError for a file that is larger than the process may write: trying that would end a
    process which takes SIGXFSZ as it comes.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if most != resource.RLIM_INFINITY and size > most:
        raise OSError(errno.EFBIG, f"over the limit on the size of files (ulimit -f), {most} bytes")


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


class Blob:
    """A payload with its own sequence, written to alternate halves so that one is always whole."""

    def __init__(self, file: _File, offset: int, half: int) -> None:
        self._file = file
        self._offset = offset
        self._half = half
        self._sequence = 0

    @property
    def capacity(self) -> int:
        """Bytes of the largest payload that fits."""
        return self._half - BLOB_HEAD.size

    def write(self, kind: int, payload: bytes, at_s: float) -> bool:
        """True when the payload was written; False when it does not fit. Raises OSError."""
        if len(payload) > self.capacity:
            return False
        sequence = self._sequence + 1
        head = BLOB_HEAD.pack(sequence, kind, len(payload), at_s, 0)[: -CRC.size]
        crc = zlib.crc32(payload, zlib.crc32(head))
        offset = self._offset + self._half * (sequence % 2)
        self._file.write(head + CRC.pack(crc) + payload, offset)
        self._sequence = sequence
        return True


class SegmentWriter:
    """An open segment of this process.

    Every method may raise OSError; none leaves a torn value behind.
    """

    def __init__(
        self,
        path: str,
        header: Header,
        mode: int = 0o644,
        fill: Callable[[SegmentWriter], None] | None = None,
    ) -> None:
        """Create the file under a temporary name, lock it, reserve every byte, let `fill` write
        what is known from the start, and put it in place at once.

        Raises OSError when the directory refuses it or the file system has no room.
        """
        self.path = path
        new = path + ".new"
        self._file, is_locked = _create(new, mode)
        self.header = header = header._replace(locked=int(is_locked))
        self._sequence = 0
        doubles = fields_in_slot(header.process_fields, header.device_fields, header.devices)
        padding = header.slot_bytes - 8 - 8 * doubles - CRC.size
        self._slot = struct.Struct(f"<Q{doubles}d{padding}x")
        self.facts = Blob(self._file, header.facts_offset, header.facts_half)
        self.profile = Blob(self._file, header.profile_offset, header.profile_half)
        try:
            self._file.reserve(header.size)
            self._file.write(packed_header(header), 0)
            if fill is not None:
                fill(self)
            os.rename(new, path)
        except BaseException:
            self._file.remove(new)
            raise

    def append(self, values: list[float]) -> None:
        """Write one sample: the doubles of a slot, in the order of the layout, NaN for unknown."""
        sequence = self._sequence + 1
        packed = self._slot.pack(sequence, *values)
        header = self.header
        offset = header.slots_offset + header.slot_bytes * (sequence % header.slots)
        self._file.write(packed + CRC.pack(zlib.crc32(packed)), offset)
        self._file.write(NEWEST.pack(sequence), header.newest_offset)
        self._sequence = sequence

    def is_in_place(self) -> bool:
        """False when the file was deleted, replaced or cut short since it was made."""
        return self._file.is_at(self.path, self.header.size)

    def close(self) -> None:
        """Close the file and leave it for a post-mortem. Safe to call twice."""
        self._file.close()

    def remove(self) -> None:
        """Close the file and remove it, if it still has its name. Raises nothing."""
        self._file.remove(self.path)


def packed_header(header: Header) -> bytes:
    """The first bytes of a segment: preamble, header, CRC."""
    body = PREAMBLE.pack(MAGIC, MAJOR, MINOR, HEADER_BYTES) + HEADER.pack(*header)
    return body + CRC.pack(zlib.crc32(body))


def _create(path: str, mode: int) -> tuple[_File, bool]:
    """A new file of ours, following no link, and whether it is locked; one left by a crash of ours
    is replaced.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    _opening.append(os.path.basename(path))
    try:
        try:
            fd = os.open(path, flags, 0o600)
        except FileExistsError:
            os.unlink(path)
            fd = os.open(path, flags, 0o600)
        # Before anything else: a file without a lock may be swept, and one that others can open may
        # be locked by them.
        is_locked = lock.hold(fd)
        file = _File(fd)
        _files.add(file)
    finally:
        _opening.clear()
    os.fchmod(fd, mode)  # the umask of a job is often 077, and viewers run as other users
    return file, is_locked
