"""One exporter: its last numbers, how it answered, and when it is asked again."""

from __future__ import annotations

import time
from typing import NamedTuple

from tpusmi.fleet.exporters.exporter_addresses import Exporter
from tpusmi.fleet.exporters.means_ring import MeansRing
from tpusmi.fleet.fleet_figures import FleetHost, HostState, without_numbers
from tpusmi.fleet.hosts.from_samples import NO_TIME
from tpusmi.fleet.hosts.same_host import AHEAD_MOST_S
from tpusmi.text import elapsed

AGAIN_S, AGAIN_MOST_S = 1.0, 30.0
"""After one failure, and after many."""
POSTPONED_S = 0.2
"""After it could not be asked."""
GRACE_S = 5.0
"""How old the numbers of a host may be whose exporter fails once."""
UNCHANGED_AFTER_S = 60.0
"""From this age on the numbers of an exporter that answers are old. It is asked at each look, and
`tpusmi serve --textfile` writes every 15 seconds. Through Prometheus, whose scrapes lie between,
numbers may be older: see OLD_AFTER_S of `from_samples`.
"""
DROPPED_AFTER_S = 300.0
"""Prometheus forgets a series after that time."""


class ExporterReading(NamedTuple):
    """What an exporter answered."""

    host: FleetHost
    at_s: float | None
    """Unix time of its numbers, by its own clock."""
    identity: tuple[str, ...] | None
    """The same for two exporters of one machine; None where it is unknown."""

    @property
    def items(self) -> int:
        """How many things it is about."""
        h = self.host
        return 1 + len(h.devices) + len(h.processes) + len(h.notices) + len(h.links)


class ExporterRecord:
    """One exporter, as it answers. Its owner has the lock."""

    def __init__(self, exporter: Exporter, ring: MeansRing) -> None:
        self.exporter = exporter
        self.ring = ring
        self.reading: ExporterReading | None = None
        self.name = str(exporter)
        self.reason = ""
        """Why there was no answer the last time; empty if there was one."""
        self.failures = 0
        """Since it answered."""
        self.answers = 0
        self.is_running = False
        """A thread is asking it, or will."""
        self.begun_at_s = 0.0
        """When it was asked, of time.monotonic(); 0 while it waits its turn."""
        self.is_large = False
        """Its answers are long."""
        self.next_at_s = 0.0
        """Not asked before. Of time.monotonic(), as all times here."""
        self._at_s: float | None = None
        """The time of its last numbers, by its own clock, also once they are dropped."""
        self._new_at_s = 0.0
        """When its numbers were new."""
        self._has_advanced = False
        self._is_ahead = False
        """Its numbers are of the future, and have not changed: their age is unknown."""

    @property
    def items(self) -> int:
        return 0 if self.reading is None else self.reading.items

    def succeed(self, reading: ExporterReading, every_s: float) -> bool:
        """Take in an answer. True if its numbers are new ones."""
        now_s = time.monotonic()
        is_new = not self.answers or reading.at_s is None or reading.at_s != self._at_s
        if not self.answers:
            # The clock of its host may be wrong: a second look tells.
            unix_s = time.time()
            late_s = 0.0 if reading.at_s is None else unix_s - reading.at_s
            self._is_ahead = late_s < -AHEAD_MOST_S
            self._new_at_s = now_s - min(max(0.0, late_s), unix_s)
        elif is_new:
            self._new_at_s, self._has_advanced, self._is_ahead = now_s, True, False
        self.reading, self._at_s, self.reason, self.failures = reading, reading.at_s, "", 0
        self.name = reading.host.name
        self.answers += 1
        self.next_at_s = now_s + every_s
        return is_new

    def fail(self, reason: str) -> None:
        """Take in that it did not answer."""
        now_s = time.monotonic()
        self.reason = reason
        self.failures += 1
        self.next_at_s = now_s + min(AGAIN_MOST_S, AGAIN_S * 2 ** min(self.failures - 1, 10))
        if self.reading is not None and self._age_s(now_s) > DROPPED_AFTER_S:
            self.reading = None

    def postpone(self, reason: str) -> None:
        """Take in that it could not be asked, for a reason that is not the exporter's."""
        self.next_at_s = time.monotonic() + POSTPONED_S
        if not self.failures:
            self.reason = reason

    @property
    def is_awaited(self) -> bool:
        """Whether an answer can be expected soon."""
        return not self.failures and (self.is_running or bool(self.reason))

    def has_yet_to_answer(self, within_s: float) -> bool:
        """Whether it waits its turn to be asked for the first time, or was asked that recently."""
        if self.answers or not self.is_awaited or self.reason:
            return False
        return not self.begun_at_s or time.monotonic() - self.begun_at_s < within_s

    def host(self) -> FleetHost:
        """What is shown of it."""
        now_s = time.monotonic()
        address = str(self.exporter)
        if self.reading is None:
            state = HostState.DOWN if self.failures else HostState.PENDING
            why = self.reason or "it has not answered yet"
            return without_numbers(address, self.name, address, state, why)
        age_s = self._age_s(now_s)
        reason = self._why_old(age_s)
        return self.reading.host._replace(
            key=address,
            address=address,
            state=HostState.OLD if reason else HostState.LIVE,
            reason=reason,
            age_s=None if self._is_ahead or self.reading.at_s is None else age_s,
        )

    def _age_s(self, now_s: float) -> float:
        return max(0.0, now_s - self._new_at_s)

    def _why_old(self, age_s: float) -> str:
        if self.reason and (self.failures > 1 or age_s > GRACE_S):
            return self.reason
        return self._why_unchanged(age_s)

    def why_unchanged(self) -> str:
        """Why its numbers are old although it answers; empty if they are not."""
        return self._why_unchanged(self._age_s(time.monotonic()))

    def _why_unchanged(self, age_s: float) -> str:
        if self.reading is not None and self.reading.at_s is None:
            return NO_TIME
        if self._is_ahead:
            return "its clock is ahead, so the age of its numbers is not known yet"
        if age_s <= UNCHANGED_AFTER_S:
            return ""
        if self._has_advanced or self.answers > 2:
            return f"its numbers have not changed for {elapsed(age_s)}"
        return f"its numbers are {elapsed(age_s)} old, or its clock is that late"
