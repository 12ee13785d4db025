"""Told by the kernel when somebody opens a device node, by inotify, which opens nothing itself."""

from __future__ import annotations

import os
from collections.abc import Iterable

_OPENED = 0x20
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_READ_BYTES = 1 << 16


class Watch:
    """A watch over some files. Where the kernel gives none it never tells of anything."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._descriptor = -1
        try:
            import ctypes
        except ImportError:
            return  # a Python that was built without it
        libc = ctypes.CDLL(None)
        self._descriptor = libc.inotify_init1(_NONBLOCK_CLOEXEC)
        for path in paths:
            if self._descriptor >= 0:
                libc.inotify_add_watch(self._descriptor, os.fsencode(path), _OPENED)

    def has_seen(self) -> bool:
        """True when one of them was opened since the last call."""
        if self._descriptor < 0:
            return False
        try:
            return bool(os.read(self._descriptor, _READ_BYTES))
        except OSError:
            return False

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
