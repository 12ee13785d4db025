"""What could not be read, and whose files it was: in words, and as witnesses that are missing."""

from __future__ import annotations

import os
import time
from collections import Counter

from tpusmi.model import AGENT, OTHER_MOUNTS, Missing, ProcessKey
from tpusmi.sources.segments.evidence import Kernel
from tpusmi.sources.segments.namespaces import NamespaceScan
from tpusmi.sources.users import user_name
from tpusmi.text import clean, counted
from tpusmi.wire.identity import start_ticks
from tpusmi.wire.places import RECENT_S, SegmentDirectory, SegmentFile

NOTES_MOST = 8
WALLED = (
    "does not share this command's /dev/shm (container or Slurm job), "
    "so its agent is invisible here"
)


class Gaps:
    """What one read could not read."""

    def __init__(self, kernel: Kernel) -> None:
        self.denied = 0
        """Segments and directories that this user may not read."""
        self.own = ""
        """The first gap in files of root or of this user that might have shown a job, in words."""
        self.wall = ""
        """The first process whose segment would be where this user cannot look, in words."""
        self._kernel = kernel
        self._notes: list[str] = []
        self._cut: Counter[tuple[int, str]] = Counter()
        self._missing: list[Missing] = []

    def note(self, text: str) -> None:
        """Add something that no verdict depends on."""
        self._notes.append(clean(text))

    def directory(self, directory: SegmentDirectory, why: str, is_denied: bool = False) -> None:
        """Add a directory that cannot be read, or not all of it."""
        self.denied += is_denied
        self._miss(self._noted(f"{directory.path} {why}"), directory.uid)

    def others(self, scan: NamespaceScan) -> None:
        """Add what could not be seen of the mounts of other processes."""
        if scan.unasked:
            count = counted(len(scan.unasked), "process", "processes")
            text = self._noted(f"{count} not checked for being in a container")
            self._miss_among(text, scan.unasked)
        if scan.unnamed:
            count = counted(len(scan.unnamed), "more process", "more processes")
            self._miss_among(f"{count} may be in a container", scan.unnamed)
        if scan.is_cut:
            text = "too many processes: not all were checked for being in a container"
            self._miss(self._noted(text), None)
        for pid, uid in scan.walled:
            ticks = start_ticks(self._kernel.proc, pid)
            if ticks is None:
                continue
            key = ProcessKey(pid, ticks)
            why = f"pid {pid} {_walled()}"
            self._missing.append(Missing(AGENT, why, uid=uid, process=key, code=OTHER_MOUNTS))
            self.wall = self.wall or f"pid {pid} (user {user_name(uid)}) {_walled()}"

    def segment(self, file: SegmentFile, why: str) -> None:
        """Add a segment that cannot be read. A file that is named after a living process of its
        owner could only have shown that process; an old file could have shown none.
        """
        self.denied += "Permission denied" in why
        text = self._noted(f"{file.path} {why}")
        if self._kernel.runs(file.pid, file.start_ticks, file.uid):
            self._miss(text, file.uid, ProcessKey(file.pid, file.start_ticks))
        elif time.time() - file.written_s < RECENT_S:
            self._miss(text, file.uid)

    def cut(self, uid: int, why: str) -> None:
        """Add a segment of that user that was not read because of what the user's files cost."""
        self._cut[uid, why] += 1

    def notes(self) -> tuple[str, ...]:
        """The first notes, and how many more: a hostile directory must not fill the screen."""
        notes = [*self._cuts().values(), *self._notes]
        more = len(notes) - NOTES_MOST
        return (*notes[:NOTES_MOST], *([f"and {more} more of that kind"] if more > 0 else ()))

    def missing(self) -> tuple[Missing, ...]:
        """The witnesses that could not be asked."""
        cuts = (Missing(AGENT, text, uid) for (uid, _), text in self._cuts().items())
        return (*cuts, *self._missing)

    def _miss(self, text: str, uid: int | None, process: ProcessKey | None = None) -> None:
        self._missing.append(Missing(AGENT, text, uid, process))
        if uid in (0, os.geteuid(), None):
            self.own = self.own or text

    def _miss_among(self, text: str, pids: list[int]) -> None:
        among = frozenset(pids)
        self._missing.append(Missing(AGENT, text, code=OTHER_MOUNTS, among=among))

    def _noted(self, raw: str) -> str:
        """The text, added to the notes and safe to show: file names and errors are in it."""
        self.note(raw)
        return self._notes[-1]

    def _cuts(self) -> dict[tuple[int, str], str]:
        return {
            (uid, why): f"{counted(count, 'segment')} of user {user_name(uid)} not read: {why}"
            for (uid, why), count in self._cut.items()
        }


def _walled() -> str:
    from tpusmi.merge.advice import TABLE

    cure = TABLE[OTHER_MOUNTS].advice
    return f"{WALLED}: {cure if os.geteuid() else cure.removeprefix('try sudo, ')}"
