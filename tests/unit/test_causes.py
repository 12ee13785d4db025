"""Why a job may be slow: every case of the table, and silence."""

from __future__ import annotations

import pytest

from tpusmi.merge.causes import CASES, Cause, Use, causes

TRAINING = Use("running", True, 3600.0, 98.0, 57.0, 62.0, 51.0, 0.092, 0.101, 0.100, 0.108, 0.0)
"""A job at which nobody needs to look."""


def told(**known: object) -> Cause | None:
    return next(causes(TRAINING._replace(**known)), None)


def code(**known: object) -> str | None:
    found = told(**known)
    return None if found is None else found.code


CASES_OF = {
    "hangs": [{"duty_percent": 100.0, "mxu_percent": 0.0, "bandwidth_percent": 0.0}],
    "recompiles": [{"recent_compilations": 2}, {"recent_compilations": 9, "phase": "compiling"}],
    "compiles": [{"phase": "compiling", "stepping": False}],
    "idle": [{"phase": "idle", "stepping": False, "duty_percent": 0.0, "mxu_percent": 0.0}],
    "starved": [
        {"duty_percent": 20.0, "mxu_percent": 9.0},
        {"duty_percent": 49.9, "mxu_percent": None},
    ],
    "memory_bound": [{"mxu_percent": 6.0, "bandwidth_percent": 60.0}],
    "communication": [{"mxu_percent": 6.0, "bandwidth_percent": 59.9}],
    "little_mxu": [{"mxu_percent": 29.9, "bandwidth_percent": None}],
    "wastes": [{"mfu_percent": 28.0}],
    "uneven": [{"p95_s": 0.151}],
}


def test_every_case_of_the_table_is_tried_here() -> None:
    assert [case.code for case in CASES] == list(CASES_OF)


@pytest.mark.parametrize(
    ("expected", "known"),
    [(name, known) for name, every in CASES_OF.items() for known in every],
)
def test_a_cause_is_told_where_its_condition_holds(expected: str, known: dict[str, object]) -> None:
    assert code(**known) == expected


def test_a_job_at_which_nobody_needs_to_look_has_no_cause() -> None:
    assert told() is None


def test_the_first_minutes_say_nothing_of_wasted_flops() -> None:
    """MFU is a mean of the last minute, in which a job that starts has done little."""
    assert told(mfu_percent=13.0, stepped_s=100.0) is None
    found = told(mfu_percent=13.0, stepped_s=130.0)
    assert found is not None
    assert found.code == "wastes"


def test_after_a_pause_or_slow_steps_the_mfu_of_the_minute_says_nothing_of_the_mxu_now() -> None:
    assert told(mfu_percent=9.0, mean_s=0.5) is None
    assert code(mfu_percent=9.0, min_s=None, mean_s=None) == "wastes"


def test_nothing_is_told_where_nothing_is_known() -> None:
    assert [*causes(Use())] == []
    assert [*causes(Use(phase="running", stepping=True))] == []


@pytest.mark.parametrize(
    "known",
    [
        {"duty_percent": None, "mxu_percent": 3.0},
        {"duty_percent": 10.0, "mxu_percent": 2.0, "stepping": False},
        {"duty_percent": 50.0},
        {"mxu_percent": 30.0, "mfu_percent": 20.0},
        {"mxu_percent": 19.9, "duty_percent": 79.0, "mfu_percent": 1.0},
        {"mfu_percent": None},
        {"p95_s": 0.149},
        {"p95_s": 9.0, "stepping": False},
        {"p50_s": 0.0, "p95_s": 0.0},
        {"recent_compilations": 1},
        {"recent_compilations": None},
        # It has just stopped: the duty cycle is that of its last minute.
        {"duty_percent": 86.0, "mxu_percent": 0.0, "bandwidth_percent": 0.0},
    ],
)
def test_no_cause_is_told_where_its_condition_does_not_hold(known: dict[str, object]) -> None:
    assert told(**known) is None


def test_the_words_carry_the_numbers() -> None:
    found = told(duty_percent=97.6, mxu_percent=6.2, bandwidth_percent=81.0)
    assert found is not None
    assert found.why == "busy 98 %, MXU 6 %, bandwidth 81 %: bound by memory"


def test_what_stops_a_job_is_told_before_what_slows_it_down() -> None:
    assert code(recent_compilations=5, duty_percent=20.0, mxu_percent=1.0) == "recompiles"
    assert code(duty_percent=20.0, mxu_percent=1.0, p95_s=9.0) == "starved"


def warned(**known: object) -> list[str]:
    u = TRAINING._replace(**known)
    return [cause.notice for cause in causes(u) if cause.notice and cause.warns(u)]


def test_the_main_page_warns_of_all_that_is_bad_and_of_nothing_twice() -> None:
    nothing = {"duty_percent": 100.0, "mxu_percent": 0.0, "bandwidth_percent": 0.0}
    assert warned(**nothing) == ["busy_for_nothing"]
    assert warned(**nothing, recent_compilations=9) == ["busy_for_nothing", "recompiling"]
    assert warned(recent_compilations=9, duty_percent=20.0, mxu_percent=None) == [
        "recompiling",
        "starved",
    ]


def test_little_matrix_work_is_advice_and_next_to_none_a_warning() -> None:
    assert code(mxu_percent=20.0) == "memory_bound"
    assert warned(mxu_percent=20.0) == []
    for bandwidth in (None, 10.0, 80.0):
        assert warned(mxu_percent=4.9, bandwidth_percent=bandwidth) == ["busy_without_mxu"]
    assert warned(phase="idle", stepping=False) == []
