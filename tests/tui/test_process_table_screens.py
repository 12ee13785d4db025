"""What the process table and the dialog about several look like, as characters and styles."""

from __future__ import annotations

from support.holder_feeds import ME, ScriptedEnder, family
from support.screens import AT_EVERY_SIZE, GoldenScreen, Size

pytestmark = AT_EVERY_SIZE


async def test_a_tree_with_two_tagged(golden_screen: GoldenScreen, size: Size) -> None:
    keys = (
        "home",
        "t",
        "space",
        "down",
        "space",
    )
    await golden_screen(family(), size, *keys, **ScriptedEnder().options, user=ME)


async def test_the_letters_of_an_order(golden_screen: GoldenScreen, size: Size) -> None:
    keys = (
        "slash",
        *"!stale chip=4-7",
        "enter",
        "o",
        "m",
        "o",
    )
    await golden_screen(family(), size, *keys, **ScriptedEnder().options, user=ME)


async def test_a_user_is_typed(golden_screen: GoldenScreen, size: Size) -> None:
    keys = (
        "u",
        *"gra",
    )
    await golden_screen(family(), size, *keys, **ScriptedEnder().options, user=ME)


async def test_the_end_of_several(golden_screen: GoldenScreen, size: Size) -> None:
    keys = (
        "home",
        *["space"] * 5,
        "k",
    )
    await golden_screen(family(), size, *keys, **ScriptedEnder().options, user=ME)


async def test_in_ascii_without_color(golden_screen: GoldenScreen, size: Size) -> None:
    keys = (
        "home",
        "t",
        "space",
        "down",
        "space",
    )
    how = {**ScriptedEnder().options, "user": ME, "ascii": True, "color": False}
    await golden_screen(family(), size, *keys, **how)
