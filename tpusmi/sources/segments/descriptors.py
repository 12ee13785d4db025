"""How many files are kept open for segments, so that some are left for all else."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

LEFT = 16
"""Descriptors that the other sources and Python need at one moment; of few, half are left."""


def kept(opener: Callable[[str, int], int]) -> Callable[[str, int], int]:
    """That opener, which raises OSError where too few descriptors would be left."""

    def opened(path: str, flags: int) -> int:
        fd = opener(path, flags)
        if fd < _most():
            return fd
        os.close(fd)
        raise OSError(errno.EMFILE, "this process may not open many more files")

    return opened


def _most() -> float:
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return float("inf") if limit == resource.RLIM_INFINITY else limit - min(LEFT, limit // 2)
