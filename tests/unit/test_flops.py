"""FLOPs that the job tells, their rate, and MFU."""

from __future__ import annotations

import decimal
import fractions
import math
import threading
import weakref

import pytest

from tpusmi import chips
from tpusmi.agent import flops, jaxread
from tpusmi.agent.flops import Flops, mfu_percent
from tpusmi.agent.steps import Steps


class Unwilling(fractions.Fraction):
    """A number that does not tell its value."""

    def __float__(self) -> float:
        raise RuntimeError


def rate(total: Flops, steps: list[tuple[float, float]], until_s: float = 0.0) -> float | None:
    """FLOP/s after steps of so many seconds and FLOPs, the agent looking in once a second."""
    ends, now_s = [], 0.0
    for seconds, count in steps:
        now_s += seconds
        ends.append((now_s, count))
    found = None
    for look_s in range(1, 1 + math.ceil(max(now_s, until_s))):
        while ends and ends[0][0] <= look_s:
            total.add(ends.pop(0)[1])
        found = total.per_s(float(look_s))
    return found


def test_a_steady_job_has_the_flops_of_a_step_over_its_time() -> None:
    assert rate(Flops(), [(0.1, 5e12)] * 400) == pytest.approx(5e13, rel=0.03)
    assert rate(Flops(), [(7.0, 7e14)] * 30) == pytest.approx(1e14, rel=0.01)


def test_before_two_changes_of_the_sum_there_is_no_rate() -> None:
    total = Flops()
    assert total.per_s(0.0) is None
    total.add(1e12)
    assert total.per_s(1.0) is None
    assert total.per_s(100.0) is None


def test_the_time_before_the_first_step_when_the_job_compiled_does_not_count() -> None:
    assert rate(Flops(), [(300.0, 1e12)] + [(1.0, 1e12)] * 5) == pytest.approx(1e12)


def test_a_job_that_stalls_gets_slower_instead_of_keeping_its_rate() -> None:
    assert rate(Flops(), [(1.0, 1e12)] * 11, until_s=30.0) == pytest.approx(1e13 / 29)


def test_only_the_last_minute_counts() -> None:
    found = rate(Flops(), [(1.0, 9e12)] * 50 + [(1.0, 1e12)] * 90)
    assert found == pytest.approx(1e12)


def test_of_slow_steps_the_last_twenty_count() -> None:
    assert rate(Flops(), [(100.0, 9e12)] * 10 + [(100.0, 1e12)] * 40) == pytest.approx(1e10)


@pytest.mark.parametrize("after", [5, 10, 30, 100])
@pytest.mark.parametrize("pause_s", [10.0, 65.0, 200.0])
def test_after_a_pause_the_rate_is_that_of_the_steps(pause_s: float, after: int) -> None:
    """FLOP/s are the FLOPs of a step times the steps per second, which are beside it."""
    total, steps, now_s = Flops(), Steps(), 0.0
    per_s, times = None, None
    for period in [0.5] * 200 + [pause_s] + [0.5] * after:
        now_s += period
        steps._marks.append(now_s)
        total.add(1e12)
        if now_s % 1.0 == 0.0:  # the agent looks once a second
            times = steps.times(now_s)
            per_s = total.per_s(now_s, None if times is None else times.since_s)
    assert times is not None
    assert per_s == pytest.approx(1e12 * times.per_s, rel=0.1)


def test_few_changes_are_kept_when_steps_are_very_slow() -> None:
    total = Flops()
    for look_s in range(20_000):
        total.add(1e12)
        found = total.per_s(float(look_s), since_s=0.0)
    assert found == pytest.approx(1e12)
    assert len(total._changes) == flops.CHANGES_MOST


def test_an_agent_that_looks_often_remembers_little() -> None:
    total = Flops()
    for i in range(100_000):
        total.add(1.0)
        total.per_s(i / 20)
    assert len(total._changes) <= flops.WINDOW_S / flops.RESOLUTION_S + 2


