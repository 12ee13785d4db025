"""A directory that is said to be on a network file system."""

from __future__ import annotations

import os
from pathlib import Path

from tpusmi.model import Host


def mounted_as(directory: Path, kind: str) -> Host:
    """A host on which that directory is said to be on a file system of that kind."""
    device = os.stat(directory).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    own = directory / "own_proc/self"
    own.mkdir(parents=True)
    lines = (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw",
        f"36 22 {number} / /a\\040b rw shared:2 master:1 - {kind} server:/home rw",
        "garbage",
    )
    (own / "mountinfo").write_text("\n".join(lines) + "\n")
    return Host(segment_dir=str(directory), own_proc=str(own.parent))
