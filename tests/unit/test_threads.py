"""The agent's own threads and events: every wait has a limit, whatever is done twice."""

from __future__ import annotations

import time

import pytest

from tpusmi.agent import threads
from tpusmi.agent.threads import Event, Thread


class Waiter(Thread):
    """Waits for an event."""

    def __init__(self, until: Event, error: BaseException | None = None) -> None:
        super().__init__()
        self.was_current = False
        self._until, self._error = until, error

    def run(self) -> None:
        """Wait, and fail if told to."""
        self.was_current = self.is_current()
        self._until.wait(60)
        if self._error is not None:
            raise self._error


def test_an_event_is_waited_for_no_longer_than_said() -> None:
    event = Event()
    began_s = time.monotonic()
    assert not event.wait(0.01)
    assert not event.wait(-5)
    assert time.monotonic() - began_s < 5
    assert not event.is_set()


def test_an_event_that_has_happened_stays_so_for_all_that_wait() -> None:
    event = Event()
    waiting = [Waiter(event) for _ in range(5)]
    for thread in waiting:
        thread.start()
    event.set()
    event.set()
    for thread in waiting:
        thread.join(20)
    assert [thread.is_alive() for thread in waiting] == [False] * 5
    assert event.wait(0)
    assert event.is_set()


def test_a_thread_is_alive_from_its_start_to_its_end_and_knows_itself() -> None:
    event = Event()
    thread = Waiter(event)
    thread.join(0)  # one that was never started
    assert not thread.is_alive()
    thread.start()
    thread.join(0.01)
    assert thread.is_alive()
    assert not thread.is_current()
    event.set()
    thread.join(20)
    assert not thread.is_alive()
    assert thread.was_current


def test_a_thread_that_raises_has_ended() -> None:
    event = Event()
    event.set()
    thread = Waiter(event, SystemExit())
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_a_thread_that_cannot_be_had_is_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoMore:
        allocate_lock = staticmethod(threads._thread().allocate_lock)

        @staticmethod
        def start_new_thread(*_: object) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_thread", lambda: NoMore)
    thread = Waiter(Event())
    with pytest.raises(RuntimeError):
        thread.start()
    assert not thread.is_alive()