@pytest.mark.parametrize(
    "wrong",
    [
        *(math.nan, -1.0, math.inf, "12", None, [1], {}, 10**400, 1j, decimal.Decimal("nan")),
        *(True, False, Unwilling(1, 3)),
    ],
    ids=lambda wrong: type(wrong).__name__,
)
def test_what_is_no_number_of_flops_is_ignored_with_one_warning(wrong: object) -> None:
    total = Flops()
    for _ in range(3):
        assert total.add(wrong) == 0.0
    assert total.passed == 0.0
    assert list(total.notes) == ["flops_ignored"]


def test_an_object_that_would_wait_for_a_device_is_not_asked_for_its_value() -> None:
    class Array:
        def __float__(self) -> float:
            raise AssertionError("asked")

        __lt__ = __le__ = __gt__ = __ge__ = __float__

    total = Flops()
    total.add(Array())
    assert "flops_ignored" in total.notes


def test_an_object_that_is_gone_is_ignored() -> None:
    total = Flops()
    assert total.add(weakref.proxy(Flops())) == 0.0
    assert list(total.notes) == ["flops_ignored"]


def test_numbers_of_other_types_count() -> None:
    from fractions import Fraction

    total = Flops()
    total.add(10**15)
    total.add(Fraction(1, 2))
    assert total.passed == 1e15 + 0.5
    assert total.notes == {}


def test_what_a_step_tells_wins_over_what_is_tracked() -> None:
    total = Flops()
    for second in range(10):
        total.tracked += 7e12
        total.per_s(float(second))
    assert total.per_s(10.0) == pytest.approx(7e12)
    for second in range(10, 20):
        total.tracked += 7e12
        total.add(1e12)
        total.per_s(float(second))
    assert total.per_s(20.0) == pytest.approx(1e12)


@pytest.mark.parametrize("nothing", [0, 0.0, False])
def test_a_step_that_tells_of_no_work_leaves_what_is_tracked(nothing: float) -> None:
    total = Flops()
    for second in range(10):
        total.tracked += 7e12
        total.add(nothing)
        total.per_s(float(second))
    assert total.per_s(10.0) == pytest.approx(7e12)


def test_a_with_block_tells_its_flops_once_when_it_ends_well() -> None:
    steps = Steps()
    with steps.step(flops=1e12):
        assert steps.flops.passed == 0.0
    assert steps.flops.passed == 1e12
    with pytest.raises(KeyError), steps.step(flops=1e12):
        raise KeyError
    assert steps.flops.passed == 1e12
    with steps.step():
        pass
    steps.step()
    assert steps.flops.passed == 1e12


def test_flops_that_were_forgotten_leave_nothing() -> None:
    steps = Steps()
    for _ in range(3):
        steps.step(flops=1e12)
        steps.flops.per_s(1.0)
    steps.forget()
    assert (steps.flops.passed, steps.flops.tracked, steps.flops.per_s(2.0)) == (0.0, 0.0, None)


def test_what_a_step_told_wrongly_before_is_no_warning_of_the_next_start() -> None:
    total = Flops()
    total.add("x")
    total.notes.setdefault("flops_unknown", "of a function")
    total.forget()
    assert list(total.notes) == ["flops_unknown"]


def test_no_flops_are_lost_between_threads() -> None:
    steps = Steps()
    threads = [
        threading.Thread(target=lambda: [steps.step(flops=1.0) for _ in range(20_000)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert steps.flops.passed == 80_000


@pytest.mark.parametrize("generation", chips.GENERATIONS, ids=lambda g: g.name)
def test_mfu_is_over_the_bf16_peak_of_all_devices_of_the_job(generation: chips.Generation) -> None:
    of_chip = generation.bf16_flops_per_s
    for kind in generation.jax_kinds:
        peak = jaxread.peak_flops_per_s(kind, 16 * generation.devices_per_chip)
        assert mfu_percent(4 * of_chip, peak) == pytest.approx(25.0)


def test_mfu_is_unknown_where_the_peak_or_the_flops_are() -> None:
    assert jaxread.peak_flops_per_s("cpu", 8) is None
    assert jaxread.peak_flops_per_s(None, 8) is None
    assert mfu_percent(1e12, None) is None
    assert mfu_percent(None, 1e15) is None
