"""`e` on the main page: the variables of the selected process."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, press, shown
from support.feeds import Job, ScriptedFeed

from tpusmi.tui.main.environment_screen import NONE, EnvironmentScreen


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (40, 10)])
async def test_e_shows_the_variables_and_closes_again(size: tuple[int, int]) -> None:
    variables = {f"TPU_VARIABLE_{n:02}": "0,1,2,3" for n in range(30)}
    feed = ScriptedFeed((Job(77, "python x.py", 0, 4, environment=variables),))
    async with dashboard(feed, size) as pilot:
        await press(pilot, "e")
        assert isinstance(pilot.app.screen, EnvironmentScreen)
        assert "Environment of pid 77 (ada)" in shown(pilot)
        assert "TPU_VARIABLE_00=0,1,2,3" in shown(pilot)
        await press(pilot, *["pagedown"] * 40)
        assert "TPU_VARIABLE_29=0,1,2,3" in shown(pilot)
        await press(pilot, "e")
        assert not isinstance(pilot.app.screen, EnvironmentScreen)


async def test_where_none_is_known_it_says_so() -> None:
    async with dashboard(ScriptedFeed((Job(77, "python x.py", 0, 4),)), (120, 30)) as pilot:
        await press(pilot, "e")
        assert NONE[:40] in shown(pilot)
        await press(pilot, "escape")
        assert pilot.app.is_running
