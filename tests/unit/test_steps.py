"""Steps of a loop: what lies between their ends, what is inside of `with`, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from support.clocks import Clock, stopped

from tpusmi.agent import steps
from tpusmi.agent.steps import Durations, Steps, StepTimes


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return stopped(monkeypatch, "tpusmi.agent.steps.monotonic")


def known(taken: Steps, clock: Clock) -> StepTimes:
    found = taken.times(clock.now_s)
    assert found is not None
    return found


def bodies(times: StepTimes) -> Durations:
    assert times.body is not None
    return times.body


def dispatch(taken: Steps, clock: Clock, count: int, body_s: float, rest_s: float) -> None:
    """A loop whose body only dispatches: the result is waited for after it."""
    for _ in range(count):
        with taken.step():
            clock.now_s += body_s
        clock.now_s += rest_s


def test_a_body_that_only_dispatches_is_not_the_time_of_a_step(clock: Clock) -> None:
    taken = Steps()
    dispatch(taken, clock, 100, 0.0002, 0.0378)
    times = known(taken, clock)
    assert times.period == pytest.approx([0.038] * 5)
    assert bodies(times) == pytest.approx([0.0002] * 5)
    assert times.per_s == pytest.approx(1 / times.period.mean)


def test_a_plain_loop_has_no_body(clock: Clock) -> None:
    taken = Steps()
    for _ in range(5):
        clock.now_s += 0.1
        taken.step()
    times = known(taken, clock)
    assert times.period.mean == pytest.approx(0.1)
    assert times.body is None


def test_the_first_body_which_compiles_is_in_neither_number(clock: Clock) -> None:
    taken = Steps()
    dispatch(taken, clock, 1, 60.0, 0.0)
    assert taken.times(clock.now_s) is None
    dispatch(taken, clock, 3, 0.1, 0.2)
    times = known(taken, clock)
    assert times.period.max == pytest.approx(0.3)
    assert bodies(times).max == pytest.approx(0.1)


def test_one_long_pause_between_steps_does_not_move_the_median(clock: Clock) -> None:
    taken = Steps()
    dispatch(taken, clock, 30, 0.9, 0.1)
    clock.now_s += 20.0  # an evaluation
    dispatch(taken, clock, 30, 0.9, 0.1)
    times = known(taken, clock)
    assert (times.period.p50, times.period.p95) == pytest.approx((1.0, 1.0))
    assert times.period.max == pytest.approx(21.0)
    assert bodies(times).max == pytest.approx(0.9)


def test_the_agent_may_look_at_any_moment_of_a_step(clock: Clock) -> None:
    taken = Steps()
    dispatch(taken, clock, 3, 0.1, 0.2)
    for _ in range(3):
        taken.times(clock.now_s)
        marked = taken.step()
        taken.times(clock.now_s)  # sees an end that is none
        with marked:
            taken.times(clock.now_s)
            clock.now_s += 0.1
            taken.times(clock.now_s)
        clock.now_s += 0.2
    times = known(taken, clock)
    assert times.period == pytest.approx([0.3] * 5)
    assert bodies(times) == pytest.approx([0.1] * 5)
    assert taken.count == 6


@pytest.mark.parametrize("looks", [True, False], ids=["with a look between", "without"])
def test_a_body_that_raises_is_no_step_and_the_next_ones_are_right(
    clock: Clock, looks: bool
) -> None:
    taken = Steps()
    dispatch(taken, clock, 3, 0.1, 0.2)
    with suppress(KeyError), taken.step():
        clock.now_s += 0.3
        raise KeyError
    if looks:
        taken.times(clock.now_s)
    taken.step()  # called plainly for once
    dispatch(taken, clock, 2, 0.1, 0.2)
    times = known(taken, clock)
    assert taken.count == 6
    assert times.period.max == pytest.approx(0.5)
    assert bodies(times) == pytest.approx([0.1] * 5)


def test_lost_marks_leave_no_wrong_time(clock: Clock) -> None:
    taken = Steps()
    dispatch(taken, clock, 10, 0.1, 0.2)
    taken.times(clock.now_s)
    for lost in range(3):  # the oldest of what is left is an end, a begin, or a step's mark
        dispatch(taken, clock, steps.MARKS_MOST + lost, 0.1, 0.2)
        times = known(taken, clock)
        assert times.period == pytest.approx([0.3] * 5)
        assert bodies(times) == pytest.approx([0.1] * 5)


def test_the_rate_of_more_steps_than_there_are_marks_is_counted(clock: Clock) -> None:
    taken = Steps()
    taken.times(clock.now_s)
    for _ in range(2):
        clock.now_s += 0.9  # most of the time between two bursts has no marks
        for _ in range(10_000):
            taken.step()
            clock.now_s += 1e-5
        times = known(taken, clock)
        assert times.per_s == pytest.approx(10_000)
        assert times.period.mean == pytest.approx(1e-4)
        assert times.period.p50 == pytest.approx(1e-5)
        assert times.period.max >= times.period.mean


def test_plain_and_with_steps_take_turns_in_one_loop(clock: Clock) -> None:
    taken = Steps()
    for _ in range(10):
        dispatch(taken, clock, 1, 0.1, 0.2)
        clock.now_s += 0.3
        taken.step()
    times = known(taken, clock)
    assert taken.count == 20
    assert times.period.mean == pytest.approx(0.3, rel=0.1)
    assert bodies(times) == pytest.approx([0.1] * 5)


def test_flops_of_a_step_rest_on_its_period(clock: Clock) -> None:
    taken = Steps()
    rates = []
    for _ in range(40):
        with taken.step(flops=1e9):
            clock.now_s += 0.001
        clock.now_s += 0.999
        rates.append(taken.flops.per_s(clock.now_s))
    assert rates[-1] == pytest.approx(1e9)


def plain(taken: Steps) -> None:
    taken.step()


def within(taken: Steps) -> None:
    with taken.step():
        pass


@pytest.mark.parametrize(("one", "most_us"), [(plain, 20.0), (within, 40.0)])
def test_a_step_costs_microseconds(one: Callable[[Steps], None], most_us: float) -> None:
    taken = Steps()
    best_s = float("inf")
    for _ in range(5):
        began_s = time.thread_time()
        for _ in range(10_000):
            one(taken)
        best_s = min(best_s, time.thread_time() - began_s)
    assert best_s / 10_000 * 1e6 < most_us
