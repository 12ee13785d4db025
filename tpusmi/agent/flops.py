"""Model FLOPs, passed to step() or counted by track(): a sum, and a rate in the agent's thread."""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise

WINDOW_S = 60.0
WINDOW_LEAST = 20
"""With slow steps, the rate rests on at least this many changes of the sum, however old."""
CHANGES_MOST = 1024
RESOLUTION_S = 0.5
"""Changes that follow sooner than this are taken together."""


IGNORED = "flops_ignored"
STEP_MOST = 1e30
"""The most that a job could compute in one step."""


class Flops:
    """FLOPs of the whole job since the start: all its processes, all its devices.

    Once step(flops=) was used, the count of track() is ignored: the same work would be counted
    twice.
    """

    def __init__(self) -> None:
        self.passed = 0.0
        self.tracked = 0.0
        # Sums are plain attributes: `+=` on one is not interrupted, and costs no lock.
        self.notes: dict[str, str] = {}
        """Warnings to publish, one sentence for each code: the first of its kind."""
        self._is_passed = False
        self._was_passed = False
        self._changes: deque[tuple[float, float]] = deque(maxlen=CHANGES_MOST)

    def add(self, flops: object) -> float:
        """Add the FLOPs of one step, and return them: 0, with a note, for an invalid number.

        Never raises, and reads no array, since that would wait for the device.
        """
        if type(flops) is not float and type(flops) is not int:
            flops = _plain(flops)
        if not 0 <= flops < STEP_MOST:
            why = "step(flops=) was given something that is not a number of FLOPs"
            self.notes.setdefault(IGNORED, why)
            return 0.0
        if flops > 0:
            self._is_passed = True
        self.passed += flops
        return flops

    def forget(self) -> None:
        """Start over: in a forked child, or after the agent was stopped."""
        self.passed = self.tracked = 0.0
        self._is_passed = self._was_passed = False
        self.notes.pop(IGNORED, None)  # those of tracked functions are as true as before
        self._changes.clear()

    def per_s(self, now_s: float, since_s: float | None = None) -> float | None:
        """FLOPs per second over the last minute; None before two changes of their sum.

        With slow steps it is longer: since `since_s`, where the steps began whose rate is beside it
        on every screen; without steps, the last 20 changes.

        Only the agent's thread may call this.
        """
        changes = self._changes
        if self._is_passed and not self._was_passed:
            self._was_passed = True
            changes.clear()
        total = self.passed if self._is_passed else self.tracked
        if total > (changes[-1][1] if changes else 0.0) and (
            not changes or now_s - changes[-1][0] >= RESOLUTION_S
        ):
            changes.append((now_s, total))
        if since_s is None:
            while len(changes) > WINDOW_LEAST and now_s - changes[0][0] > WINDOW_S:
                changes.popleft()
        else:
            # The last change before the window stays: a pause in the window counts in full.
            since_s = min(since_s, now_s - WINDOW_S)
            while len(changes) > 2 and changes[1][0] <= since_s:
                changes.popleft()
        return _rate(list(changes), now_s)


def mfu_percent(flops_per_s: float | None, peak_flops_per_s: float | None) -> float | None:
    """Model FLOPs per second over the peak of all devices; None when either is unknown."""
    if flops_per_s is None or not peak_flops_per_s:
        return None
    return 100.0 * flops_per_s / peak_flops_per_s


def _rate(changes: list[tuple[float, float]], now_s: float) -> float | None:
    if len(changes) < 2:
        return None
    (first_at, first), (last_at, last) = changes[0], changes[-1]
    longest = max(b[0] - a[0] for a, b in pairwise(changes))
    # A loop that stalls gets slower, it does not keep its last speed.
    until = now_s if now_s - last_at > longest else last_at
    return (last - first) / (until - first_at)


def _plain(value: object) -> float:
    """A number of another type, as NumPy has them; NaN for anything else."""
    try:
        from numbers import Real

        if isinstance(value, bool) or not isinstance(value, Real):
            return math.nan
        return float(value)
    except Exception:  # noqa: BLE001  # an object of the job's may raise anything, as may
        return math.nan  # the import, in a process that has given up its rights
