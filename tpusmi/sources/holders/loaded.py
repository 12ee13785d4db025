"""Which processes have libtpu mapped: a monitor has, and holds nothing."""

from __future__ import annotations

from collections.abc import Mapping

from tpusmi.sources.holders.procfs import read_stat

LIBRARY = b"libtpu.so"
MAPS_MOST_BYTES, LOOK_MOST_BYTES = 4 << 20, 48 << 20
"""Of one process, and of all in one look: a process may have made its own as long as it likes. JAX
with libtpu has a few hundred kilobytes.
"""
CHUNK_BYTES = 64 * 1024
SHOWN_MOST = 64
"""Of those that hold nothing: any user may start very many, and each is long to describe."""


class Loaded:
    """Asks some processes at a time for their maps, which are long to read."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._asked: dict[int, int] = {}
        """Inodes of the processes that were asked in this round."""
        self._loaded: dict[int, int] = {}

    def look(self, inodes: Mapping[int, int], most: int) -> None:
        """Ask so many of these processes, those first that were not asked yet. An inode tells a
        process from a later one of the same number.
        """
        wanted = [pid for pid, inode in inodes.items() if self._asked.get(pid) != inode]
        if not wanted:
            self._asked = {}
        left = LOOK_MOST_BYTES
        for pid in reversed(wanted[-most:]):  # the newest: what came with the machine has no libtpu
            if left <= 0:
                break  # the others are asked in the next look
            inode = self._asked[pid] = inodes[pid]
            is_loaded, size = _maps_library(f"{self._proc}/{pid}")
            left -= size
            if is_loaded:
                self._loaded[pid] = inode
            else:
                self._loaded.pop(pid, None)
        self._loaded = {pid: i for pid, i in self._loaded.items() if inodes.get(pid) == i}

    def pids(self) -> tuple[int, ...]:
        """Those that have it mapped, up to SHOWN_MOST of them."""
        return tuple(self._loaded)[:SHOWN_MOST]

    def notes(self) -> tuple[str, ...]:
        """That there are more."""
        more = len(self._loaded) - SHOWN_MOST
        return (f"{more} more processes have libtpu loaded, and hold no TPU",) if more > 0 else ()


def _maps_library(process: str) -> tuple[bool, int]:
    """Whether the beginning of its maps names libtpu, be it deleted since by an upgrade; and how
    long they are. False if they are hidden, and while it sleeps uninterruptibly: who asks might
    sleep with it.
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
