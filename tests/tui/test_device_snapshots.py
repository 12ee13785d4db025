"""What the device page looks like, as pictures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import device_feeds, snapshots
from support.dashboards import press, settle
from support.feeds import Inline, MomentFeed, many_devices
from textual.pilot import Pilot

from tpusmi.model import Value
from tpusmi.tui import Options
from tpusmi.tui.app import Dashboard
from tpusmi.tui.feed import Feed

SIZES = [(80, 24), (120, 35), (200, 60)]
Compare = Callable[..., bool]

pytestmark = [
    pytest.mark.usefixtures("pictured"),
    pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x35", "200x60"]),
]


def pictured(
    snap_compare: Compare, feed: Feed, size: tuple[int, int], *keys: str, **options: object
) -> bool:
    async def pressed(pilot: Pilot[None]) -> None:
        await settle(pilot)
        for key in ("d", *keys):
            await press(pilot, key)

    app = Dashboard(feed, Options(**options), reader=Inline)  # type: ignore[arg-type]
    return snap_compare(app, terminal_size=size, run_before=pressed)


def test_a_chip_that_is_known_in_full(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, device_feeds.chips(), size)


def test_a_chip_with_a_bad_link_a_minute_ago(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, device_feeds.chips(), size, "tab", "shift+left")


def test_a_chip_in_ascii_without_colour(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, device_feeds.chips(), size, "w", ascii=True, color=False)


def test_a_chip_of_which_the_sdk_does_not_tell(
    snap_compare: Compare, size: tuple[int, int]
) -> None:
    assert pictured(snap_compare, device_feeds.without_sdk(), size)


def test_a_core_of_a_chip_that_has_two(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, MomentFeed(snapshots.machine()), size, "tab")


def test_stale_values(snap_compare: Compare, size: tuple[int, int]) -> None:
    feed = device_feeds.chips()
    now = feed.snapshot().values
    feed.change(values={key: Value(v.value, v.source, 70.0, True) for key, v in now.items()})
    assert pictured(snap_compare, feed, size)


def test_one_of_256_devices(snap_compare: Compare, size: tuple[int, int]) -> None:
    feed = many_devices(256, busy=True, past_s=60)
    assert pictured(snap_compare, feed, size, "up")


def test_a_cpu(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, device_feeds.cpus(), size)


def test_a_gpu(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, device_feeds.gpus(), size)


def test_no_device(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, MomentFeed(snapshots.nothing()), size)
