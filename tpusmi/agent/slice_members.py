"""The processes of the job, as this one sees them: when each last said something, by our clock, and
how far its clock is from ours. Pure.

No two hosts' clocks agree. What is certain: a summary that is new to us was put after our look
before, and before this one. So each new one gives two bounds for the difference of the clocks.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tpusmi.model.slice_hosts import SILENT_PERIODS
from tpusmi.wire.slice_summary import PROCESSES_MOST, Head, head_of, row_of

BOUNDS_MOST = 32
"""How many summaries count for the difference of the clocks: a clock may be set."""


class _Look(NamedTuple):
    at_s: float
    wall_s: float
    gap_s: float
    """Time since the look before; infinite at the first."""


class _Member:
    """One process."""

    def __init__(self) -> None:
        self.row: list[Any] = []
        self.head: Head | None = None
        self.put_at_s = 0.0
        """When it put its newest summary, by our monotonic clock."""
        self._bounds: deque[tuple[float, float]] = deque(maxlen=BOUNDS_MOST)

    def note(self, head: Head, row: list[Any], look: _Look) -> None:
        """Take in what it says at this look."""
        if head == self.head:  # a process that was started again counts from 1 again
            return
        self.head, self.row = head, row
        lower_s = head.wall_s - look.wall_s
        if math.isfinite(look.gap_s):
            self._bounds.append((lower_s, lower_s + look.gap_s))
        difference_s = self.difference_s()
        delay_s = 0.0 if difference_s is None else difference_s - lower_s
        self.put_at_s = look.at_s - min(max(0.0, delay_s), look.gap_s)

    def difference_s(self) -> float | None:
        """Its clock minus ours; None until it has said something between two looks."""
        if not self._bounds:
            return None
        lower_s = max(lower for lower, _ in self._bounds)
        upper_s = min(upper for _, upper in self._bounds)
        if lower_s > upper_s:  # one of the two clocks was set
            lower_s, upper_s = self._bounds[-1]
            self._bounds = deque([self._bounds[-1]], BOUNDS_MOST)
        return (lower_s + upper_s) / 2

    def reported_difference_s(self) -> float | None:
        """The same; 0 where the clocks may agree: a period is longer than most differences."""
        difference_s = self.difference_s()
        may_agree = all(lower <= 0.0 <= upper for lower, upper in self._bounds)
        return 0.0 if difference_s is not None and may_agree else difference_s


class Members:
    """All processes of the job that have said something."""

    def __init__(self, own: int) -> None:
        self._own = own
        self._members: dict[int, _Member] = {}
        self._looked_at_s = -math.inf

    def note(self, texts: Mapping[int, str], at_s: float, wall_s: float) -> None:
        """Take in what all say now; a process that has taken its summary back is gone."""
        look = _Look(at_s, wall_s, at_s - self._looked_at_s)
        self._looked_at_s = at_s
        before, self._members = self._members, {}
        for index, text in sorted(texts.items())[:PROCESSES_MOST]:
            row = row_of(text)
            head = head_of(row)
            if row is not None and head is not None:
                member = self._members[index] = before.get(index) or _Member()
                member.note(head, row, look)

    def lines(self, now_s: float) -> Iterator[Sequence[Any]]:
        """A LINE of the blob for each."""
        for index, member in self._members.items():
            difference_s = 0.0 if index == self._own else member.reported_difference_s()
            rounded = None if difference_s is None else round(difference_s, 3)
            yield index, round(now_s - member.put_at_s, 3), rounded, member.row

    def has_other_reader(self, place: int, now_s: float) -> bool:
        """True where a process of a lower number reads for the same viewers."""
        return any(
            index < self._own
            and m.head is not None
            and m.head.place == place
            and now_s - m.put_at_s < SILENT_PERIODS * m.head.period_s
            for index, m in self._members.items()
        )
