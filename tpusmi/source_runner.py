"""One source on a clock of its own: its thread, its newest outcome, and whether it hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from tpusmi.merge.witnesses import SHARED
from tpusmi.model import FAILED, History, Missing, Outcome
from tpusmi.text import clean

ONCE_DEADLINE_S = 2.0
"""A one-shot run waits no longer than this for all its sources together."""
HUNG_AFTER_PERIODS = 5
PIECE_S = 0.25
"""How much of a limit is waited for at a time."""


class Source(Protocol):
    """A place to read facts from."""

    name: str
    period_s: float

    def read(self, now_s: float) -> Outcome:
        """The facts at present. Answers; does not raise."""
        ...

    def close(self) -> None:
        """Let go of what it holds open. Another read may still be under way."""
        ...


class Runner:
    """A source that is read on a thread of its own, or when it is asked."""

    def __init__(self, source: Source, history: History, record: Callable[[], object]) -> None:
        self.end = threading.Event()
        self._source = source
        self._history = history
        self._record = record
        self._newest: Outcome | None = None
        self._is_recorded = True
        """Whether the history has the readings of the newest outcome."""
        self._answered_at_s = time.monotonic()
        self._asking: threading.Event | None = None
        """Set once the last question is answered; None for a source on a clock of its own."""

    def start(self) -> None:
        """Read the source again and again, on a thread. Where there is none it has FAILED."""
        self._asking = None
        name = f"tpusmi-{self._source.name}"
        try:
            threading.Thread(target=self._run, name=name, daemon=True).start()
        except RuntimeError as error:
            self.refuse(error)

    def stop(self) -> None:
        """Let the thread end after the read that is under way, and the source let go."""
        self.end.set()
        self._source.close()

    @property
    def is_asked(self) -> bool:
        """True while an answer is owed: a source that hangs is not asked twice."""
        return self._asking is not None and not self._asking.is_set()

    def question(self) -> Callable[[], None]:
        """What reads the source once. The answer is owed from now on."""
        done = self._asking = threading.Event()
        return lambda: self._answer(done)

    def wait(self, limit_s: float) -> float:
        """Until the answer is there that is owed, if any is. What is left of the limit, of which a
        moment in which this process stood still, as after Ctrl-Z, takes no more than PIECE_S.
        """
        left_s, asking = limit_s, self._asking
        while left_s > 0 and asking is not None and not asking.is_set():
            piece_s, began_s = min(left_s, PIECE_S), time.monotonic()
            is_answered = asking.wait(piece_s)
            left_s -= min(piece_s, time.monotonic() - began_s) if is_answered else piece_s
        return left_s

    def refuse(self, error: RuntimeError) -> None:
        """No thread can be started: the source has FAILED."""
        self._newest = Outcome(self._source.name, FAILED, f"not asked: {error}")
        if self._asking is not None:
            self._asking.set()

    @property
    def has_answered(self) -> bool:
        return self._newest is not None

    @property
    def name(self) -> str:
        return self._source.name

    def age_s(self, now_s: float) -> float | None:
        """How long ago the source answered last; None if it never did."""
        return None if self._newest is None else max(0.0, now_s - self._answered_at_s)

    def outcome(self, now_s: float) -> Outcome:
        """The newest outcome; FAILED, with its last results, when the source no longer answers."""
        self._is_recorded = True
        silent_s = now_s - self._answered_at_s
        newest = self._newest
        if newest is not None and not self._is_hung(silent_s):
            return newest
        message = f"has not answered for {silent_s:.{1 if newest is None else 0}f} s"
        if newest is None:
            return Outcome(self._source.name, FAILED, message, silent_s)
        # Its servers answered then: it is the source itself that is silent now.
        witness = Missing(self._source.name, message)
        missing = (*newest.missing, witness) if self._source.name in SHARED else newest.missing
        return newest._replace(status=FAILED, message=message, took_s=silent_s, missing=missing)

    def _is_hung(self, silent_s: float) -> bool:
        """Whether it owes an answer: to the question that was asked of it, else to its clock.

        How old an answer to a question is tells only how long the other sources took.
        """
        if self._asking is not None:
            return self.is_asked
        return silent_s > max(ONCE_DEADLINE_S, HUNG_AFTER_PERIODS * self._source.period_s)

    def _run(self) -> None:
        while not self.end.is_set():
            self._answer()
            self.end.wait(self._source.period_s)

    def _answer(self, done: threading.Event | None = None) -> None:
        started = time.monotonic()
        try:
            outcome = self._source.read(started)
            if not self._is_recorded:  # the screen is paused, or drawn more seldom
                self._record()
        except Exception as error:  # noqa: BLE001  # must not take the screen with it
            message = clean(f"{type(error).__name__}: {error}", 200)
            outcome = Outcome(self._source.name, FAILED, message, time.monotonic() - started)
        if self.end.is_set():
            self._source.close()  # the read may have opened again what stop() has closed
        self._history.add(outcome.past)
        self._newest, self._is_recorded = outcome, not outcome.readings
        self._answered_at_s = time.monotonic()
        if done is not None:
            done.set()
