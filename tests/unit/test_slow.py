"""Why a job may be slow: every case of the table, and silence."""

from __future__ import annotations

import pytest

from tpusmi.merge.slow import CASES, Cause, Use, cause

TRAINING = Use("running", True, 3600.0, 98.0, 57.0, 62.0, 51.0, 0.100, 0.108, 0.0)
"""A job at which nobody needs to look."""


def told(**known: object) -> Cause | None:
    return cause(TRAINING._replace(**known))


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
    assert [case.cause.code for case in CASES] == list(CASES_OF)


@pytest.mark.parametrize(
    ("expected", "known"),
    [(name, known) for name, every in CASES_OF.items() for known in every],
)
def test_a_cause_is_told_where_its_condition_holds(expected: str, known: dict[str, object]) -> None:
    assert code(**known) == expected


def test_a_job_at_which_nobody_needs_to_look_has_no_cause() -> None:
    assert cause(TRAINING) is None


def test_the_first_minutes_say_nothing_of_wasted_flops() -> None:
    """MFU is a mean of the last minute, in which a job that starts has done little."""
    assert told(mfu_percent=13.0, stepped_s=100.0) is None
    found = told(mfu_percent=13.0, stepped_s=130.0)
    assert found is not None
    assert found.code == "wastes"


def test_nothing_is_told_where_nothing_is_known() -> None:
    assert cause(Use()) is None
    assert cause(Use(phase="running", stepping=True)) is None


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
