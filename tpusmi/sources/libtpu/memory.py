"""What servers told that are gone or fail: it grows old on the screen, and is not wiped off it."""

from __future__ import annotations

from tpusmi.model import ABSENT, FAILED, OK
from tpusmi.sources.libtpu.client import Told
from tpusmi.sources.libtpu.pool import Answered

KEPT_S = 60.0
"""Nothing older is given again: nobody would show it."""
PORTS_MOST = 64


class Memory:
    """The last good answer of the server on each port."""

    def __init__(self) -> None:
        self._last: dict[int, Answered] = {}

    def completed(self, answered: list[Answered], now_s: float) -> list[Answered]:
        """The answers, those of servers that are gone or fail with what they told before."""
        asked = {a.place.port for a in answered}
        gone = [Answered(a.place, _gone(p)) for p, a in self._last.items() if p not in asked]
        found = [self._completed(a, now_s) for a in (*answered, *gone)]
        told = [a for a in found if a.told.readings or a.told.latencies]
        self._last = {a.place.port: a for a in told[:PORTS_MOST]}
        return [a for a in found if a.place.port in asked or a.place.port in self._last]

    def _completed(self, answered: Answered, now_s: float) -> Answered:
        place, told = answered
        before = self._last.get(place.port)
        if before is None or told.status == OK or told.readings or told.latencies:
            return answered
        if told.status == FAILED and place.socket != before.place.socket:
            return answered  # another server, which has nothing to do with the one before
        least_s = now_s - KEPT_S
        kept = told._replace(
            readings=tuple(r for r in before.told.readings if r.at_s >= least_s),
            latencies=tuple(found for found in before.told.latencies if found.at_s >= least_s),
            ids=before.told.ids,
        )
        return Answered(before.place, kept)


def _gone(port: int) -> Told:
    return Told(ABSENT, f"nothing listens on port {port}")
