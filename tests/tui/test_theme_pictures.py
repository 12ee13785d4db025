"""Every page in every theme, as a picture: what a person sees in a terminal of true colors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.dashboards import press, settle
from support.feeds import Inline
from support.goldens import ACCEPT
from support.holder_feeds import ME, ScriptedEnder, holders
from support.memory_feeds import MemoryJob
from textual.pilot import Pilot

from tpusmi.tui import Options
from tpusmi.tui.app import Dashboard
from tpusmi.tui.draw.themes import DEFAULT, MONO, THEMES

PAGES = {"main": (), "device": ("d",), "memory": ("m",), "job": ("j",)}
DIALOGS = {"kill": ("home", "k"), "help": ("question_mark",)}
CASES = [
    *((page, theme) for page in PAGES for theme in THEMES),
    *((dialog, DEFAULT) for dialog in DIALOGS),
]


@pytest.mark.usefixtures("pictured")
@pytest.mark.parametrize(("page", "theme"), CASES, ids=map("-".join, CASES))
def test_a_page_in_a_theme(snap_compare: Callable[..., bool], page: str, theme: str) -> None:
    async def choose(pilot: Pilot[None]) -> None:
        await settle(pilot)
        for key in (PAGES | DIALOGS)[page]:
            await press(pilot, key)

    options = Options(theme=theme, color=theme != MONO, **ScriptedEnder().options, user=ME)
    feed = holders(MemoryJob(41_000, 8, 4, busy=True))
    app = Dashboard(feed, options, reader=Inline)
    assert snap_compare(app, terminal_size=(110, 32), run_before=choose), f"accept with {ACCEPT}"
