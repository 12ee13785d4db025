"""The last minutes of every value, for graphs. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tpusmi.model.nouns import Number, Reading, Subject

HISTORY_S = 600.0
FORGET_EVERY_S = 30.0
WATCHED = "duty_cycle_percent"
"""The metric of which it is known for how long it has been nothing, however long that is."""
NOTHING_PERCENT = 0.05
GAP_S = 60.0
"""What nobody measured for so long may have been anything."""


class History:
    """The last ten minutes of every value, oldest first, for graphs."""

    def __init__(self, span_s: float = HISTORY_S, most: int = 1200) -> None:
        self._span_s = span_s
        self._most = most
        self._series: dict[tuple[Subject, str], deque[tuple[float, Number]]] = {}
        self._nothing_since_s: dict[Subject, float] = {}
        self._forgot_at_s = -FORGET_EVERY_S

    def add(self, readings: Sequence[Reading]) -> None:
        """Append readings; one that is not newer than its series' last is dropped."""
        for r in readings:
            series = self._series.get((r.subject, r.metric))
            if series is None:
                series = self._series[r.subject, r.metric] = deque(maxlen=self._most)
            if not series or r.at_s > series[-1][0]:
                if r.metric == WATCHED:
                    self._watch(r, series[-1][0] if series else r.at_s)
                series.append((r.at_s, r.value))

    def series(self, name: str, subject: Subject) -> list[tuple[float, Number]]:
        """(at_s, value) pairs of one metric, oldest first; empty when never measured."""
        return list(self._series.get((subject, name), ()))

    def nothing_since_s(self, subject: Subject) -> float | None:
        """Since when the duty cycle of a subject has been nothing; None when it is not, or nobody
        knows.
        """
        return self._nothing_since_s.get(subject)

    def _watch(self, r: Reading, before_s: float) -> None:
        if r.value > NOTHING_PERCENT:
            self._nothing_since_s.pop(r.subject, None)
        elif r.at_s - before_s > GAP_S:
            self._nothing_since_s[r.subject] = r.at_s
        else:
            self._nothing_since_s.setdefault(r.subject, r.at_s)

    def forget(self, now_s: float) -> None:
        """Drop series that have had no value in the span. Looks at them all, so now and then."""
        if now_s - self._forgot_at_s < FORGET_EVERY_S:
            return
        self._forgot_at_s = now_s
        gone = [key for key, s in self._series.items() if s[-1][0] < now_s - self._span_s]
        for key in gone:
            del self._series[key]
            if key[1] == WATCHED:
                self._nothing_since_s.pop(key[0], None)
