"""Filters that compare and patterns on the main page, and what is wrong with one as it is typed."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, order, press, text
from support.feeds import two_jobs

from tpusmi.report import comparisons
from tpusmi.report.rows import IndexedSnapshot

PIDS = ["41234", "52870"]


def keys(typed: str) -> list[str]:
    names = {"<": "less_than_sign", ">": "greater_than_sign", "~": "tilde", " ": "space"}
    more = {
        ".": "full_stop",
        "*": "asterisk",
        "/": "slash",
        "%": "percent_sign",
        "(": "left_parenthesis",
    }
    return [{**names, **more}.get(character, character) for character in typed]


@pytest.mark.parametrize(
    ("typed", "pids"),
    [
        ("memory>30GiB", ["41234"]),
        ("memory<30GiB", ["52870"]),
        ("hbm>80", ["41234"]),
        ("hbm<1", []),
        ("step>90ms", ["41234"]),
        ("steps/s>11", ["52870"]),
        ("idle>0", []),
        ("~serve.*py", ["52870"]),
        ("!~serve.*py", ["41234"]),
        ("step>90ms ~serve", []),
    ],
)
async def test_processes_that_do_not_match_are_not_shown(typed: str, pids: list[str]) -> None:
    async with dashboard(two_jobs(), size=(120, 40)) as pilot:
        assert order(pilot) == PIDS
        await press(pilot, "slash", *keys(typed))
        assert [pid for pid in PIDS if pid in text(pilot, "processes")] == pids
        assert "!" not in text(pilot, "prompt").replace(typed, "")


async def test_a_mistake_is_said_in_the_prompt_and_excludes_nothing() -> None:
    async with dashboard(two_jobs(), size=(80, 24)) as pilot:
        await press(pilot, "slash", *keys("mxv<3"))
        assert "! no column mxv; did you mean mxu?" in text(pilot, "prompt")
        assert order(pilot) == PIDS
        await press(pilot, "enter")
        assert "no column mxv" in text(pilot, "prompt")
        await press(pilot, "slash", "ctrl+u", *keys("~a("))
        assert "( is not supported" in text(pilot, "prompt")
        await press(pilot, "ctrl+u", *keys("~serve"))
        assert "!" not in text(pilot, "prompt")


def test_every_column_with_numbers_can_be_compared_and_unknown_values_do_not_match() -> None:
    s = two_jobs().snapshot()
    at, process = IndexedSnapshot(s), s.processes[0]
    for name in comparisons.NAMES:
        values = comparisons.values(at, process, name)
        assert all(isinstance(value, int | float) for value in values)
    assert comparisons.values(at, process, "mxu") == []
    unknown = comparisons.comparison("mxu<100") or comparisons.comparison("mxu>=0")
    assert unknown is not None
    assert not unknown.holds(comparisons.values(at, process, "mxu"))
    assert {"memory", "step", "p95", "mxu", "duty", "bw", "mfu", "hbm", "time"} <= {
        *comparisons.NAMES
    }
