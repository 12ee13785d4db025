"""What the files of each user may cost the reader, so that one user cannot use up the time of all.

Time is processor time of the reading thread: a busy machine does not cut a user's share.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class ReadCost(NamedTuple):
    """What one read takes, or the most that it may take."""

    files: int = 0
    """Names that are read in directories."""
    segments: int = 0
    bytes: int = 0
    """Bytes of all segment files together."""
    devices: int = 0
    cpu_s: float = 0.0
    """Processor time. What is spent beyond it is taken off the next reads."""
    past: int = 0
    """Values of the past, over all reads: the past of a segment is read once."""


OF_OTHER_USER = ReadCost(
    files=2048, segments=64, bytes=64 << 20, devices=256, cpu_s=0.04, past=10_000
)
"""Limits for the files of each user except root and the one who reads."""
OF_ALL_OTHERS = ReadCost(
    files=8192, segments=256, bytes=256 << 20, devices=1024, cpu_s=0.12, past=30_000
)
"""Limits for the files of all such users together."""
OF_TRUSTED = ReadCost(
    files=32768, segments=256, bytes=1 << 30, devices=8192, cpu_s=1.0, past=200_000
)
"""Limits for the files of root, and for those of the user who reads."""
USERS_MOST = 4096
"""Most users whose spending is remembered. One person may own very many uids (/etc/subuid)."""
DEBT_MOST_S = 0.4
"""Most overspent time that is remembered: after ten reads at the latest a user's files are read
again.
"""


class _Share:
    """What one user, or all others together, may still take in this read."""

    def __init__(self, limits: ReadCost) -> None:
        self._limits = limits
        self.left = limits

    def renew(self) -> None:
        """Begin another read. What the reads before have overspent is taken off."""
        debt_s = max(min(self.left.cpu_s, 0.0), -DEBT_MOST_S)
        self.left = self._limits._replace(cpu_s=self._limits.cpu_s + debt_s, past=self.left.past)

    def refusal(self, cost: ReadCost) -> str:
        """Which limit a segment of that cost exceeds; empty when it exceeds none."""
        if self.left.segments < cost.segments:
            return f"more than {self._limits.segments} segments"
        if self.left.bytes < cost.bytes:
            return f"more than {self._limits.bytes >> 20} MiB"
        if self.left.devices < cost.devices:
            return f"more than {self._limits.devices} devices"
        return ""

    def lateness(self) -> str:
        """Why there is no time for a segment; empty when there is."""
        return "" if self.left.cpu_s > 0 else f"they took more than {self._limits.cpu_s:g} s"

    def spend(self, cost: ReadCost) -> None:
        self.left = ReadCost._make(a - b for a, b in zip(self.left, cost, strict=True))


class Quota:
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

    def left(self, uid: int) -> ReadCost:
        """What may still be read of that user's files."""
        return ReadCost._make(map(min, zip(*(s.left for s in self._shares(uid)), strict=True)))

    def refusal(self, uid: int, cost: ReadCost) -> str:
        """Why that user's next segment, of that cost, is not read; empty when it is."""
        return next(filter(None, (share.refusal(cost) for share in self._shares(uid))), "")

    def lateness(self, uid: int) -> str:
        """Why there is no time for that user's next segment; empty when there is."""
        return next(filter(None, (share.lateness() for share in self._shares(uid))), "")

    def spend(self, uid: int, cost: ReadCost) -> None:
        """Charge that user. What is over the user's own share is not charged to all others."""
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
def spent(quota: Quota, uid: int) -> Iterator[None]:
    """Charge that user with the processor time of the `with` block."""
    began_s = time.thread_time()
    try:
        yield
    finally:
        quota.spend(uid, ReadCost(cpu_s=time.thread_time() - began_s))
