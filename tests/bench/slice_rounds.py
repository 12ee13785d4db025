"""Part of slice.py: the slice's work in one process, paused, and more often than usual."""

from __future__ import annotations

import threading
import time
from typing import Any


class Rounds:
    """The rounds of this process's slice thread: more often than usual, or paused."""

    def __init__(self, times: float) -> None:
        from tpusmi.agent.own_slice import SliceThread
        from tpusmi.agent.segment import Segment
        from tpusmi.wire.slice_summary import period_s

        self.costs: list[float] = []
        """CPU time of each."""
        self.writes: list[float] = []
        """CPU time of each write into the segment."""
        self._allowed = threading.Event()
        self._allowed.set()
        make_round, wait_s, write = SliceThread._round, SliceThread._wait_s, Segment.write_slice

        def allowed_round(thread: SliceThread) -> None:
            self._allowed.wait()
            before_s = time.thread_time()
            make_round(thread)
            self.costs.append(time.thread_time() - before_s)

        def shorter_wait(thread: SliceThread) -> float:
            wait_s(thread)  # so that it counts the rounds
            return period_s(thread._service.count) / times

        def timed_write(segment: Segment, *arguments: Any) -> bool:
            before_s = time.thread_time()
            try:
                return write(segment, *arguments)
            finally:
                self.writes.append(time.thread_time() - before_s)

        SliceThread._round = allowed_round  # type: ignore[method-assign]
        SliceThread._wait_s = shorter_wait  # type: ignore[method-assign]
        Segment.write_slice = timed_write  # type: ignore[method-assign]

    def allow(self, is_on: bool) -> None:
        """Let it work, or let it wait after the round that is under way."""
        if is_on:
            self._allowed.set()
        else:
            self._allowed.clear()

    def forget(self) -> None:
        """Begin to count."""
        self.costs.clear()
        self.writes.clear()
