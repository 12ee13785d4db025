"""The cursor follows a job that is started again, and stays where the user has put it."""

from __future__ import annotations

from support.dashboards import dashboard, press, selected, shown, text
from support.feeds import Job, ScriptedFeed
from textual.pilot import Pilot

OTHER, OLD, NEW, WORD = 7000, 41234, 50001, "python train.py"


def old(**how: object) -> Job:
    return Job(OLD, WORD, 0, 4, **how)  # type: ignore[arg-type]


def new(command: str = WORD, **how: object) -> Job:
    return Job(NEW, command, 0, 4, **how)  # type: ignore[arg-type]


def feed() -> ScriptedFeed:
    return ScriptedFeed((Job(OTHER, "python serve.py", 4, 4), old()))


async def becomes(pilot: Pilot[None], feed: ScriptedFeed, *jobs: Job) -> None:
    feed.jobs = (Job(OTHER, "python serve.py", 4, 4), *jobs)
    await press(pilot, "r")


async def test_the_same_command_again_is_chosen_and_the_footer_says_so() -> None:
    script = feed()
    async with dashboard(script) as pilot:
        await press(pilot, "home")
        assert selected(pilot) == str(OLD)
        await becomes(pilot, script, old(state="dead"))
        assert selected(pilot) == str(OLD)
        await becomes(pilot, script, old(state="dead"), new())
        assert selected(pilot) == str(NEW)
        assert f"pid {OLD} has ended: pid {NEW} runs the same command" in text(pilot, "footer")
        await press(pilot, "end")
        await becomes(pilot, script, old(state="dead"), new())
        assert selected(pilot) == str(OLD)


async def test_it_is_also_chosen_where_the_old_one_left_nothing() -> None:
    script = feed()
    async with dashboard(script) as pilot:
        await press(pilot, "home")
        await becomes(pilot, script)
        assert selected(pilot) == str(OTHER)
        await becomes(pilot, script, new())
        assert selected(pilot) == str(NEW)


async def test_a_cursor_that_the_user_has_moved_stays() -> None:
    script = feed()
    async with dashboard(script) as pilot:
        await press(pilot, "home")
        await becomes(pilot, script, old(state="dead"))
        await press(pilot, "home")
        await becomes(pilot, script, old(state="dead"), new())
        assert selected(pilot) == str(OTHER)


async def test_another_command_user_or_a_process_from_before_is_not_followed() -> None:
    for other in (new("python eval.py"), new(user="grace")):
        script = feed()
        async with dashboard(script) as pilot:
            await press(pilot, "home")
            await becomes(pilot, script, old(state="dead"), other)
            assert selected(pilot) == str(OLD)
    script = feed()
    script.jobs = (*script.jobs, new())
    async with dashboard(script) as pilot:
        assert selected(pilot) == str(OLD)
        await becomes(pilot, script, old(state="dead"), new())
        assert selected(pilot) == str(OLD)


async def test_the_job_page_shows_the_new_run_and_the_main_page_then_has_it_chosen() -> None:
    script = feed()
    async with dashboard(script) as pilot:
        await press(pilot, "home", "j")
        await becomes(pilot, script, old(state="dead"), new())
        assert str(NEW) in shown(pilot).splitlines()[1]
        await press(pilot, "escape")
        assert selected(pilot) == str(NEW)
