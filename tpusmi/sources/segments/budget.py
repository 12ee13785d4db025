"""What the files of each user may cost the reader: one user's take no more than a stated part.

Time is processor time of the reading thread, so that a busy machine cuts no user off.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Limits(NamedTuple):
    """Most that is read at one time."""

    files: int
    """Names that are looked at in directories."""
    segments: int
    bytes: int
    """Of the segments' files together."""
    devices: int
    cpu_s: float
    """Processor time; what is spent over it is taken off the next reads."""
    past: int
    """Values of the past, which are read once for each segment: of all reads together."""


OF_OTHER_USER = Limits(2048, 64, 64 << 20, 256, 0.04, 10_000)
"""For the files of any user but root and the one who reads."""
OF_ALL_OTHERS = Limits(8192, 256, 256 << 20, 1024, 0.12, 30_000)
"""For those of all such users together."""
OF_TRUSTED = Limits(32768, 256, 1 << 30, 8192, 1.0, 200_000)
"""For the own files, and for those of root."""
USERS_MOST = 4096
"""Users of whom it is remembered what they have spent. One user may be very many (/etc/subuid)."""
DEBT_MOST_S = 0.4
"""More is forgotten: a user is heard again after ten reads at the latest."""


class _Share:
    """What one user, or all others together, may still take in this read."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.left = limits

    def renew(self) -> None:
        """Begin another read, with what the reads before have spent too much."""
        debt_s = max(min(self.left.cpu_s, 0.0), -DEBT_MOST_S)
        self.left = self._limits._replace(cpu_s=self._limits.cpu_s + debt_s, past=self.left.past)

    def refusal(self, size: int) -> str:
        """Why a segment of that size is not read; empty when it is."""
        if self.left.segments < 1:
            return f"more than {self._limits.segments} segments"
        return f"more than {self._limits.bytes >> 20} MiB" if self.left.bytes < size else ""

    def refusal_of(self, devices: int) -> str:
        """Why one of that many devices is not read; empty when it is."""
        return f"more than {self._limits.devices} devices" if self.left.devices < devices else ""

    def lateness(self) -> str:
        """Why there is no time for a segment; empty when there is."""
        return "" if self.left.cpu_s > 0 else f"they took over {self._limits.cpu_s:g} s"

    def spend(self, cost: Limits) -> None:
        self.left = Limits._make(a - b for a, b in zip(self.left, cost, strict=True))


NOTHING = Limits(0, 0, 0, 0, 0.0, 0)


class Budget:
    """The shares of all users, between reads."""

    def __init__(self) -> None:
        self._own = frozenset((os.geteuid(), 0))
        self._others = _Share(OF_ALL_OTHERS)
        self._users: dict[int, _Share] = {}

    def renew(self) -> None:
        """Begin another read."""
        if len(self._users) > USERS_MOST:
            self._users = {uid: s for uid, s in self._users.items() if uid in self._own}
        for share in (self._others, *self._users.values()):
            share.renew()

    def is_trusted(self, uid: int) -> bool:
        """True for root and for the user who reads."""
        return uid in self._own

    def left(self, uid: int) -> Limits:
        """What may still be read of that user."""
        return Limits._make(map(min, zip(*(s.left for s in self._shares(uid)), strict=True)))

    def refusal(self, uid: int, size: int) -> str:
        """Why that user's next segment, of that size, is not read; empty when it is."""
        return next(filter(None, (share.refusal(size) for share in self._shares(uid))), "")

    def refusal_of(self, uid: int, devices: int) -> str:
        """Why one of so many devices is not read; empty when it is."""
        return next(filter(None, (share.refusal_of(devices) for share in self._shares(uid))), "")

    def lateness(self, uid: int) -> str:
        """Why there is no time for that user's next segment; empty when there is."""
        return next(filter(None, (share.lateness() for share in self._shares(uid))), "")

    def spend(self, uid: int, cost: Limits) -> None:
        """That user's files have cost so much. What is over its share does not count for all."""
        mine, *all_others = self._shares(uid)
        within_s = min(cost.cpu_s, max(mine.left.cpu_s, 0.0))
        mine.spend(cost)
        for share in all_others:
            share.spend(cost._replace(cpu_s=within_s))

    def _shares(self, uid: int) -> tuple[_Share, ...]:
        if uid not in self._users:
            self._users[uid] = _Share(OF_TRUSTED if uid in self._own else OF_OTHER_USER)
        mine = self._users[uid]
        return (mine,) if uid in self._own else (mine, self._others)


@contextmanager
def spent(budget: Budget, uid: int) -> Iterator[None]:
    """What is done meanwhile is done for files of that user."""
    began_s = time.thread_time()
    try:
        yield
    finally:
        budget.spend(uid, NOTHING._replace(cpu_s=time.thread_time() - began_s))
