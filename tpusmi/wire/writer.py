"""The agent's end of a segment: made whole, then filled slot by slot."""

from __future__ import annotations

import errno
import os
import resource
import struct
import zlib
from collections.abc import Callable

from tpusmi.wire import layout, lock
from tpusmi.wire.layout import Header

_TO_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _File:
    """Our file, and no other: a job may close descriptors that it does not know, and open its own.

    A descriptor that has become another file's is neither written to nor closed.
    """

    def __init__(self, path: str, mode: int) -> None:
        """Create and lock the file, following no link; one that a crash of ours has left is
        replaced. Raises OSError.
        """
        self.name = os.path.basename(path)
        self._fd = -1
        self.identity: tuple[int, int] | None = None
        """Device and inode of the file; None until it is open."""
        _files.add(self)
        try:
            try:
                self._fd = os.open(path, _TO_CREATE, 0o600)
            except FileExistsError:
                os.unlink(path)
                self._fd = os.open(path, _TO_CREATE, 0o600)
            # Before anything else: a file without a lock may be swept, and one that others can open
            # may be locked by them.
            self.is_locked = lock.hold(self._fd)
            self.identity = _identity(self._fd)
            os.fchmod(self._fd, mode)  # a job's umask is often 077, and viewers run as other users
        except BaseException:
            self.close()
            raise

    def write(self, data: bytes, offset: int) -> None:
        """Write at that offset. Raises OSError, also when the descriptor is no longer ours."""
        if _identity(self._fd) != self.identity:
            raise OSError(errno.EBADF, "the job closed the segment's descriptor")
        check_limit(offset + len(data))
        os.pwrite(self._fd, data, offset)

    def reserve(self, size: int) -> None:
        """Make it that large, with every byte allocated. Raises OSError."""
        check_limit(size)
        check_room(self._fd, size)
        os.posix_fallocate(self._fd, 0, size)

    def is_at(self, path: str, size: int = 0) -> bool:
        """True when that path is this file, with at least `size` bytes; no link is followed."""
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity and status.st_size >= size

    def remove(self, path: str) -> None:
        """Close it, and remove it from that path if it is there."""
        try:
            if self.is_at(path):
                os.unlink(path)
        except OSError:
            pass  # the directory has become another user's
        self.close()

    def close(self) -> None:
        """Close it. A child that is forked during this still finds it among the open ones."""
        try:
            if self._fd >= 0 and self.identity in (None, _identity(self._fd)):
                os.close(self._fd)
        except OSError:
            pass  # closed already
        self._fd = -1
        _files.discard(self)


_files: set[_File] = set()
"""All files that are open, or are being opened."""


def close_inherited() -> None:
    """In a forked child: close every segment of the parent. The child would keep the parent's locks
    alive.
    """
    for file in tuple(_files):
        if file.identity is None:  # the parent's thread was just opening it
            _close_by_name(file.name)
        file.close()


def _close_by_name(name: str) -> None:
    """Close a file whose descriptor only the kernel knows."""
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
    """Raises OSError when the file system has less room than that. Trying to reserve too much would
    take all the room there is, for a moment, from every other process.
    """
    room = os.fstatvfs(fd)
    if room.f_blocks and room.f_bfree * room.f_frsize < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def check_limit(size: int) -> None:
    """Raises OSError for a file that is larger than the process may write: trying to would end a
    process that does not handle SIGXFSZ.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if most != resource.RLIM_INFINITY and size > most:
        raise OSError(errno.EFBIG, f"over the limit on the size of files (ulimit -f), {most} bytes")


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


class Blob:
    """A payload with its own sequence, written to alternate halves: one is always complete."""

    def __init__(self, file: _File, offset: int, half: int) -> None:
        self._file = file
        self._offset = offset
        self._half = half
        self._sequence = 0

    @property
    def capacity(self) -> int:
        """Bytes of the largest payload that fits."""
        return self._half - layout.BLOB_HEAD.size

    def write(self, kind: int, payload: bytes, at_s: float) -> bool:
        """True when the payload was written; False when it does not fit. Raises OSError."""
        if len(payload) > self.capacity:
            return False
        sequence = self._sequence + 1
        head = layout.BLOB_HEAD.pack(sequence, kind, len(payload), at_s, 0)[: -layout.CRC.size]
        crc = zlib.crc32(payload, zlib.crc32(head))
        offset = self._offset + self._half * (sequence % 2)
        self._file.write(head + layout.CRC.pack(crc) + payload, offset)
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
        """Create the file under a temporary name, lock it, reserve every byte, let `fill` write the
        first facts, and rename it into place at once.

        Raises OSError when the directory refuses it or the file system has no room.
        """
        self.path = path
        new = path + ".new"
        self._file = _File(new, mode)
        self.header = header = header._replace(locked=int(self._file.is_locked))
        self._sequence = 0
        doubles = layout.fields_in_slot(header.process_fields, header.device_fields, header.devices)
        padding = header.slot_bytes - layout.SLOT_HEAD.size - 8 * doubles - layout.CRC.size
        self._slot = struct.Struct(f"<Q{doubles}d{padding}x")
        self.facts = Blob(self._file, header.facts_offset, header.facts_half)
        self.profile = Blob(self._file, header.profile_offset, header.profile_half)
        self.slice = Blob(self._file, header.slice_offset, header.slice_half)
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
        self._file.write(packed + layout.CRC.pack(zlib.crc32(packed)), offset)
        self._file.write(layout.NEWEST.pack(sequence), header.newest_offset)
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
    start = (layout.MAGIC, layout.MAJOR, layout.MINOR, layout.HEADER_BYTES)
    body = layout.PREAMBLE.pack(*start) + layout.HEADER.pack(*header)
    return body + layout.CRC.pack(zlib.crc32(body))
