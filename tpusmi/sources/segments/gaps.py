"""What could not be read, of whose files: in words, and as witnesses that are missing."""

from __future__ import annotations

import os
import time
from collections import Counter

from tpusmi.model import AGENT, OTHER_MOUNTS, Missing, ProcessKey
from tpusmi.sources.segments.listing import RECENT_S, Trouble
from tpusmi.sources.segments.namespaces import Seen
from tpusmi.sources.segments.proof import Machine
from tpusmi.sources.users import user_name
from tpusmi.text import clean
from tpusmi.wire.identity import start_ticks
from tpusmi.wire.places import Place

NOTES_MOST = 8
WALLED = (
    "has another /dev/shm than this command (a container or a Slurm job), "
    "and an agent in there cannot be seen from here"
)


class Gaps:
    """Gathered in the course of one read."""

    def __init__(self, machine: Machine) -> None:
        self.denied = 0
        """Segments and directories that this user may not read."""
        self.own = ""
        """The first that is root's or of this user and could have told something, in words."""
        self.wall = ""
        """The first process whose segment would lie where this user cannot look, in words."""
        self._machine = machine
        self._notes: list[str] = []
        self._cut: Counter[tuple[int, str]] = Counter()
        self._missing: list[Missing] = []

    def note(self, text: str) -> None:
        """Something that no verdict depends on."""
        self._notes.append(clean(text))

    def directory(self, trouble: Trouble) -> None:
        """A directory that could not be looked into."""
        directory, why, is_denied = trouble
        self.denied += is_denied
        text = self._noted(f"{directory.path} {why}")
        self._miss(text, directory.uid)

    def others(self, seen: Seen) -> None:
        """What was not seen of the mounts of other processes."""
        asked = "asked whether they are in a container"
        if seen.unasked:
            self._miss_among(
                self._noted(f"{len(seen.unasked)} processes were not {asked}"), seen.unasked
            )
        if seen.unnamed:
            self._miss_among(
                f"{len(seen.unnamed)} more processes may be in a container", seen.unnamed
            )
        if seen.is_cut:
            self._miss(self._noted(f"there are too many processes: not all were {asked}"), None)
        for pid, uid in seen.walled:
            ticks = start_ticks(self._machine.proc, pid)
            if ticks is None:
                continue
            key = ProcessKey(pid, ticks)
            self._missing.append(Missing(AGENT, f"pid {pid} {_walled()}", uid, key, OTHER_MOUNTS))
            self.wall = self.wall or f"pid {pid} (user {user_name(uid)}) {_walled()}"

    def segment(self, place: Place, why: str) -> None:
        """A segment that cannot be read. One that is named after a living process of its owner
        could have spoken for that one alone; an old one for none.
        """
        self.denied += "Permission denied" in why
        text = self._noted(f"{place.path} {why}")
        if self._machine.runs(place.pid, place.start_ticks, place.uid):
            self._miss(text, place.uid, ProcessKey(place.pid, place.start_ticks))
        elif time.time() - place.written_s < RECENT_S:
            self._miss(text, place.uid)

    def cut(self, uid: int, why: str) -> None:
        """A segment of that user that is left out because of what they cost."""
        self._cut[uid, why] += 1

    def notes(self) -> tuple[str, ...]:
        """The first, and how many more: a hostile directory must not fill the screen."""
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
        """The text, safe to show: it may have names of files in it, and what stands in them."""
        text = clean(raw)
        self._notes.append(text)
        return text

    def _cuts(self) -> dict[tuple[int, str], str]:
        return {(uid, why): _cut(uid, count, why) for (uid, why), count in self._cut.items()}


def _walled() -> str:
    cure = "" if os.geteuid() == 0 else "try sudo, "
    return f"{WALLED}: {cure}look from inside, or share a directory with TPUSMI_DIR"


def _cut(uid: int, count: int, why: str) -> str:
    segments = f"{count} segment{'s' if count > 1 else ''}"
    return f"{segments} of user {user_name(uid)} not read: {why}"
