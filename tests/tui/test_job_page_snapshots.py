"""What the job page looks like, as pictures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.feeds import Inline
from support.holder_feeds import ScriptedEnder, holders
from support.job_feeds import Bare, StoryFeed, on_cpu, recompiling, story
from test_snapshots import old_jobs
from textual.pilot import Pilot

from tpusmi.tui import Options
from tpusmi.tui.app import Dashboard
from tpusmi.tui.feed import Feed

SIZES = [(80, 24), (120, 35), (200, 60)]
Compare = Callable[..., bool]
FEEDS: dict[str, Callable[[], Feed]] = {
    "training": story,
    "recompiling": recompiling,
    "without_an_agent": lambda: StoryFeed((Bare(),), past_s=590),
    "on_a_cpu": on_cpu,
    "silent": old_jobs,
    "stale": holders,
}

pytestmark = [
    pytest.mark.usefixtures("pictured"),
    pytest.mark.parametrize("size", SIZES, ids=[f"{w}x{h}" for w, h in SIZES]),
]


def opened(*keys: str) -> Callable[[Pilot[None]], object]:
    async def ask(pilot: Pilot[None]) -> None:
        for key in ("", "j", *keys):
            await pilot.press(*([key] if key else []))
            for _ in range(3):
                await pilot.pause()

    return ask


def job_page(feed: Feed, **options: object) -> Dashboard:
    """The dashboard on a script, with keys that end processes."""
    return Dashboard(feed, Options(**ScriptedEnder().options, **options), reader=Inline)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FEEDS)
def test_a_job(snap_compare: Compare, size: tuple[int, int], name: str) -> None:
    app = job_page(FEEDS[name]())
    assert snap_compare(app, terminal_size=size, run_before=opened())


def test_a_job_that_ended(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(job_page(old_jobs()), terminal_size=size, run_before=opened("tab"))


def test_a_job_four_minutes_ago(snap_compare: Compare, size: tuple[int, int]) -> None:
    back = opened(*["shift+left"] * 4)
    assert snap_compare(job_page(story()), terminal_size=size, run_before=back)


def test_a_job_in_ascii_without_colour(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = job_page(recompiling(), ascii=True, color=False)
    assert snap_compare(app, terminal_size=size, run_before=opened())
