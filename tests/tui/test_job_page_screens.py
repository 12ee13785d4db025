"""What the job page looks like, as characters and styles."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.holder_feeds import ScriptedEnder, holders
from support.job_feeds import Bare, StoryFeed, old_jobs, on_cpu, recompiling, story
from support.screens import AT_EVERY_SIZE, GoldenScreen, Size

from tpusmi.tui.feed import Feed

FEEDS: dict[str, Callable[[], Feed]] = {
    "training": story,
    "recompiling": recompiling,
    "without_an_agent": lambda: StoryFeed((Bare(),), past_s=590),
    "on_a_cpu": on_cpu,
    "silent": old_jobs,
    "stale": holders,
}

pytestmark = AT_EVERY_SIZE


@pytest.mark.parametrize("name", FEEDS)
async def test_a_job(golden_screen: GoldenScreen, size: Size, name: str) -> None:
    await golden_screen(FEEDS[name](), size, "j", **ScriptedEnder().options)


async def test_a_job_that_ended(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(old_jobs(), size, "j", "tab", **ScriptedEnder().options)


async def test_a_job_four_minutes_ago(golden_screen: GoldenScreen, size: Size) -> None:
    keys = ("j", *["shift+left"] * 4)
    await golden_screen(story(), size, *keys, **ScriptedEnder().options)


async def test_a_job_in_ascii_without_color(golden_screen: GoldenScreen, size: Size) -> None:
    how = {"ascii": True, "color": False, **ScriptedEnder().options}
    await golden_screen(recompiling(), size, "j", **how)
