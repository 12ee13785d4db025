"""What the pages of a fleet look like, as characters and styles."""

from __future__ import annotations

import pytest
from support.dashboards import press, text, until
from support.fleets import ScriptedFleet, fleet, fleet_dashboard
from support.screens import SIZES, GoldenScreen, Size
from textual.pilot import Pilot

from tpusmi.fleet.fleet_figures import FleetSnapshot
from tpusmi.fleet.fleet_source import FleetError

SMALLEST = (40, 10)
AT_EVERY_SIZE = pytest.mark.parametrize(
    "size", [SMALLEST, *SIZES], ids=[f"{w}x{h}" for w, h in (SMALLEST, *SIZES)]
)
pytestmark = AT_EVERY_SIZE


@pytest.fixture(autouse=True)
def _version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpusmi.tui.fleet.fleet_chrome.__version__", "0.1.0")


async def past(pilot: Pilot[None]) -> None:
    """Wait for the details and the history of a host."""
    if pilot.app.size.height > SMALLEST[1]:
        await until(pilot, lambda: "now" in text(pilot, "host"))
        await until(pilot, lambda: not pilot.app.page._reading._asked)
        await pilot.pause()


async def drawn(
    golden: GoldenScreen,
    size: Size,
    source: ScriptedFleet | FleetSnapshot,
    *keys: str,
    is_host: bool = False,
    **options: object,
) -> None:
    async with fleet_dashboard(source, size, **options) as pilot:
        for key in keys:
            await press(pilot, key)
        pilot.app.scene.message = ""
        if is_host:
            await past(pilot)
        pilot.app.page.draw()
        await golden.compare(pilot)


async def test_the_jobs_of_a_fleet(golden_screen: GoldenScreen, size: Size) -> None:
    await drawn(golden_screen, size, fleet(16), theme="dark")


async def test_the_hosts_of_a_fleet(golden_screen: GoldenScreen, size: Size) -> None:
    await drawn(golden_screen, size, fleet(64), "G", "G", theme="dark")


async def test_the_hosts_of_a_job(golden_screen: GoldenScreen, size: Size) -> None:
    await drawn(golden_screen, size, fleet(16), "enter", theme="light")


async def test_a_fleet_as_a_heat_map(golden_screen: GoldenScreen, size: Size) -> None:
    await drawn(golden_screen, size, fleet(64, per_slice=16), "v", theme="colorblind")


async def test_a_fleet_as_a_heat_map_in_ascii_without_color(
    golden_screen: GoldenScreen, size: Size
) -> None:
    await drawn(golden_screen, size, fleet(64), "v", ascii=True, color=False)


async def test_a_fleet_in_ascii_without_color(golden_screen: GoldenScreen, size: Size) -> None:
    await drawn(golden_screen, size, fleet(16), "G", "G", ascii=True, color=False)


async def test_a_host_that_is_down(golden_screen: GoldenScreen, size: Size) -> None:
    await drawn(golden_screen, size, fleet(16), "enter", "enter", is_host=True, theme="dark")


async def test_a_slice_as_a_torus(golden_screen: GoldenScreen, size: Size) -> None:
    await drawn(golden_screen, size, fleet(16), "T", theme="dark")


async def test_a_source_that_failed_later(golden_screen: GoldenScreen, size: Size) -> None:
    error = FleetError("prometheus.example:9090 answers 503: it is starting")
    source = ScriptedFleet(fleet(16), error)
    await drawn(golden_screen, size, source, "r", theme="ansi", passed_s=1.0)


async def test_a_source_that_failed_at_once(golden_screen: GoldenScreen, size: Size) -> None:
    error = FleetError("prometheus.example:9090 cannot be reached: connection refused")
    await drawn(golden_screen, size, ScriptedFleet(error), theme="mono")


async def test_a_filter_of_a_fleet(golden_screen: GoldenScreen, size: Size) -> None:
    await drawn(golden_screen, size, fleet(16), "slash", *"mxu<", theme="dark")


async def test_the_order_of_a_fleet(golden_screen: GoldenScreen, size: Size) -> None:
    await drawn(golden_screen, size, fleet(16), "o", theme="dark")


async def test_the_help_of_the_fleet(golden_screen: GoldenScreen, size: Size) -> None:
    await drawn(golden_screen, size, fleet(16), "question_mark", theme="dark")
