"""What the process table and the dialog about several look like, as pictures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.dashboards import press, settle
from support.feeds import Inline
from support.holder_feeds import ME, ScriptedEnder, family
from textual.pilot import Pilot

from tpusmi.tui import Options
from tpusmi.tui.app import Dashboard

SIZES = [(80, 24), (120, 35), (200, 60)]
Compare = Callable[..., bool]

pytestmark = [
    pytest.mark.usefixtures("pictured"),
    pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x35", "200x60"]),
]


def dashboard(**options: object) -> Dashboard:
    """Holders that started each other, and what may end them."""
    options = {**ScriptedEnder().options, "user": ME, **options}
    return Dashboard(family(), Options(**options), reader=Inline)  # type: ignore[arg-type]


def pressing(*keys: str) -> Callable[[Pilot[None]], object]:
    """Let the first snapshot arrive, then press these."""

    async def run(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await press(pilot, *keys)

    return run


def test_a_tree_with_two_tagged(snap_compare: Compare, size: tuple[int, int]) -> None:
    run = pressing("home", "t", "space", "down", "space")
    assert snap_compare(dashboard(), terminal_size=size, run_before=run)


def test_the_letters_of_an_order(snap_compare: Compare, size: tuple[int, int]) -> None:
    run = pressing("slash", *"!stale chip=4-7", "enter", "o", "m", "o")
    assert snap_compare(dashboard(), terminal_size=size, run_before=run)


def test_a_user_is_typed(snap_compare: Compare, size: tuple[int, int]) -> None:
    run = pressing("u", *"gra")
    assert snap_compare(dashboard(), terminal_size=size, run_before=run)


def test_the_end_of_several(snap_compare: Compare, size: tuple[int, int]) -> None:
    run = pressing("home", *["space"] * 5, "k")
    assert snap_compare(dashboard(), terminal_size=size, run_before=run)


def test_in_ascii_without_colour(snap_compare: Compare, size: tuple[int, int]) -> None:
    run = pressing("home", "t", "space", "down", "space")
    app = dashboard(ascii=True, color=False)
    assert snap_compare(app, terminal_size=size, run_before=run)
