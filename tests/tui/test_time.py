"""Looking back in time, and a dashboard that has run for ten hours."""

from __future__ import annotations

import gc
import sys

from support.dashboards import dashboard, press, row, text
from support.feeds import ScriptedFeed, many_devices, two_jobs
from support.holder_feeds import holders


async def test_arrows_look_back_and_forth_and_a_key_returns_to_now() -> None:
    feed = two_jobs(tick_s=1.0)
    async with dashboard(feed, size=(140, 40), interval_s=60.0) as pilot:
        now = text(pilot, "devices")
        await press(pilot, "left")
        assert "10s AGO" in text(pilot, "header")
        ten = text(pilot, "devices")
        assert ten != now
        await press(pilot, "shift+left", "right")
        assert "1m00s AGO" in text(pilot, "header")
        await press(pilot, "n")
        assert "AGO" not in text(pilot, "header")
        assert text(pilot, "devices") == now
        await press(pilot, "left", "escape")
        assert "AGO" not in text(pilot, "header")


async def test_the_past_stands_still_while_time_goes_on() -> None:
    feed = two_jobs(tick_s=1.0)
    async with dashboard(feed, size=(140, 40), interval_s=60.0) as pilot:
        await press(pilot, "left")
        then = row(pilot, 41234)
        await press(pilot, "r", "r", "r")
        assert "13s AGO" in text(pilot, "header")
        assert row(pilot, 41234) == then


async def test_one_looks_no_further_back_than_anybody_measured() -> None:
    async with dashboard(two_jobs(), size=(140, 40)) as pilot:
        await press(pilot, *["shift+left"] * 12)
        assert "6m40s AGO" in text(pilot, "header")
        await press(pilot, *["shift+right"] * 12)
        assert "AGO" not in text(pilot, "header")


async def test_without_a_history_there_is_no_past() -> None:
    feed = ScriptedFeed()
    async with dashboard(feed) as pilot:
        await press(pilot, "left", "shift+left")
        assert "AGO" not in text(pilot, "header")


async def test_ten_hours_take_no_more_memory_than_ten_minutes() -> None:
    """In objects of Python's, a minute a tick; of the history's arrays the size is fixed."""
    feed = many_devices(8, busy=True, tick_s=60.0, past_s=600)
    async with dashboard(feed, size=(120, 40)) as pilot:

        async def go_on(ticks: int) -> int:
            for _ in range(ticks):
                pilot.app.scene.take(feed.snapshot())
                pilot.app._draw()
                await pilot.pause()
            gc.collect()
            return sys.getallocatedblocks()

        before = await go_on(400)  # until every cache of Rich's and Textual's is full
        assert await go_on(300) - before < 1500


async def test_the_present_of_the_host_is_not_shown_as_its_past() -> None:
    feed = holders()
    feed.remember(300)
    host = feed.snapshot().host._replace(
        load_averages=(1.0, 2.0, 3.0), memory_total_bytes=2**35, uptime_s=7200.0
    )
    feed.change(host=host._replace(memory_available_bytes=2**34))
    async with dashboard(feed, size=(200, 50)) as pilot:
        assert "load 1.0" in text(pilot, "host")
        await press(pilot, "down")
        assert "CPU 98 %" in text(pilot, "detail")
        await press(pilot, "shift+left")
        assert "1m00s AGO" in text(pilot, "header")
        assert text(pilot, "host").startswith("RAM –/32.0 GiB · up 1h59m")
        assert "CPU" not in text(pilot, "detail")
        assert "then" in text(pilot, "graphs") or not text(pilot, "graphs")
