"""Reads more about one host, on threads of its own: whatever hangs there delays no key."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from textual.message import Message

from tpusmi.fleet.fleet_figures import FleetHost, HostHistory
from tpusmi.fleet.fleet_source import FleetError, FleetSource
from tpusmi.report.quantities import QUANTITIES
from tpusmi.text import clean

METRICS = tuple(quantity.metric for quantity in QUANTITIES)
THREADS_MOST = 4
"""Threads at a time: those that hang, and the ones that are needed."""
GIVEN_UP_S = 20.0
"""A question that takes longer is asked again, on another thread."""
SENTENCE_MOST = 300

Post = Callable[[Message], object]
Question = tuple[object, ...]
"""Its kind, the key of the host, and what else it is about."""


@dataclass
class HostDetails(Message):
    """Everything that is known of a host, or why it cannot be read."""

    key: str
    moment_s: float | None
    """The time that it is of; None for now."""
    answer: FleetHost | str


@dataclass
class HostPast(Message):
    """The history of a host over a span, or why it cannot be read."""

    key: str
    span_s: int
    moment_s: float | None
    answer: Mapping[str, HostHistory] | str


class HostReading:
    """At most one question of each kind at a time, as long as it is answered."""

    def __init__(self, source: FleetSource, post: Post) -> None:
        self._source, self._post = source, post
        self._asked: dict[Question, float] = {}
        """When each question that is open was asked, by CLOCK_MONOTONIC."""
        self._threads: list[threading.Thread] = []

    def ask_details(self, host: FleetHost, moment_s: float | None) -> bool:
        """Read all metrics of it; answered by HostDetails. False if that is not possible yet."""

        def work() -> Message:
            try:
                answer: FleetHost | str = self._source.details(host, moment_s)
            except FleetError as error:
                answer = clean(str(error), SENTENCE_MOST)
            return HostDetails(host.key, moment_s, answer)

        return self._begin(("details", host.key, moment_s), work)

    def ask_past(self, host: FleetHost, span_s: int, points: int, moment_s: float | None) -> bool:
        """Read its history up to then; answered by HostPast. False if that is not possible yet."""

        def work() -> Message:
            try:
                answer: Mapping[str, HostHistory] | str = self._source.history(
                    host, METRICS, span_s, points, moment_s
                )
            except FleetError as error:
                answer = clean(str(error), SENTENCE_MOST)
            return HostPast(host.key, span_s, moment_s, answer)

        return self._begin(("past", host.key, span_s, moment_s), work)

    def waited_s(self, host: FleetHost) -> float:
        """How long the oldest open question about it has waited; 0 without one."""
        now = time.monotonic()
        # A copy: threads take theirs out when they are answered.
        asked = self._asked.copy()
        since = [at_s for question, at_s in asked.items() if host.key in question]
        return now - min(since) if since else 0.0

    def _begin(self, question: Question, work: Callable[[], Message]) -> bool:
        """False if it is on its way already, or no thread is free."""
        now = time.monotonic()
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        is_open = now - self._asked.get(question, -GIVEN_UP_S) < GIVEN_UP_S
        if is_open or len(self._threads) >= THREADS_MOST:
            return False
        self._asked[question] = now

        def run() -> None:
            message = work()
            if self._asked.get(question) == now:
                self._asked.pop(question, None)
            self._post(message)

        thread = threading.Thread(target=run, name="tpusmi-host", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads: the next tick tries again
            self._asked.pop(question, None)
            return False
        self._threads.append(thread)
        return True
