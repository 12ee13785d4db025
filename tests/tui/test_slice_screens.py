"""What the slice page looks like, as characters and styles."""

from __future__ import annotations

from support.screens import AT_EVERY_SIZE, GoldenScreen, Size
from support.slice_feeds import TROUBLED, feed_of_slice

pytestmark = AT_EVERY_SIZE


async def test_a_slice_in_which_all_is_well(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(feed_of_slice(8), size, "S")


async def test_a_slice_with_troubles(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(feed_of_slice(16, changes=TROUBLED), size, "S")


async def test_a_large_slice_with_the_worst_first(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(feed_of_slice(32, changes=TROUBLED), size, "S", "o")


async def test_a_slice_in_ascii_without_color(golden_screen: GoldenScreen, size: Size) -> None:
    feed = feed_of_slice(16, changes=TROUBLED)
    await golden_screen(feed, size, "S", ascii=True, color=False)


async def test_no_slice(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(feed_of_slice(), size, "S")


async def test_the_help_of_the_slice_page(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(feed_of_slice(8), size, "S", "question_mark")


async def test_the_heat_map_of_a_slice(golden_screen: GoldenScreen, size: Size) -> None:
    feed = feed_of_slice(64, changes={**TROUBLED, **{n: {"age_s": 0.1} for n in range(4, 64)}})
    await golden_screen(feed, size, "S", "H", "right", "down")


async def test_the_heat_map_of_a_slice_on_256_colors(
    golden_screen: GoldenScreen, size: Size
) -> None:
    feed = feed_of_slice(256, changes={n: {"age_s": 0.1} for n in range(256)})
    await golden_screen(feed, size, "S", "H", "g", terminal_colors=256)


async def test_the_heat_map_of_a_slice_in_ascii_without_color(
    golden_screen: GoldenScreen, size: Size
) -> None:
    feed = feed_of_slice(64, changes={**TROUBLED, **{n: {"age_s": 0.1} for n in range(4, 64)}})
    await golden_screen(feed, size, "S", "H", ascii=True, color=False)
