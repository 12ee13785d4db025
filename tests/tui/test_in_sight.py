"""What was chosen on one page is under the cursor of another, in sight, and is what keys end."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, press, row, selected, shown, text
from support.feeds import Job, ScriptedFeed, many_devices, two_jobs
from support.holder_feeds import ScriptedEnder
from support.memory_feeds import trainer

from tpusmi.tui.app import Dashboard


def crowd() -> ScriptedFeed:
    """More jobs than there is room for."""
    return ScriptedFeed(tuple(Job(5000 + n, f"python job{n}.py", n, 1) for n in range(40)))


async def test_a_process_chosen_on_its_page_is_in_sight_of_the_table() -> None:
    async with dashboard(crowd(), size=(100, 30)) as pilot:
        assert "5039" not in text(pilot, "processes")
        await press(pilot, "j", "up", "escape")
        assert selected(pilot) == "5039"
        assert row(pilot, 5039)


@pytest.mark.parametrize(
    ("key", "part", "last"),
    [("f", "devices", "tpu:255"), ("c", "tiles", "tpu:255"), ("H", "heat", "tpu:255")],
)
async def test_a_device_chosen_on_its_page_is_in_sight_of_the_devices(
    key: str, part: str, last: str
) -> None:
    async with dashboard(many_devices(256), size=(60, 20)) as pilot:
        await press(pilot, key, "tab")
        assert last not in text(pilot, part)
        await press(pilot, "d", "up", "escape")
        assert last in text(pilot, part)


async def test_a_table_that_was_scrolled_stays_where_it_was_scrolled_to() -> None:
    async with dashboard(crowd(), size=(100, 30)) as pilot:
        top = text(pilot, "processes")
        grid = pilot.app.page.process_list.grid  # type: ignore[attr-defined]
        grid.scroll_rows(30)
        scrolled = text(pilot, "processes")
        assert scrolled != top
        await press(pilot, "r", "r")
        assert text(pilot, "processes") == scrolled


async def test_with_the_cursor_on_the_devices_a_key_ends_the_owner_of_the_device() -> None:
    async with dashboard(two_jobs(), size=(100, 30), **ScriptedEnder().options) as pilot:
        assert isinstance(pilot.app, Dashboard)
        assert [p.pid for p in pilot.app.page.targets] == [41234]
        await press(pilot, "tab", *["down"] * 5)
        assert [p.pid for p in pilot.app.page.targets] == [52870]
        await press(pilot, "k")
        assert "52870" in shown(pilot)


async def test_the_memory_page_keeps_its_profile_in_a_look_back() -> None:
    async with dashboard(trainer(), size=(120, 30)) as pilot:
        await press(pilot, "m")
        now = text(pilot, "memory")
        await press(pilot, "shift+left")
        assert "30s AGO" in text(pilot, "header")
        assert text(pilot, "memory") == now
