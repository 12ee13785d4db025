"""What the dashboard looks like, as characters and styles."""

from __future__ import annotations

import pytest
from support import snapshots
from support.feeds import MomentFeed, ScriptedFeed, many_devices, two_jobs
from support.job_feeds import old_jobs
from support.screens import AT_EVERY_SIZE, GoldenScreen, Size

from tpusmi.model import DENIED, OK, Outcome, Value

pytestmark = AT_EVERY_SIZE


async def test_eight_devices_and_two_jobs(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(two_jobs(), size)


@pytest.mark.parametrize("count", [1, 4, 16, 256])
async def test_hosts_with_few_and_many_devices(
    golden_screen: GoldenScreen, size: Size, count: int
) -> None:
    feed = many_devices(count, busy=True, past_s=600)
    await golden_screen(feed, size)


@pytest.mark.parametrize("keys", ["c", "Hg", "f"], ids=["compact", "heat", "full"])
async def test_the_ways_to_show_devices(golden_screen: GoldenScreen, size: Size, keys: str) -> None:
    feed = many_devices(32, busy=True, past_s=600)
    await golden_screen(feed, size, "tab", *keys, "down", theme="colorblind")


@pytest.mark.parametrize("count", [8, 256])
async def test_a_heat_map_with_old_and_unknown_values(
    golden_screen: GoldenScreen, size: Size, count: int
) -> None:
    feed = many_devices(count, busy=True)
    before = feed.snapshot()
    aged = {d.key for d in before.devices[1::5]}
    unknown = {d.key for d in before.devices[2::7]}
    values = {
        key: value._replace(age_s=42.0, stale=True) if key[0] in aged else value
        for key, value in before.values.items()
        if key[0] not in unknown
    }
    feed.change(values=values)
    await golden_screen(feed, size, "H", "tab", "right", terminal_colors=256)


@pytest.mark.parametrize("look", ["dark", "mono"])
async def test_a_heat_map_in_letters(golden_screen: GoldenScreen, size: Size, look: str) -> None:
    shown = {"theme": look, "color": look != "mono", "terminal_colors": 16}
    await golden_screen(many_devices(256, busy=True), size, "H", "tab", "right", "down", **shown)


async def test_values_that_are_old_are_grey_and_say_so(
    golden_screen: GoldenScreen, size: Size
) -> None:
    feed = two_jobs(on_chips=True)
    values = feed.snapshot().values.items()
    feed.change(values={key: Value(v.value, v.source, 42.0, True) for key, v in values})
    await golden_screen(feed, size)


async def test_a_look_back(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(two_jobs(), size, "shift+left", "left")


async def test_no_jobs(golden_screen: GoldenScreen, size: Size) -> None:
    feed = ScriptedFeed(changes={"sources": (Outcome("segments", OK, "no segments"),)})
    await golden_screen(feed, size)


async def test_one_source_denied(golden_screen: GoldenScreen, size: Size) -> None:
    denied = Outcome("sysfs", DENIED, "may not read /sys/bus/pci/devices: run as root to see it")
    feed = two_jobs(changes={"sources": (Outcome("segments", OK, "2 jobs"), denied)})
    await golden_screen(feed, size)


async def test_a_dead_job_and_a_silent_one(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(old_jobs(), size)


async def test_a_simulated_host_in_ascii_without_color(
    golden_screen: GoldenScreen, size: Size
) -> None:
    feed = two_jobs(changes={"simulated": True})
    await golden_screen(feed, size, ascii=True, color=False)


async def test_a_machine_whose_chips_have_two_cores(
    golden_screen: GoldenScreen, size: Size
) -> None:
    await golden_screen(MomentFeed(snapshots.machine()), size)


async def test_help(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(two_jobs(), size, "question_mark")
