"""The topology page: what its keys do."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, press, settle, shown, text
from support.feeds import two_jobs
from support.slice_feeds import TROUBLED, feed_of_slice
from textual.pilot import Pilot

from tpusmi.tui.topology.topology_page import TopologyPage

OWN = ("d", "m", "j", "S")


def about(pilot: Pilot[None]) -> str:
    """The line about the chip under the cursor."""
    lines = text(pilot, "topology").splitlines()
    return next(line for line in lines if "t1v-n-7b8e-w-" in line)


@pytest.mark.parametrize("before", [(), *((key,) for key in OWN)])
async def test_capital_t_opens_it_from_every_page(before: tuple[str, ...]) -> None:
    async with dashboard(feed_of_slice(8)) as pilot:
        await press(pilot, *before, "T")
        assert pilot.app.page.NAME == "topology"
        assert "slice of pid" in text(pilot, "topology")
        await press(pilot, "escape")
        assert pilot.app.page.NAME == ""


async def test_s_and_t_go_to_and_fro_and_escape_leaves_both() -> None:
    async with dashboard(feed_of_slice(8)) as pilot:
        await press(pilot, "T", "S", "T", "S")
        assert pilot.app.page.NAME == "slice"
        assert len(pilot.app.screen_stack) == 2
        await press(pilot, "T")
        assert pilot.app.page.NAME == "topology"
        await press(pilot, "escape")
        assert pilot.app.page.NAME == ""
        assert len(pilot.app.screen_stack) == 1


async def test_the_slice_page_and_the_topology_show_the_same_job() -> None:
    async with dashboard(feed_of_slice(8, 4)) as pilot:
        await press(pilot, "S", "tab", "T")
        assert "4 processes, 4 live" in text(pilot, "topology")
        await press(pilot, "tab", "S")
        assert "8 processes, 8 live" in text(pilot, "slice")
        await press(pilot, "tab", "escape", "T")
        assert "4 processes, 4 live" in text(pilot, "topology")


async def test_it_opens_with_the_torus_of_the_selected_device() -> None:
    async with dashboard(two_jobs()) as pilot:
        scene = pilot.app.scene
        scene.device_key = scene.snapshot.devices[-1].key
        await press(pilot, "T")
        assert "pid 52870" in text(pilot, "topology")


async def test_capital_t_ends_no_process() -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "T")
        assert len(pilot.app.screen_stack) == 2
        assert isinstance(pilot.app.screen, TopologyPage)


async def test_the_cursor_moves_over_chips_and_a_line_says_which_one_it_is() -> None:
    async with dashboard(feed_of_slice(8), (100, 40)) as pilot:
        await press(pilot, "T")
        assert "(0,0,0)  t1v-n-7b8e-w-0" in about(pilot)
        await press(pilot, "right", "right")
        assert "(2,0,0)  t1v-n-7b8e-w-1" in about(pilot)
        await press(pilot, "down", "left")
        assert "(1,1,0)  t1v-n-7b8e-w-0" in about(pilot)
        await press(pilot, "up", "up", "up")
        assert "(1,0,0)" in about(pilot)
        assert pilot.app.scene.back_s == 0


async def test_g_chooses_the_quantity() -> None:
    async with dashboard(feed_of_slice(8), (100, 40)) as pilot:
        await press(pilot, "T")
        assert "HBM in use, % of the limit" in text(pilot, "topology")
        await press(pilot, "g", "g")
        assert "duty cycle, % of the time" in text(pilot, "topology")
        assert " 98 " in text(pilot, "topology")


async def test_marks_of_hosts_in_trouble_are_drawn_and_explained() -> None:
    async with dashboard(feed_of_slice(16, changes=TROUBLED), (120, 60)) as pilot:
        await press(pilot, "T")
        page = text(pilot, "topology")
        marks = {chip.host: chip.mark for chip in pilot.app.page._tori[0].chips}
        assert {"x", "*", "!"} & {*marks.values()}
        for mark in {*marks.values()} - {""}:
            assert mark in page
        chips = pilot.app.page._tori[0].chips
        pilot.app.page.view.key = next(chip.key for chip in chips if chip.mark == "x")
        pilot.app.page.draw()
        await settle(pilot)
        assert "  x is silent" in about(pilot)
        assert "stopped reporting" in text(pilot, "topology")


async def test_a_large_slice_scrolls_to_the_cursor_and_by_pages() -> None:
    async with dashboard(feed_of_slice(64), (80, 24)) as pilot:
        await press(pilot, "T")
        assert "more lines (PgDn)" in text(pilot, "topology")
        await press(pilot, *["down"] * 40)
        assert pilot.app.page.top > 0
        assert "(0,40,0)" in about(pilot)
        await press(pilot, "home")
        assert pilot.app.page.top == 0
        await press(pilot, "pagedown")
        assert pilot.app.page.top > 0
        await press(pilot, "end")
        assert "unknown" in text(pilot, "topology")


async def test_enter_opens_the_device_page_for_a_chip_of_this_host_only() -> None:
    async with dashboard(two_jobs(), (100, 40)) as pilot:
        await press(pilot, "T", "right", "enter")
        assert pilot.app.page.NAME == "device"
    async with dashboard(feed_of_slice(8), (100, 40)) as pilot:
        await press(pilot, "T", *["down"] * 4, "enter")
        assert pilot.app.page.NAME == "topology"
        assert "on another host" in shown(pilot)


async def test_tab_shows_the_next_job() -> None:
    async with dashboard(feed_of_slice(8, 4), (100, 40)) as pilot:
        await press(pilot, "T")
        first = text(pilot, "topology").splitlines()[0]
        await press(pilot, "tab")
        second = text(pilot, "topology").splitlines()[0]
        assert first != second
        await press(pilot, "shift+tab")
        assert text(pilot, "topology").splitlines()[0] == first


async def test_a_click_selects_a_chip() -> None:
    async with dashboard(feed_of_slice(8), (100, 40)) as pilot:
        await press(pilot, "T")
        spots = pilot.app.page.view._drawing.spots
        key = next(c.key for c in pilot.app.page._tori[0].chips if c.coords == (3, 1, 0))
        line, column = spots[key]
        await pilot.click(offset=(column + 1, line + 2))
        await press(pilot)
        assert "(3,1,0)" in about(pilot)


async def test_the_keys_of_time_that_the_cursor_takes_are_not_offered() -> None:
    async with dashboard(feed_of_slice(8)) as pilot:
        await press(pilot, "T")
        keys = [key for b in pilot.app.page.bindings for key in b.key.split(",")]
        assert len({*keys}) == len(keys)
        assert "Earlier" not in text(pilot, "footer")


async def test_without_any_place_a_sentence_says_why() -> None:
    async with dashboard(feed_of_slice(8)) as pilot:
        await press(pilot, "T")
        scene = pilot.app.scene
        devices = tuple(d._replace(coords=None) for d in scene.snapshot.devices)
        scene.snapshot = scene.snapshot._replace(slices=(), devices=devices)
        pilot.app.page.draw_body(scene.snapshot)
        assert "not drawn" in text(pilot, "topology")
        await press(pilot, "right", "enter", "y", "k")
        assert pilot.app.page.NAME == "topology"
