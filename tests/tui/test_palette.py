"""The command palette: every command by its name."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, press, shown, text
from support.feeds import two_jobs

from tpusmi.model import Host
from tpusmi.tui.pages import keys_by_page
from tpusmi.tui.palette import PaletteScreen, commands_of


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


@pytest.mark.parametrize("page", ["main", "device", "memory", "job"])
def test_each_command_is_listed_once_with_all_of_its_keys(page: str) -> None:
    commands = commands_of(keys_by_page()[page])
    assert len({c.binding.action for c in commands}) == len(commands)
    assert len({c.text for c in commands}) == len(commands)
    (leave,) = (c for c in commands if c.binding.action == "leave")
    assert (leave.text, leave.keys) == ("Quit", "q F10 Ctrl-C")


async def test_a_command_is_found_by_the_name_of_each_of_its_keys() -> None:
    async with dashboard(two_jobs(), size=(120, 40), host=Host()) as pilot:
        await press(pilot, "colon", *"sigterm")
        assert "End the selected or tagged processes with SIGTERM (asks first)" in shown(pilot)
        assert "k F9" in shown(pilot)
