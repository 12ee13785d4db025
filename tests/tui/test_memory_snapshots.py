"""What the memory page looks like, as pictures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.feeds import Inline, ScriptedFeed
from support.memory_feeds import MIB, MemoryJob, held, profile, trainer
from textual.pilot import Pilot

from tpusmi.tui import Options
from tpusmi.tui.app import Dashboard

SIZES = [(80, 24), (120, 35), (200, 60)]
Compare = Callable[..., bool]
Size = tuple[int, int]

pytestmark = [
    pytest.mark.usefixtures("pictured"),
    pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x35", "200x60"]),
]


def compared(
    compare: Compare,
    feed: ScriptedFeed,
    size: Size,
    *keys: str | Callable[[], None],
    **options: object,
) -> bool:
    """The page after these keys, and what happens between them."""

    async def press(pilot: Pilot[None]) -> None:
        for key in ("", "m", *keys):
            if callable(key):
                key()
            elif key:
                await pilot.press(key)
            for _ in range(3):
                await pilot.pause()

    app = Dashboard(feed, Options(**options), reader=Inline)  # type: ignore[arg-type]
    return compare(app, terminal_size=size, run_before=press)


def grow(feed: ScriptedFeed) -> Callable[[], None]:
    """A line has come since, one has grown, and one has gone."""

    def happen() -> None:
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


def test_what_holds_the_memory(snap_compare: Compare, size: Size) -> None:
    assert compared(snap_compare, trainer(), size)


def test_what_has_grown_since_the_mark(snap_compare: Compare, size: Size) -> None:
    feed = trainer()
    assert compared(snap_compare, feed, size, "b", grow(feed), "r", "S", "enter", "down")


def test_one_of_256_devices(snap_compare: Compare, size: Size) -> None:
    feed = ScriptedFeed((MemoryJob(41234, 0, 256),))
    assert compared(snap_compare, feed, size, "D", "D", "e")


def test_one_device(snap_compare: Compare, size: Size) -> None:
    feed = ScriptedFeed((MemoryJob(41234, 0, 1),))
    assert compared(snap_compare, feed, size, "slash", *"optim")


def test_a_job_without_a_profile(snap_compare: Compare, size: Size) -> None:
    assert compared(snap_compare, trainer(), size, "escape", "down", "down", "m")


def test_a_silent_job_in_ascii_without_colour(snap_compare: Compare, size: Size) -> None:
    feed = ScriptedFeed((MemoryJob(41234, 0, 4, state="silent"),))
    assert compared(snap_compare, feed, size, "b", grow(feed), "r", "e", ascii=True, color=False)
