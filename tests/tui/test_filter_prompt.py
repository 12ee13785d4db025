"""Filters that compare and patterns on the main page, and what is wrong with one as it is typed."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, order, press, screen_text, text
from support.feeds import two_jobs
from textual.events import Paste

from tpusmi.report import comparisons
from tpusmi.report.rows import IndexedSnapshot
from tpusmi.tui.draw.prompt import LONGEST, TypedText

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


async def test_what_is_pasted_has_a_limit() -> None:
    async with dashboard(two_jobs(), size=(80, 24)) as pilot:
        await press(pilot, "slash")
        for _ in range(3):
            pilot.app.post_message(Paste("a " * 300_000))
        await press(pilot, "b")
        assert len(pilot.app.page.table.filter) <= LONGEST  # type: ignore[attr-defined]


def test_a_filter_that_is_too_long_already_takes_no_more() -> None:
    typed = TypedText("a" * (LONGEST + 100))
    assert typed.take(Paste("b" * 500))
    assert "b" not in typed.text


async def test_a_line_that_is_too_long_has_a_mark_and_grows_with_the_screen() -> None:
    async with dashboard(two_jobs(), size=(30, 10)) as pilot:
        await press(pilot, "slash", *keys("mxv<3"))
        assert screen_text(pilot)[-2].endswith("…")
        await press(pilot, "enter")
        assert screen_text(pilot)[-2].endswith("…")
        await pilot.resize_terminal(100, 30)
        await press(pilot)
        assert "did you mean mxu?" in screen_text(pilot)[-2]


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
