"""Whether a trace has room on a disk: jobs need some for their checkpoints."""

from __future__ import annotations

import os


def would_fill(folder: str, size: int) -> bool:
    """True where less than half of the free room would be left; False also where the file system
    does not say how much there is. Raises OSError.
    """
    disk = os.statvfs(folder)
    return bool(disk.f_blocks) and size > disk.f_bavail * disk.f_frsize // 2
