"""Which processes have libtpu mapped: a monitor may have, and holds no TPU."""

from __future__ import annotations

from collections.abc import Mapping

from tpusmi.sources.holders.procfs import read_stat

LIBRARY = b"libtpu.so"
MAPS_MOST_BYTES, LOOK_MOST_BYTES = 4 << 20, 48 << 20
"""Most bytes of maps read of one process, and of all in one look: a process can make its maps as
long as it likes. JAX with libtpu has a few hundred kilobytes.
"""
CHUNK_BYTES = 64 * 1024
SHOWN_MOST = 64
"""Most processes that are listed: any user may start very many, and each takes long to describe."""


class Loaded:
    """Reads the maps of some processes at a time: they take long to read."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._read: dict[int, int] = {}
        """Inodes, by pid, of the processes whose maps were read in this round."""
        self._loaded: dict[int, int] = {}

    def look(self, inodes: Mapping[int, int], most: int) -> None:
        """Read the maps of up to `most` processes that were not read in this round. The inode shows
        whether a pid was reused.
        """
        unread = [pid for pid, inode in inodes.items() if self._read.get(pid) != inode]
        if not unread:
            self._read = {}
        left = LOOK_MOST_BYTES
        for pid in reversed(unread[-most:]):  # the newest: the first ones are the system's
            if left <= 0:
                break  # the others are read in the next look
            inode = self._read[pid] = inodes[pid]
            is_loaded, size = _maps_library(f"{self._proc}/{pid}")
            left -= size
            if is_loaded:
                self._loaded[pid] = inode
            else:
                self._loaded.pop(pid, None)
        self._loaded = {pid: i for pid, i in self._loaded.items() if inodes.get(pid) == i}

    def pids(self) -> tuple[int, ...]:
        """The processes that have it mapped, up to SHOWN_MOST of them."""
        return tuple(self._loaded)[:SHOWN_MOST]

    def notes(self) -> tuple[str, ...]:
        """A note that there are more."""
        more = len(self._loaded) - SHOWN_MOST
        return (f"{more} more processes have libtpu loaded, and hold no TPU",) if more > 0 else ()


def _maps_library(process: str) -> tuple[bool, int]:
    """Whether the beginning of its maps names libtpu, which an upgrade may have deleted since, and
    how many bytes were read. False if they are hidden, and in uninterruptible sleep, when a reader
    might sleep with it.
    """
    stat = read_stat(process)
    if stat is None or stat.state == "D":
        return False, 0
    size, before = 0, b""
    try:
        with open(f"{process}/maps", "rb", buffering=0) as file:
            while size < MAPS_MOST_BYTES and (chunk := file.read(CHUNK_BYTES)):
                size += len(chunk)
                if LIBRARY in before + chunk:
                    return True, size
                before = chunk[1 - len(LIBRARY) :]
    except OSError:
        pass
    return False, size
