"""Which processes have libtpu mapped: a monitor has, and holds nothing."""

from __future__ import annotations

from collections.abc import Mapping

from tpusmi.sources.holders.procfs import read_stat

LIBRARY = b"libtpu.so"


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
        for pid in wanted[-most:]:  # the newest: what came with the machine has no libtpu
            inode = self._asked[pid] = inodes[pid]
            if _maps_library(f"{self._proc}/{pid}"):
                self._loaded[pid] = inode
            else:
                self._loaded.pop(pid, None)
        self._loaded = {pid: i for pid, i in self._loaded.items() if inodes.get(pid) == i}

    def pids(self) -> tuple[int, ...]:
        """Those that have it mapped."""
        return tuple(self._loaded)


def _maps_library(process: str) -> bool:
    """Whether its maps name libtpu, be it deleted since by an upgrade. False if they are hidden,
    and while it sleeps uninterruptibly: who asks might sleep with it.
    """
    stat = read_stat(process)
    if stat is None or stat.state == "D":
        return False
    try:
        with open(f"{process}/maps", "rb") as file:
            return LIBRARY in file.read()
    except OSError:
        return False
