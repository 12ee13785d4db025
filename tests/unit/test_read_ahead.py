"""The first snapshot of a fleet, read while the dashboard is loaded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tpusmi.fleet.fleet_figures import FleetSnapshot
from tpusmi.fleet.fleet_source import FleetError
from tpusmi.fleet.read_ahead import ReadAhead


class CountingSource:
    label = "a source"
    no_past = ""

    def __init__(self, answer: Callable[[int], FleetSnapshot]) -> None:
        self._answer = answer
        self.asked: list[str] = []
        self.moments: list[float | None] = []

    def snapshot(self, at_s: float | None = None) -> FleetSnapshot:
        self.moments.append(at_s)
        self.asked.append(threading.current_thread().name)
        return self._answer(len(self.asked))

    def details(self, host: Any) -> Any:
        raise AssertionError

    def history(self, *arguments: Any) -> Any:
        raise AssertionError

    def close(self) -> None:
        self.asked.append("closed")


def fleet_at(at_s: float) -> FleetSnapshot:
    return FleetSnapshot(at_s=at_s, source="a source", hosts=(), problems=(), took_s=0.0)


def test_the_first_snapshot_is_read_before_it_is_asked_for_and_the_others_then() -> None:
    source = CountingSource(fleet_at)
    ahead = ReadAhead(source)
    assert [ahead.snapshot().at_s for _ in range(3)] == [1.0, 2.0, 3.0]
    assert source.asked[0] == "tpusmi-ahead" != source.asked[1] == source.asked[2]
    ahead.close()
    assert source.asked[3:] == ["closed"]


def test_its_error_is_raised_where_it_is_asked_for_and_once() -> None:
    def fails_first(number: int) -> FleetSnapshot:
        if number == 1:
            raise FleetError("no")
        return fleet_at(number)

    ahead = ReadAhead(CountingSource(fails_first))
    with pytest.raises(FleetError, match="no"):
        ahead.snapshot()
    assert ahead.snapshot().at_s == 2.0


def test_without_threads_it_is_read_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    source = CountingSource(fleet_at)
    assert ReadAhead(source).snapshot().at_s == 1.0
    assert source.asked == [threading.current_thread().name]


def test_the_first_answer_can_be_of_an_earlier_time() -> None:
    source = CountingSource(lambda n: fleet_at(float(n)))
    ahead = ReadAhead(source, 7.0)
    assert ahead.snapshot(7.0).at_s == 1.0
    assert ahead.snapshot(None).at_s == 2.0
    assert source.moments == [7.0, None]


def test_an_answer_of_another_time_is_not_given_in_its_place() -> None:
    source = CountingSource(lambda n: fleet_at(float(n)))
    ahead = ReadAhead(source, 7.0)
    ahead.snapshot(8.0)
    assert 8.0 in source.moments
