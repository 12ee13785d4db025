"""The job page before a job began and after it is gone, and counts that are not always known."""

from __future__ import annotations

from support.dashboards import dashboard, press, screen_text, text, until
from support.holder_feeds import ScriptedEnder
from support.job_feeds import LIFE, OTHER, PID, Bare, StoryFeed, StoryJob, story

from tpusmi.model import Value
from tpusmi.tui import Options
from tpusmi.tui.draw.look import Look
from tpusmi.tui.job.job_graphs import JobGraphs
from tpusmi.tui.scene import Scene


async def test_a_look_back_before_its_beginning_says_so_and_ends_no_other() -> None:
    young = Bare(OTHER, life=LIFE._replace(age_s=100.0))
    async with dashboard(story(young), size=(100, 30), **ScriptedEnder().options) as pilot:
        await press(pilot, "j", "tab", "shift+left")
        assert str(OTHER) in screen_text(pilot)[1]
        await press(pilot, "shift+left")
        assert f"pid {OTHER} had not started yet." in text(pilot, "job")
        assert pilot.app.page.targets == ()  # type: ignore[attr-defined]
        await press(pilot, "n")
        assert str(OTHER) in screen_text(pilot)[1]


async def test_a_process_that_is_gone_is_gone_and_no_other_is_in_its_place() -> None:
    feed = story(Bare(OTHER))
    async with dashboard(feed, size=(100, 30), **ScriptedEnder().options, interval_s=0.02) as pilot:
        await press(pilot, "j")
        feed.change(processes=(feed.jobs[1].process(feed.at_s),))
        await until(pilot, lambda: f"pid {PID} is gone." in text(pilot, "job"))
        assert pilot.app.page.targets == ()  # type: ignore[attr-defined]


def compiled(feed: StoryFeed) -> str:
    """What the page says of compilations in the last minute."""
    now = feed.snapshot()
    scene = Scene(Look(), Options(), feed.history)
    rows = JobGraphs(scene, now, now.processes[0], 60, 100).lines(30)
    lines = ["".join(piece.text for piece in row) for row in rows]
    return next(line for line in lines if line.startswith("compiled"))


def test_that_nothing_was_compiled_is_said_where_the_number_is_known_at_both_ends() -> None:
    assert compiled(story()).rstrip().endswith("programs in memory, none in the last minute")
    late = StoryFeed((StoryJob(),), past_s=30)
    assert "none in" not in compiled(late)
    silent = story()
    values = silent.snapshot().values
    silent.change(values={k: Value(v.value, v.source, 70.0, True) for k, v in values.items()})
    assert "none in" not in compiled(silent)


def test_what_was_compiled_while_nobody_looked_is_not_none() -> None:
    feed = story()
    more = {
        k: v._replace(value=v.value + 3) if k[1] == "compilations" else v
        for k, v in feed.snapshot().values.items()
    }
    feed.change(values=more)
    assert "none in" not in compiled(feed)
