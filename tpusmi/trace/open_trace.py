"""A trace file, read in small parts by position. It may shrink meanwhile.

Parts are read with pread and never mapped: a mapped file that shrinks kills the process.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from types import TracebackType

from tpusmi.text import clean
from tpusmi.trace.limits import MIB, TraceLimits
from tpusmi.trace.messages import BYTES, VARINT, NotATraceError, length, varint
from tpusmi.trace.troubles import CaptureError, Trouble

WINDOW_BYTES = 64 * 1024
"""How much is read at once where fields follow each other."""
HEADER_BYTES = 32
"""More than a tag and a number have."""
PART_MOST = 4 * MIB
"""The largest message that is read as a whole: real ones have a few kilobytes."""
PARTS_MOST = 3_000_000
"""Lines and entries of tables, of all planes together: large jobs have some hundred thousand."""
Field = tuple[int, int, int]
"""The number of a field, then where its bytes begin and end; or its value, and NUMBER."""
NUMBER = -1


class TraceFile:
    """One open trace file. Raises CaptureError for what cannot be opened or is too large."""

    def __init__(self, path: str, limits: TraceLimits) -> None:
        self.path = path
        self.name = clean(path, 1024)
        self.limits = limits
        self._handle, self.size = self._opened()
        self._window, self._base = b"", 0
        self._parts_left = PARTS_MOST

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._handle)

    def _opened(self) -> tuple[int, int]:
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            sentence = f"{self.name} cannot be opened: {clean(reason)}."
            raise CaptureError(_trouble(error), sentence) from None
        try:
            return handle, self._checked_size(os.fstat(handle))
        except BaseException:
            os.close(handle)
            raise

    def _checked_size(self, status: os.stat_result) -> int:
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise self.refusal(f"it is {what}")
        if status.st_size == 0:
            raise self.refusal("it is empty")
        if status.st_size > self.limits.bytes_most:
            size, most = status.st_size / MIB, self.limits.bytes_most / MIB
            sentence = f"{self.name} is too large: {size:,.0f} MiB, and the limit is {most:,.0f}."
            raise CaptureError(Trouble.FAILED, sentence)
        return status.st_size

    def refusal(self, reason: str) -> CaptureError:
        """The error that says why these bytes are not a trace."""
        return CaptureError(Trouble.UNREADABLE, f"{self.name} is not a profiler trace: {reason}.")

    def count_part(self) -> None:
        """Counts a part whose place is kept. Raises NotATraceError for too many in all."""
        self._parts_left -= 1
        if self._parts_left < 0:
            raise NotATraceError("it has more parts than any real trace")

    def check_time(self) -> None:
        """Raises CaptureError when the time is up."""
        if self.limits.left_s <= 0:
            sentence = f"{self.name} takes longer to read than the limit allows (--timeout)."
            raise CaptureError(Trouble.FAILED, sentence)

    def part(self, start: int, end: int) -> bytes:
        """These bytes of the file. Raises NotATraceError when the file ends before."""
        if end - start > PART_MOST:
            raise NotATraceError("it has a message of an impossible size")
        self.check_time()
        data = self._read(start, end - start)
        if len(data) < end - start:
            raise NotATraceError("it is cut off at the end")
        return data

    def _read(self, at: int, size: int) -> bytes:
        try:
            return os.pread(self._handle, size, at)
        except OSError as error:
            sentence = f"{self.name} cannot be read: {error.strerror}."
            raise CaptureError(Trouble.FAILED, sentence) from None

    def head(self, size: int) -> bytes:
        """The first bytes of the file."""
        return self._read(0, size)

    def message(self, start: int, end: int) -> bytes:
        """A small message, from the window if it is inside: small ones follow each other. Raises
        NotATraceError where the file ends before it.
        """
        first = start - self._base
        if first >= 0 and end - self._base <= len(self._window):
            return self._window[first : end - self._base]
        if end - start > WINDOW_BYTES:
            return self.part(start, end)
        self._move(start)
        if end - start > len(self._window):
            raise NotATraceError("it is cut off at the end")
        return self._window[: end - start]

    def _move(self, at: int) -> None:
        self.check_time()
        self._window, self._base = self._read(at, WINDOW_BYTES), at

    def fields(self, start: int, end: int) -> Iterator[Field]:
        """The fields of a message in the file. Content is skipped, however long it is. Raises
        NotATraceError.
        """
        at = start
        while at < end:
            if not self._base <= at <= self._base + len(self._window) - HEADER_BYTES:
                self._move(at)
            tag, i = varint(self._window, at - self._base)
            kind = tag & 7
            if kind == VARINT:
                value, i = varint(self._window, i)
                at = self._base + i
                yield tag >> 3, value, NUMBER
                continue
            size, i = varint(self._window, i) if kind == BYTES else (length(kind), i)
            first, at = self._base + i, self._base + i + size
            if at > end:
                raise NotATraceError(_too_long(end == self.size))
            yield tag >> 3, first, at


def _too_long(is_outermost: bool) -> str:
    return "it is cut off at the end" if is_outermost else "its parts do not fit into each other"


def _trouble(error: Exception) -> Trouble:
    if isinstance(error, FileNotFoundError):
        return Trouble.ABSENT
    return Trouble.DENIED if isinstance(error, PermissionError) else Trouble.UNREADABLE
