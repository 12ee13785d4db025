"""What the topology page looks like, as characters and styles."""

from __future__ import annotations

from support.screens import AT_EVERY_SIZE, GoldenScreen, Size
from support.slice_feeds import TROUBLED, feed_of_slice

pytestmark = AT_EVERY_SIZE


async def test_a_slice_with_troubles(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(feed_of_slice(16, changes=TROUBLED), size, "T", "right")


async def test_a_slice_in_ascii_without_color(golden_screen: GoldenScreen, size: Size) -> None:
    feed = feed_of_slice(16, changes=TROUBLED)
    await golden_screen(feed, size, "T", "right", ascii=True, color=False)


async def test_no_slice(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(feed_of_slice(), size, "T")


async def test_the_help_of_the_topology_page(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(feed_of_slice(8), size, "T", "question_mark")
