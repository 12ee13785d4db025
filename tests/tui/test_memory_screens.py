"""What the memory page looks like, as characters and styles."""

from __future__ import annotations

from collections.abc import Callable

from support.feeds import ScriptedFeed
from support.memory_feeds import MIB, MemoryJob, held, profile, trainer
from support.screens import AT_EVERY_SIZE, GoldenScreen, Size
from textual.pilot import Pilot

pytestmark = AT_EVERY_SIZE


def grow(feed: ScriptedFeed) -> Callable[[Pilot[None]], None]:
    """A line has come since, one has grown, and one has gone."""

    def happen(pilot: Pilot[None]) -> None:
        job = feed.jobs[0]
        assert isinstance(job, MemoryJob)
        leak = ("log_metrics", "train/metrics.py", 27, 300, 30)
        found = (
            a._replace(bytes=a.bytes + 50 * MIB, count=a.count + 2)
            if a.line == 77 and a.bytes
            else a
            for a in held(job.count, leak)
            if a.line != 188
        )
        job.take(profile(99_999.0, tuple(found)))

    return happen


async def test_what_holds_the_memory(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(trainer(), size, "m")


async def test_what_has_grown_since_the_mark(golden_screen: GoldenScreen, size: Size) -> None:
    feed = trainer()
    await golden_screen(feed, size, "m", "b", grow(feed), "r", "S", "enter", "down")


async def test_one_of_256_devices(golden_screen: GoldenScreen, size: Size) -> None:
    feed = ScriptedFeed((MemoryJob(41234, 0, 256),))
    await golden_screen(feed, size, "m", "D", "D", "e")


async def test_one_device(golden_screen: GoldenScreen, size: Size) -> None:
    feed = ScriptedFeed((MemoryJob(41234, 0, 1),))
    await golden_screen(feed, size, "m", "slash", *"optim")


async def test_a_job_without_a_profile(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(trainer(), size, "m", "escape", "down", "down", "m")


async def test_a_silent_job_in_ascii_without_color(golden_screen: GoldenScreen, size: Size) -> None:
    feed = ScriptedFeed((MemoryJob(41234, 0, 4, state="silent"),))
    await golden_screen(feed, size, "m", "b", grow(feed), "r", "e", ascii=True, color=False)
