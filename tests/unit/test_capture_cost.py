"""The cost of a capture: rates and the pause, from the samples of a job's agent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tpusmi.agent.segment import doubles
from tpusmi.model import Host
from tpusmi.profiler.at_once import at_once
from tpusmi.profiler.cost import MeasuredCost, cost_of
from tpusmi.trace.figures import CaptureCost
from tpusmi.trace.troubles import CaptureError
from tpusmi.wire.reader import Sample

BEGAN_S, ENDED_S = 100.0, 103.0


def sampled(
    steps_at: Callable[[float], float], longest: Callable[[float], float], until_s: int = 160
) -> list[Sample]:
    """A sample each second, half a second after a step has ended."""
    return [
        Sample(
            sequence=i,
            at_s=i + 0.5,
            wall_s=i + 0.5,
            process={
                "steps": steps_at(i),
                "since_last_step_s": 0.5,
                "step_time_s.p50": 0.1,
                "step_time_s.max": longest(i),
            },
            devices=(),
        )
        for i in range(40, until_s)
    ]


def slowed(at_s: float) -> float:
    """Ten steps a second, and two while the capture lasts."""
    lost = 8 * max(0.0, min(at_s, ENDED_S) - BEGAN_S)
    return 10 * at_s - lost


def test_the_rates_are_those_before_during_and_after_the_capture() -> None:
    cost = cost_of(sampled(slowed, lambda at_s: 0.1 if at_s < 101 else 1.6), BEGAN_S, ENDED_S)
    assert cost.steps_per_s_before == pytest.approx(10)
    assert cost.steps_per_s_during == pytest.approx(2)
    assert cost.steps_per_s_after == pytest.approx(10)
    assert cost.paused_s == pytest.approx(1.5)


def test_a_capture_that_stops_the_job_altogether_shows_no_step_and_not_null() -> None:
    def stopped(at_s: float) -> float:
        return 10 * (at_s - max(0.0, min(at_s, ENDED_S) - BEGAN_S))

    assert cost_of(sampled(stopped, lambda _: 3.1), BEGAN_S, ENDED_S).steps_per_s_during == 0


def test_a_long_step_before_the_capture_hides_its_pause() -> None:
    cost = cost_of(sampled(slowed, lambda _: 9.0), BEGAN_S, ENDED_S)
    assert cost.paused_s is None
    assert cost.steps_per_s_during == pytest.approx(2)


def test_a_long_step_long_after_the_capture_is_not_its_pause() -> None:
    cost = cost_of(sampled(slowed, lambda at_s: 30.0 if at_s > 120 else 0.15), BEGAN_S, ENDED_S)
    assert cost.paused_s == pytest.approx(0.05)


def test_without_samples_or_steps_the_cost_is_unknown() -> None:
    assert cost_of([], BEGAN_S, ENDED_S) == CaptureCost()
    idle = [s._replace(process={}) for s in sampled(slowed, lambda _: 0.1)]
    assert cost_of(idle, BEGAN_S, ENDED_S) == CaptureCost()


def test_a_count_that_begins_again_gives_no_rate() -> None:
    samples = sampled(lambda at_s: 10 * at_s if at_s < 101 else at_s, lambda _: 0.1)
    cost = cost_of(samples, BEGAN_S, ENDED_S)
    assert cost.steps_per_s_before == pytest.approx(10)
    assert cost.steps_per_s_during is None


def test_a_job_that_ended_with_the_capture_has_no_rate_after_it() -> None:
    cost = cost_of(sampled(slowed, lambda _: 0.1, until_s=104), BEGAN_S, ENDED_S)
    assert cost.steps_per_s_during == pytest.approx(2)
    assert cost.steps_per_s_after is None


def test_a_sample_of_an_earlier_moment_has_the_time_of_that_moment() -> None:
    at_s, wall_s, *_ = doubles(time.monotonic() - 60, {}, [])
    assert at_s < time.monotonic() - 59
    assert wall_s == pytest.approx(time.time() - 60, abs=5)


@pytest.mark.parametrize("most", [1.7e308, 2.0**60, -1.0])
def test_a_count_that_no_job_reaches_is_no_count(most: float) -> None:
    """The samples are the job's own word: a rate of infinity is not JSON."""
    samples = sampled(lambda at_s: -most if at_s < BEGAN_S else most, lambda _: 0.1)
    cost = cost_of(samples, BEGAN_S, ENDED_S)
    assert cost.steps_per_s_during is None


def test_a_rate_and_a_pause_that_no_job_has_are_unknown() -> None:
    fast = sampled(lambda at_s: 1e9 * at_s, lambda at_s: 0.1 if at_s < BEGAN_S else 1e300)
    assert cost_of(fast, BEGAN_S, ENDED_S) == CaptureCost()


def test_without_a_thread_the_cost_is_unknown_and_other_captures_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_thread(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    cost = MeasuredCost(Host(segment_dir="/nonexistent"), 2**22 - 1)
    cost.watch(60.0)
    assert cost.result() == CaptureCost()
    with pytest.raises(CaptureError, match="No thread can be started"):
        at_once([lambda: 1, lambda: 2])
