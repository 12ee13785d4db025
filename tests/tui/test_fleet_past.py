"""The fleet dashboard goes back in time."""

from __future__ import annotations

import threading
from typing import Any

from support.dashboards import press, shown, text, until
from support.fleets import AT_S, ScriptedFleet, down, fleet, fleet_dashboard

from tpusmi.fleet.exporters.exporters_fleet import NO_PAST
from tpusmi.fleet.fleet_figures import FleetSnapshot
from tpusmi.fleet.fleet_source import FleetError
from tpusmi.tui.feed import Reader

DIED_S = AT_S - 90.0
"""When host 5 died."""


class PastFleet(ScriptedFleet):
    """Answers about each time; of some the answer does not come, or is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.slow: dict[float | None, threading.Event] = {}
        self.failing: set[float | None] = set()

    def snapshot(self, at_s: float | None = None) -> FleetSnapshot:
        self.moments.append(at_s)
        if at_s in self.slow:
            self.slow[at_s].wait(100)
        if at_s in self.failing:
            raise FleetError("the server does not know that time")
        time_s = AT_S if at_s is None else at_s
        return fleet(troubles={5: down} if time_s > DIED_S else {}, at_s=time_s)


async def test_arrows_go_through_time_and_n_returns_to_now() -> None:
    source = PastFleet()
    async with fleet_dashboard(source, interval_s=60.0) as pilot:
        assert "AGO" not in text(pilot, "header")
        assert "15 of 16 hosts live, 1 down" in text(pilot, "totals")
        await press(pilot, "left")
        assert "1m00s AGO (n = now)" in text(pilot, "header")
        assert "15 of 16 hosts live, 1 down" in text(pilot, "totals")
        await press(pilot, "left")
        assert "2m00s AGO (n = now)" in text(pilot, "header")
        assert "16 hosts live" in text(pilot, "totals")
        await press(pilot, "shift+left")
        assert "12m AGO (n = now)" in text(pilot, "header")
        await press(pilot, "shift+right", "right")
        assert "1m00s AGO (n = now)" in text(pilot, "header")
        await press(pilot, "n")
        assert "AGO" not in text(pilot, "header")
        assert "1 down" in text(pilot, "totals")
        await press(pilot, "left", "right")
        assert "AGO" not in text(pilot, "header")
        assert source.moments[-1] is None


async def test_escape_leaves_the_past_last() -> None:
    async with fleet_dashboard(PastFleet(), interval_s=60.0) as pilot:
        await press(pilot, "left", "left", "enter", "escape")
        assert "AGO" in text(pilot, "header")
        await press(pilot, "escape")
        assert "AGO" not in text(pilot, "header")


async def test_in_the_heat_map_arrows_move_the_cursor_and_with_shift_they_go_through_time() -> None:
    source = PastFleet()
    async with fleet_dashboard(source, interval_s=60.0) as pilot:
        await press(pilot, "H", "right", "left")
        assert source.moments == [None]
        await press(pilot, "shift+left")
        assert "10m AGO" in text(pilot, "header")


async def test_the_past_is_read_once_and_not_at_each_tick() -> None:
    source = PastFleet()
    async with fleet_dashboard(source, reader=Reader, interval_s=0.02) as pilot:
        await until(pilot, lambda: len(source.moments) > 2)
        await press(pilot, "left")
        await until(pilot, lambda: "1m00s AGO" in text(pilot, "header"))
        await until(pilot, lambda: "READING" not in text(pilot, "header"))
        asked = len(source.moments)
        await pilot.pause(0.15)
        assert len(source.moments) == asked
        await press(pilot, "n")
        await until(pilot, lambda: len(source.moments) > asked + 2)


async def test_the_old_screen_stays_until_the_answer_comes_and_late_ones_are_dropped() -> None:
    source = PastFleet()
    slow = source.slow[AT_S - 120.0] = threading.Event()
    try:
        async with fleet_dashboard(source, reader=Reader, interval_s=60.0) as pilot:
            await until(pilot, lambda: "1 down" in shown(pilot))
            await press(pilot, "left")
            await until(pilot, lambda: "READING" not in text(pilot, "header"))
            await press(pilot, "left")
            await until(pilot, lambda: source.moments[-1] == AT_S - 120.0)
            assert "2m00s AGO (n = now)  READING" in text(pilot, "header")
            assert "15 of 16 hosts live, 1 down" in text(pilot, "totals")
            await press(pilot, "left", "left", "left")  # keys do not wait, and nothing else is read
            assert "5m00s AGO (n = now)  READING" in text(pilot, "header")
            assert source.moments[-1] == AT_S - 120.0
            source.failing.add(AT_S - 120.0)  # nor does its error matter by now
            slow.set()
            await until(pilot, lambda: "READING" not in text(pilot, "header"))
            assert source.moments[-2:] == [AT_S - 120.0, AT_S - 300.0]
            assert "FAILED" not in text(pilot, "header")
            assert "16 hosts live" in text(pilot, "totals")
    finally:
        slow.set()


async def test_n_shows_the_last_answer_at_once_while_a_source_hangs() -> None:
    source = PastFleet()
    slow = source.slow[AT_S - 60.0] = threading.Event()
    try:
        async with fleet_dashboard(source, reader=Reader, interval_s=60.0) as pilot:
            await until(pilot, lambda: "1 down" in shown(pilot))
            await press(pilot, "left", "n")
            assert "AGO" not in text(pilot, "header")
            assert "READING" not in text(pilot, "header")
            assert "15 of 16 hosts live, 1 down" in text(pilot, "totals")
    finally:
        slow.set()


async def test_a_moment_that_cannot_be_read_says_why_and_other_moments_can() -> None:
    source = PastFleet()
    source.failing.add(AT_S - 60.0)
    async with fleet_dashboard(source, interval_s=60.0) as pilot:
        await press(pilot, "left")
        assert "FAILED" in text(pilot, "header")
        assert "the server does not know that time" in text(pilot, "notices")
        await press(pilot, "left")
        assert "FAILED" not in text(pilot, "header")
        assert "16 hosts live" in text(pilot, "totals")


async def test_a_source_without_a_past_says_so_in_the_footer() -> None:
    source = PastFleet()
    source.no_past = NO_PAST
    async with fleet_dashboard(source, interval_s=60.0) as pilot:
        await press(pilot, "left")
        assert NO_PAST in text(pilot, "footer")
        assert "AGO" not in text(pilot, "header")
        assert source.moments == [None]


async def test_the_page_of_a_host_has_its_details_and_graphs_of_that_time() -> None:
    source = PastFleet()
    async with fleet_dashboard(source, (120, 40), reader=Reader, interval_s=60.0) as pilot:
        await until(pilot, lambda: "1 down" in shown(pilot))
        await press(pilot, "enter", "enter")
        await until(pilot, lambda: len(source.moments_of_host) == 2)
        await press(pilot, "left")
        await until(pilot, lambda: source.moments_of_host[2:] == [AT_S - 60.0] * 2)
        assert "1m00s AGO" in text(pilot, "header")
        page: Any = pilot.app.page  # type: ignore[attr-defined]
        await until(pilot, lambda: page._details_of == page._past_of == AT_S - 60.0)
        assert page._end_s(page._past) == AT_S - 60.0
        assert "then" in shown(pilot)
        await press(pilot, "n")
        await until(pilot, lambda: page._details_of is None and page._past_of is None)


async def test_a_dashboard_can_begin_in_the_past() -> None:
    source = PastFleet()
    async with fleet_dashboard(source, interval_s=60.0, at_s=AT_S - 3600.0) as pilot:
        assert "AGO (n = now)" in text(pilot, "header")
        assert "16 hosts live" in text(pilot, "totals")
        await press(pilot, "n")
        assert source.moments == [AT_S - 3600.0, None]
        assert "1 down" in text(pilot, "totals")
