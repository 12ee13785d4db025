"""What the kill dialog looks like, and an end under way, as characters and styles."""

from __future__ import annotations

from support.dashboards import press, text, until
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
from support.screens import AT_EVERY_SIZE, GoldenScreen, Size
from textual.pilot import Pilot

pytestmark = AT_EVERY_SIZE


async def test_a_stale_holder(golden_screen: GoldenScreen, size: Size) -> None:
    how = {**ScriptedEnder().options, "user": ME}
    await golden_screen(holders(lock_files=(LOCK,)), size, "k", **how)


async def test_a_healthy_holder_of_another_user(golden_screen: GoldenScreen, size: Size) -> None:
    how = {**ScriptedEnder().options, "user": ME}
    await golden_screen(holders(beside()), size, "down", "K", **how)


async def test_one_that_is_refused(golden_screen: GoldenScreen, size: Size) -> None:
    how = {**ScriptedEnder().options, "user": ME}
    await golden_screen(holders(), size, "end", "k", **how)


async def test_in_ascii_without_color(golden_screen: GoldenScreen, size: Size) -> None:
    how = {**ScriptedEnder().options, "user": ME, "ascii": True, "color": False}
    await golden_screen(holders(simulated=True), size, "k", "right", **how)


async def test_an_end_under_way_and_one_that_failed(
    golden_screen: GoldenScreen, size: Size
) -> None:
    ender = ScriptedEnder()

    async def run(pilot: Pilot[None]) -> None:
        for pid, keys in ((STALE, ("home", "k")), (HEALTHY, ("down", "k", "t"))):
            ender.expect(pid)
            await press(pilot, *keys, "enter")
        held = {f"/dev/vfio/{n}": (HEALTHY, BESIDE) for n in range(4, 8)}
        why = "SIGKILL is pending, but it does not end: state D in vfio_unpin_pages_remote"
        ender.step(HEALTHY, report(HEALTHY, "alive", why, held))
        ender.step(STALE, "SIGTERM sent, 3 of 10 s")
        await press(pilot, "home")
        await until(pilot, lambda: "vfio_unpin" in text(pilot, "notices"))
        await until(pilot, lambda: "3 of 10 s" in text(pilot, "detail"))

    await golden_screen(holders(), size, run, **ender.options, user=ME)
