"""The heat map in every theme, as a picture: what a person sees in a terminal of true colors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.dashboards import press, settle
from support.feeds import Inline
from support.goldens import ACCEPT
from support.slice_feeds import TROUBLED, feed_of_slice
from textual.pilot import Pilot

from tpusmi.tui import Options
from tpusmi.tui.app import Dashboard
from tpusmi.tui.draw.themes import MONO, THEMES

USED = {n: {"age_s": 0.1, "used": 1 + n * 7 % 15} for n in range(64)}


@pytest.mark.usefixtures("pictured")
@pytest.mark.parametrize("theme", THEMES)
def test_a_heat_map_in_a_theme(snap_compare: Callable[..., bool], theme: str) -> None:
    async def choose(pilot: Pilot[None]) -> None:
        await settle(pilot)
        for key in ("S", "H", "down", "right"):
            await press(pilot, key)

    changes = {n: {**USED[n], **TROUBLED.get(n, {})} for n in USED}
    options = Options(theme=theme, color=theme != MONO, user="ada")
    app = Dashboard(feed_of_slice(64, changes=changes), options, reader=Inline)
    assert snap_compare(app, terminal_size=(110, 32), run_before=choose), f"accept with {ACCEPT}"
