"""The kernel's list of what is mounted where, as one process sees it.

Any user may mount something, and choose its name and its source. The kernel escapes spaces, tabs,
newlines and backslashes in both: a line ends at a newline, a word at a space, and at nothing else.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

MOST_BYTES = 1 << 20
"""Most that is read of one list: some thousand mounts. The rest is unknown."""


class Mount(NamedTuple):
    """One line: `36 35 0:52 / /home rw,relatime shared:1 - nfs4 server:/home rw,vers=4.2`."""

    number: bytes
    parent: bytes
    device: bytes
    root: bytes
    """The directory of the file system that is mounted."""
    point: bytes
    kind: bytes
    """The type of its file system."""
    options: bytes
    """Options of the file system, not of the mount."""


def listed(process: str, most: int = MOST_BYTES) -> bytes:
    """The list that a process, /proc/PID, sees, up to `most` bytes of it. Any user may read it.
    Raises OSError.
    """
    fd = os.open(f"{process}/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
    try:
        read = b""
        while len(read) < most and (more := os.read(fd, most - len(read))):
            read += more
        return read
    finally:
        os.close(fd)


def mounts(text: bytes) -> Iterator[Mount]:
    """The mounts in a list. A line that was cut is left out."""
    for line in text.split(b"\n")[:-1]:
        words, _, end = line.partition(b" - ")
        place, system = words.split(b" ", 5), end.split(b" ", 2)
        if len(place) == 6 and len(system) == 3:
            yield Mount._make((*place[:5], system[0], system[2]))
