"""What the device page looks like, as characters and styles."""

from __future__ import annotations

from support import device_feeds, snapshots
from support.feeds import MomentFeed, many_devices
from support.screens import AT_EVERY_SIZE, GoldenScreen, Size

from tpusmi.model import Value

pytestmark = AT_EVERY_SIZE


async def test_a_chip_that_is_known_in_full(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(device_feeds.chips(), size, "d")


async def test_a_chip_with_a_bad_link_a_minute_ago(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(device_feeds.chips(), size, "d", "tab", "shift+left")


async def test_a_chip_in_ascii_without_color(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(device_feeds.chips(), size, "d", "w", ascii=True, color=False)


async def test_a_chip_of_which_the_sdk_does_not_tell(
    golden_screen: GoldenScreen, size: Size
) -> None:
    await golden_screen(device_feeds.without_sdk(), size, "d")


async def test_a_core_of_a_chip_that_has_two(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(MomentFeed(snapshots.machine()), size, "d", "tab")


async def test_stale_values(golden_screen: GoldenScreen, size: Size) -> None:
    feed = device_feeds.chips()
    now = feed.snapshot().values
    feed.change(values={key: Value(v.value, v.source, 70.0, True) for key, v in now.items()})
    await golden_screen(feed, size, "d")


async def test_one_of_256_devices(golden_screen: GoldenScreen, size: Size) -> None:
    feed = many_devices(256, busy=True, past_s=60)
    await golden_screen(feed, size, "d", "up")


async def test_a_cpu(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(device_feeds.cpus(), size, "d")


async def test_a_gpu(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(device_feeds.gpus(), size, "d")


async def test_no_device(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(MomentFeed(snapshots.nothing()), size, "d")
