"""The command palette: every command by its name."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, press, shown, text
from support.feeds import two_jobs

from tpusmi.tui.palette import PaletteScreen


async def test_a_command_is_found_by_a_part_of_its_name_and_run() -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "colon", *"paus")
        assert "Pause / resume" in shown(pilot)
        assert "Quit" not in shown(pilot).partition("╰")[0].replace("q Quit", "")
        await press(pilot, "enter")
        assert not isinstance(pilot.app.screen, PaletteScreen)
        assert "PAUSED" in text(pilot, "header")


async def test_a_command_of_the_page_is_run_there() -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "ctrl+p", *"reverse", "enter")
        assert text(pilot, "processes").splitlines()[1].split()[1] == "52870"


@pytest.mark.parametrize("keys", [("escape",), ("escape", "escape"), (*"no such", "enter")])
async def test_it_closes_and_nothing_is_done(keys: tuple[str, ...]) -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "colon", *keys)
        assert not isinstance(pilot.app.screen, PaletteScreen)
        assert pilot.app.is_running
        assert "tpu:0" in shown(pilot)


async def test_arrows_choose_and_a_click_runs() -> None:
    async with dashboard(two_jobs(), size=(100, 40)) as pilot:
        await press(pilot, "colon", *"devices", "down")
        lines = shown(pilot).splitlines()
        at = next(n for n, line in enumerate(lines) if "Pause" in line or "Devices down" in line)
        await pilot.click(offset=(40, at))
        await press(pilot)
        assert not isinstance(pilot.app.screen, PaletteScreen)


async def test_a_readonly_dashboard_offers_no_end() -> None:
    async with dashboard(two_jobs(), host=None) as pilot:
        await press(pilot, "colon", *"sig")
        assert "No matching command" in shown(pilot)
