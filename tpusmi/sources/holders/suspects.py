"""Holders that look left behind: what ties them to living processes, and whether they still work.

To find that out takes long, so it is done for them alone.
"""

import time
from collections.abc import Mapping
from typing import NamedTuple

from tpusmi.model import ENDING_CODES, LOST_AFTER_S, LOST_CODES, Life, ProcessKey
from tpusmi.sources.holders import procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.sources.holders.ties import CpuTicks, Kin, Ties
else:
    CpuTicks = Kin = Ties = object  # loaded where there is a suspect

MOMENT_S = 1.0
LATELY_S = 30.0
"""Their processor time is measured over at least MOMENT_S, and at most LATELY_S."""
MARK_AGAIN_S = 2.0
TIES_AGAIN_S = 30.0


class _Mark(NamedTuple):
    """What a suspect and all that it started had used at one time."""

    at_s: float
    used: CpuTicks


class Suspects:
    """Remembers the suspects from look to look."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._marks: dict[ProcessKey, list[_Mark]] = {}
        self._ties: dict[ProcessKey, Ties] = {}
        self._tied_at_s = 0.0

    def look(self, lives: Mapping[ProcessKey, Life | None]) -> None:
        """Look at the suspects among the holders; the others are forgotten."""
        keys = [key for key, life in lives.items() if life is not None and is_suspect(life)]
        self._marks = {key: self._marks.get(key, []) for key in keys}
        self._ties = {key: ties for key, ties in self._ties.items() if key in self._marks}
        now_s = time.monotonic()
        due = [key for key in keys if self._is_due(key, now_s)]
        if not due:
            return
        # Few hosts have a suspect: the others are spared the import.
        from tpusmi.sources.holders.ties import Kin, ties

        kin = Kin(self._proc)
        for key in due:
            self._mark(key, kin, now_s)
        if self._ties.keys() != self._marks.keys() or now_s - self._tied_at_s >= TIES_AGAIN_S:
            self._tied_at_s = now_s
            by_pid = ties(self._proc, [key.pid for key in keys], kin)
            self._ties = {key: by_pid[key.pid] for key in keys if key.pid in by_pid}

    @property
    def wait_s(self) -> float | None:
        """How long until each suspect can be measured once: 0 where the look itself took that time.
        None when all have been.
        """
        started = [marks[0].at_s for marks in self._marks.values() if len(marks) == 1]
        return max(0.0, max(started) + MOMENT_S - time.monotonic()) if started else None

    def with_evidence(self, key: ProcessKey, life: Life) -> Life:
        """The life of a suspect with its ties and recent work; of any other holder unchanged."""
        marks, ties = self._marks.get(key), self._ties.get(key)
        if ties is not None:
            ports = tuple(sorted({*life.ports, *ties.ports}))
            life = life._replace(ties=ties.words, ports=ports)
        if marks is None or len(marks) < 2:
            return life
        from tpusmi.sources.holders.ties import used_ticks

        first, last = marks[0], marks[-1]
        over_s = last.at_s - first.at_s
        used_s = used_ticks(first.used, last.used) / procfs.ticks_per_s()
        return life._replace(recent_cpu_percent=100 * used_s / over_s, recent_s=over_s)

    def _is_due(self, key: ProcessKey, now_s: float) -> bool:
        marks = self._marks[key]
        every_s = MOMENT_S if len(marks) == 1 else MARK_AGAIN_S
        return not marks or now_s - marks[-1].at_s >= every_s or key not in self._ties

    def _mark(self, key: ProcessKey, kin: Kin, now_s: float) -> None:
        marks = [m for m in self._marks[key] if now_s - m.at_s <= LATELY_S]
        if not marks or now_s - marks[-1].at_s >= MOMENT_S:
            marks.append(_Mark(now_s, kin.cpu_ticks(kin.below(key.pid))))
        self._marks[key] = marks


def is_suspect(life: Life) -> bool:
    """True when it matters what ties the holder, and whether it works."""
    codes = {sign.code for sign in life.signs}
    if life.platform or codes & set(ENDING_CODES):
        return False
    is_old = life.age_s is not None and life.age_s >= LOST_AFTER_S
    return bool(codes & {"zombie", "container_gone"}) or (is_old and bool(codes & set(LOST_CODES)))
