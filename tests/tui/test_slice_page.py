"""The slice page: what its keys do."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, press, text
from support.slice_feeds import TROUBLED, feed_of_slice
from textual.pilot import Pilot


async def test_s_opens_it_and_escape_leaves_it() -> None:
    async with dashboard(feed_of_slice(8)) as pilot:
        assert "slice of 8 processes" in text(pilot, "header")
        await press(pilot, "S")
        assert "slice of pid" in text(pilot, "slice")
        assert "slice of 8 processes" not in text(pilot, "header")
        await press(pilot, "escape")
        assert pilot.app.page.NAME == ""


async def test_a_narrow_header_leaves_out_the_slice_before_the_time_is_cut() -> None:
    async with dashboard(feed_of_slice(1000), (80, 24)) as pilot:
        await press(pilot, "T")
        assert "slice of" not in text(pilot, "header")
        assert text(pilot, "header").rstrip().endswith("09:00:00")


async def test_o_sorts_the_hosts() -> None:
    async with dashboard(feed_of_slice(8, changes={5: {"step_time_s": 0.4}})) as pilot:
        await press(pilot, "S")
        assert hosts(text(pilot, "slice"))[0] == "t1v-n-7b8e-w-0"
        await press(pilot, "o")
        assert "sorted by worst first" in text(pilot, "slice")
        assert hosts(text(pilot, "slice"))[0] == "t1v-n-7b8e-w-5"


async def test_a_long_list_scrolls_to_its_end() -> None:
    async with dashboard(feed_of_slice(100), (100, 20)) as pilot:
        await press(pilot, "S")
        assert "more hosts (PgDn)" in text(pilot, "slice")
        await press(pilot, "end")
        assert hosts(text(pilot, "slice"))[-1] == "t1v-n-7b8e-w-99"
        await press(pilot, "home", "down")
        assert hosts(text(pilot, "slice"))[0] == "t1v-n-7b8e-w-1"


async def test_tab_shows_the_next_job() -> None:
    async with dashboard(feed_of_slice(8, 4)) as pilot:
        await press(pilot, "S")
        assert "8 processes, 8 live" in text(pilot, "slice")
        assert "1 of 2 jobs" in text(pilot, "slice")
        await press(pilot, "tab")
        assert "4 processes, 4 live" in text(pilot, "slice")
        await press(pilot, "tab")
        assert "8 processes, 8 live" in text(pilot, "slice")


async def test_the_past_of_other_hosts_is_not_made_up() -> None:
    async with dashboard(feed_of_slice(8)) as pilot:
        await press(pilot, "S")
        scene = pilot.app.scene
        scene.snapshot = scene.snapshot._replace(slices=())
        pilot.app.page.draw_body(scene.snapshot)
        assert "No job of several hosts" in text(pilot, "slice")


async def test_every_notice_about_the_slice_is_on_its_page() -> None:
    async with dashboard(feed_of_slice(8, changes=TROUBLED), (120, 40)) as pilot:
        await press(pilot, "S")
        shown = text(pilot, "slice")
        for words in ("has stopped reporting", "slow steps (usually", "another time than"):
            assert words in shown


@pytest.mark.parametrize("size", [(40, 10), (60, 14), (80, 18)])
async def test_notices_leave_half_of_a_small_screen_to_the_hosts(size: tuple[int, int]) -> None:
    async with dashboard(feed_of_slice(16, changes=TROUBLED), size) as pilot:
        await press(pilot, "S")
        lines = text(pilot, "slice").splitlines()
        titles = next(n for n, line in enumerate(lines) if "PROC STATE" in line)
        assert lines[1].startswith("! 1 host of 16 ha")
        assert lines[titles - 2].endswith(("+2", "(and 2 more)", "(and 1 more)"))
        assert len(lines) - titles == (size[1] - 2) // 2
        await press(pilot, "end")
        assert "more hosts (PgDn)" not in text(pilot, "slice")


async def test_h_shows_the_devices_of_all_hosts_as_a_heat_map() -> None:
    async with dashboard(feed_of_slice(8, changes=TROUBLED), (120, 40)) as pilot:
        await press(pilot, "S", "H")
        heat = text(pilot, "slice-heat")
        assert "HBM" in heat
        assert "x silent" in heat
        assert "t1v-n-7b8e-w-7" in heat
        silent = heat.partition("t1v-n-7b8e-w-2 ")[2].split()[:4]
        assert silent == ["x50", "x51", "x52", "x52"]
        await press(pilot, "g")
        assert heat_of(pilot, "t1v-n-7b8e-w-7") == ["90"] * 4  # 90.5
        await press(pilot, "g")
        assert "MFU" in text(pilot, "slice-heat")
        assert heat_of(pilot, "t1v-n-7b8e-w-7") == ["42"] * 4
        await press(pilot, "v")
        assert hosts(text(pilot, "slice"))[0] == "t1v-n-7b8e-w-0"


async def test_the_cursor_of_the_heat_map_moves_in_two_dimensions() -> None:
    async with dashboard(feed_of_slice(8), (120, 40)) as pilot:
        await press(pilot, "S", "v", "right", "right")
        assert "t1v-n-7b8e-w-0 tpu:2 " in text(pilot, "slice-heat")
        assert "running, step 240 ms, process 0" in text(pilot, "slice")
        await press(pilot, "down")
        first = text(pilot, "slice-heat").splitlines()[2].split()[0]
        assert f"{first} tpu:" in text(pilot, "slice-heat")
        assert f", process {first.rpartition('-')[2]}" in text(pilot, "slice")
        await press(pilot, "end")
        assert pilot.app.page.copied() == "t1v-n-7b8e-w-7 tpu:31"
        await press(pilot, "home", "left", "up")
        assert pilot.app.page.copied() == "t1v-n-7b8e-w-0 tpu:0"
        assert pilot.app.scene.back_s == 0


async def test_a_thousand_hosts_fit_on_a_large_screen() -> None:
    async with dashboard(feed_of_slice(1024), (200, 60)) as pilot:
        await press(pilot, "S", "H", "end")
        assert "lines" not in text(pilot, "slice-heat").splitlines()[0]
        assert pilot.app.page.copied() == "t1v-n-7b8e-w-1023 tpu:4095"


async def test_a_small_screen_keeps_most_of_it_for_the_cells() -> None:
    async with dashboard(feed_of_slice(16, changes=TROUBLED), (80, 16)) as pilot:
        await press(pilot, "S", "H")
        assert pilot.app.page.query_one("#slice-heat").size.height >= 10


def heat_of(pilot: Pilot[None], host: str) -> list[str]:
    """The numbers in the cells of that host."""
    return text(pilot, "slice-heat").partition(f"{host} ")[2].split()[:4]


def hosts(shown: str) -> list[str]:
    """The hosts of the table, from top to bottom."""
    rows = (line.split() for line in shown.splitlines())
    return [row[0] for row in rows if row and row[0].startswith("t1v-n-")]
