"""This process's part in the slice: what it tells the other hosts of its job, and what it reads of
them for the viewers of this one.

Everything that talks to the coordinator is in a thread of its own, which is never waited for: a
coordinator that hangs, or is gone, costs the job nothing. Any error ends it for good.
"""

from __future__ import annotations

import os
import time
from typing import Any

from tpusmi.agent import slice_service
from tpusmi.agent.own_process import block_signals
from tpusmi.agent.segment import Segment
from tpusmi.agent.slice_members import Members
from tpusmi.agent.slice_service import CoordinationService
from tpusmi.agent.slice_text import interval_of, place_of, text_of
from tpusmi.agent.threads import SLICE_SHARE, Event, Pace, Thread
from tpusmi.model.slice_hosts import SILENT_PERIODS
from tpusmi.text import clean
from tpusmi.wire.layout import SLICE_JSON, SLICE_NONE
from tpusmi.wire.slice_summary import VERSION, Head, packed, period_s

DEADLINE_S = 10.0
"""A coordinator that does not answer for this long is not asked again. When it answers after all,
this process takes back what it says: it has not stopped working, as one that falls silent has.
"""
NO_ROOM = "what all hosts say has no room in the segment"
END_S = 0.3
"""The time to take back what this process says."""
AGAIN_PERIODS = 4
"""How often a process looks whether the one that reads in its place still lives."""
LEAVING_S, LEAVING_LOOK_S = 2.0, 0.1
"""How long after an error the job may be seen to have left the service, which was the reason, and
how often to look.
"""
GOLDEN = 0.6180339887498949
JITTER = 0.1
"""Share of the period by which each differs: the hosts must not ask in step."""


class SliceThread(Thread):
    """Puts and reads until it is stopped, or until an error."""

    def __init__(self, service: CoordinationService, segment: Segment) -> None:
        super().__init__()
        self.failure: str | None = None
        """Why it ended; None while it works, and when the job has left the service."""
        self.payload: tuple[int, bytes, float] | None = None
        """Kind, bytes and time of what is to be written into the segment next."""
        self.cpu_s = 0.0
        self._service = service
        self._segment = segment
        self._members = Members(service.index)
        self._pace = Pace(period_s(service.count), SLICE_SHARE)
        self._end = Event()
        self._call_began_s: float | None = None
        self._owed_since_s: float | None = None
        """Beginning of the call that the coordinator owed an answer to at the last look."""
        self._looked_at_s = 0.0
        self._owed_s = 0.0
        self._rounds = 0
        self._sequence = 0
        self._reads_next_in = 0

    def run(self) -> None:
        """The thread."""
        block_signals()
        try:
            self._work()
        except Exception as error:  # noqa: BLE001  # gRPC's errors have many types
            if not self._is_leaving() and not self._end.is_set():
                self.failure = self.failure or _sentence(error)
        self.payload = SLICE_NONE, b"", time.monotonic()

    def give_up(self, now_s: float) -> None:
        """Let it be, if the coordinator has not answered in time. For the other thread.

        One look counts for half of that time at most: where this host itself stood still, the
        answer may be there already.
        """
        began_s = self._call_began_s
        if began_s is None or began_s != self._owed_since_s:
            self._owed_since_s, self._owed_s = began_s, 0.0
            self._looked_at_s = now_s if began_s is None else began_s
        self._owed_s += min(now_s - self._looked_at_s, DEADLINE_S / 2)
        self._looked_at_s = now_s
        if self._owed_s >= DEADLINE_S and self.failure is None:
            self.fail(f"the coordinator has not answered for {DEADLINE_S:.0f} s")

    def fail(self, why: str) -> None:
        """Let it end for good. For the other thread."""
        self.failure = why
        self.payload = SLICE_NONE, b"", time.monotonic()
        self._end.set()

    def stop(self) -> None:
        """End it; waits END_S at most, once, and not for a coordinator that does not answer."""
        is_first = not self._end.is_set()
        self._end.set()
        if is_first:
            self.join(END_S)

    def _work(self) -> None:
        # Processes that start together must not ask together.
        if self._end.wait(self._share() * self._pace.period_s):
            return
        while self._service.is_current():
            started, cpu = time.monotonic(), time.thread_time()
            self._round()
            self.cpu_s = time.thread_time()
            if self._pace.spent(started, self.cpu_s - cpu):
                self._put(self._place)
            if self._end.wait(self._wait_s()):
                break
        if self.failure is not None:  # as in many others: they must not all ask at once
            time.sleep(self._share() * self._pace.period_s)
        if self._sequence and self._service.is_current():
            self._service.remove()

    def _is_leaving(self) -> bool:
        """Whether the job leaves the service. Its calls fail a moment before that can be seen."""
        until_s = time.monotonic() + LEAVING_S
        while self._service.is_current() and time.monotonic() < until_s:
            if self._end.wait(LEAVING_LOOK_S):
                break
        return not self._service.is_current()

    def _wait_s(self) -> float:
        self._rounds += 1
        jitter = JITTER * (2 * self._share() - 1) * self._pace.period_s
        return self._pace.wait_s(time.monotonic()) + jitter

    def _share(self) -> float:
        """A share of the period: another one for each process, and in each round."""
        return (self._rounds + self._service.index) * GOLDEN % 1.0

    def _round(self) -> None:
        place = self._place
        self._put(place)
        self._reads_next_in -= 1
        if place and self._reads_next_in <= 0 and not self._end.is_set():
            self._read(place)

    @property
    def _place(self) -> int:
        path = self._segment.path
        return 0 if path is None else place_of(os.path.dirname(path))

    def _put(self, place: int) -> None:
        """Tell the newest sample. An agent that takes no new ones has stopped reporting."""
        values = self._segment.values
        if values is None or self._end.is_set():
            return
        sample_age_s = max(0.0, time.monotonic() - values[0])
        if sample_age_s > SILENT_PERIODS * max(self._pace.period_s, interval_of(values)):
            return
        self._sequence += 1
        head = Head(
            version=VERSION,
            sequence=self._sequence,
            wall_s=time.time(),
            period_s=round(self._pace.period_s, 3),
            place=place,
        )
        self._called(self._service.put, text_of(head, values, sample_age_s, self._segment.facts))

    def _read(self, place: int) -> None:
        texts = self._called(self._service.texts)
        now_s = time.monotonic()
        self._members.note(texts, now_s, time.time())
        if self._members.has_other_reader(place, now_s):
            self._reads_next_in = AGAIN_PERIODS
            if self.payload is not None and self.payload[0] == SLICE_JSON:
                self.payload = SLICE_NONE, b"", now_s
            return
        s = self._service
        blob = (VERSION, s.count, s.index, s.job, self._pace.period_s)
        try:
            self.payload = SLICE_JSON, packed(blob, self._members.lines(now_s)), now_s
        except OverflowError:
            self.fail(NO_ROOM)

    def _called(self, call: Any, *arguments: Any) -> Any:
        self._call_began_s = time.monotonic()
        try:
            return call(*arguments)
        finally:
            self._call_began_s = None


