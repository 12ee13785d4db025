"""A file of ours that receives a trace, and does not outlive a failure."""

from __future__ import annotations

import os


class ReceivedFile:
    """A new file of ours for a trace, made with its first byte, and removed unless it is kept."""

    def __init__(self, path: str) -> None:
        self.size = 0
        """Bytes of the trace."""
        self._path = path
        self._fd: int | None = None
        self._is_kept = False

    def __enter__(self) -> ReceivedFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.close(self._fd)
        if not self._is_kept and (self._fd is not None or self.size):
            os.unlink(self._path)

    def write(self, data: memoryview) -> None:
        """Raises OSError."""
        if self._fd is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self._path, flags, 0o600)
        while data:
            written = os.write(self._fd, data)
            self.size += written
            data = data[written:]

    def keep(self) -> None:
        """Leave it there."""
        self._is_kept = True
