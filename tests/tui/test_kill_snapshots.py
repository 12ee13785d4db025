"""What the kill dialog looks like, and an end under way, as pictures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.dashboards import press, settle, text, until
from support.feeds import Inline, ScriptedFeed
from support.holder_feeds import (
    BESIDE,
    HEALTHY,
    LOCK,
    ME,
    STALE,
    ScriptedEnder,
    beside,
    holders,
    report,
)
from textual.pilot import Pilot

from tpusmi.tui import Options
from tpusmi.tui.app import Dashboard

SIZES = [(80, 24), (120, 35), (200, 60)]
Compare = Callable[..., bool]

pytestmark = [
    pytest.mark.usefixtures("pictured"),
    pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x35", "200x60"]),
]


def dashboard(feed: ScriptedFeed, ender: ScriptedEnder, **options: object) -> Dashboard:
    """A dashboard that may end processes, on a script."""
    options = {**ender.options, "user": ME, **options}
    return Dashboard(feed, Options(**options), reader=Inline)  # type: ignore[arg-type]


def pressing(*keys: str) -> Callable[[Pilot[None]], object]:
    """Let the first snapshot arrive, then press these."""

    async def run(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await press(pilot, *keys)

    return run


def test_a_stale_holder(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = dashboard(holders(lock_files=(LOCK,)), ScriptedEnder())
    assert snap_compare(app, terminal_size=size, run_before=pressing("k"))


def test_a_healthy_holder_of_another_user(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = dashboard(holders(beside()), ScriptedEnder())
    assert snap_compare(app, terminal_size=size, run_before=pressing("down", "K"))


def test_one_that_is_refused(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = dashboard(holders(), ScriptedEnder())
    assert snap_compare(app, terminal_size=size, run_before=pressing("end", "k"))


def test_in_ascii_without_colour(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = dashboard(holders(simulated=True), ScriptedEnder(), ascii=True, color=False)
    assert snap_compare(app, terminal_size=size, run_before=pressing("k", "right"))


def test_an_end_under_way_and_one_that_failed(snap_compare: Compare, size: tuple[int, int]) -> None:
    ender = ScriptedEnder()

    async def run(pilot: Pilot[None]) -> None:
        await settle(pilot)
        for pid, keys in ((STALE, ("home",)), (HEALTHY, ("down",))):
            ender.expect(pid)
            await press(pilot, *keys, "k", "enter")
        held = {f"/dev/vfio/{n}": (HEALTHY, BESIDE) for n in range(4, 8)}
        why = "SIGKILL is pending, but it does not end: state D in vfio_unpin_pages_remote"
        ender.step(HEALTHY, report(HEALTHY, "alive", why, held))
        ender.step(STALE, "SIGTERM sent, 3 of 10 s")
        await press(pilot, "home")
        await until(pilot, lambda: "vfio_unpin" in text(pilot, "notices"))
        await until(pilot, lambda: "3 of 10 s" in text(pilot, "detail"))

    app = dashboard(holders(), ender)
    assert snap_compare(app, terminal_size=size, run_before=run)