class OwnSlice:
    """The slice for the sampler: everything here returns at once, and raises nothing."""

    def __init__(self) -> None:
        self.wish = True
        """False where the job does without: start(slice=False)."""
        self.failure: str | None = None
        """Why it is off for this job, if an error is the reason."""
        self._service: CoordinationService | None = None
        self._thread: SliceThread | None = None
        self._written: object = None

    @property
    def cpu_s(self) -> float:
        """CPU time of its thread so far."""
        return 0.0 if self._thread is None else self._thread.cpu_s

    @property
    def notes(self) -> dict[str, str]:
        """The warning that it is off, by its code."""
        notes = {}
        if self.failure:
            notes["slice_off"] = f"the other hosts of this job are not read: {self.failure}"
        return notes

    @property
    def _is_on(self) -> bool:
        return self.wish and self.failure is None and os.environ.get("TPUSMI_SLICE", "1") != "0"

    def find(self) -> int:
        """End what was, and look for the service: how many processes there are to be room for."""
        self.stop()
        self._service = slice_service.find() if self._is_on else None
        if self._service is not None and self._service.trouble:
            self.failure, self._service = self._service.trouble, None
        return 1 if self._service is None else self._service.count

    def has_moved(self) -> bool:
        """True once the job has joined a service after find(): its first one, or another."""
        now = slice_service.find() if self._is_on else None
        before = self._service
        return now is not None and (before is None or now.client is not before.client)

    def begin(self, segment: Segment) -> None:
        """Begin with the service that was found."""
        if self._service is None:
            return
        thread = SliceThread(self._service, segment)
        try:
            thread.start()
        except RuntimeError as error:  # no more threads
            self.failure = str(error)
            return
        self._thread = thread

    def publish(self, segment: Segment) -> None:
        """Write what the thread has read, if it is new."""
        thread = self._thread
        if thread is None or segment.trouble is not None:
            return
        thread.give_up(time.monotonic())
        if self.failure is None and thread.failure is not None:
            self.failure = thread.failure
            segment.warn("slice_off", self.notes["slice_off"])  # with the slice, not seconds later
        payload = thread.payload
        if payload is None or payload is self._written:
            return
        self._written = payload
        if not segment.write_slice(*payload):
            thread.fail(NO_ROOM)

    def stop(self) -> None:
        """End the thread; waits a moment at most."""
        if self._thread is not None:
            self._thread.stop()


def _sentence(error: Exception) -> str:
    return clean(f"{type(error).__name__}: {error}".partition("\n")[0], 160)
