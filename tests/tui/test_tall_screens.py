"""Tall screens: what is there fills them, and nothing moves while data come in."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, height, press, screen_text, settle, shown, text
from support.feeds import Job, ScriptedFeed, computed_once, many_devices
from support.job_feeds import Bare, story
from support.memory_feeds import MemoryJob, held, profile
from support.screens import GoldenScreen, Size
from textual.pilot import Pilot

SIZES = [(80, 50), (120, 50), (200, 60), (250, 80)]
NAMES = ["80x50", "120x50", "200x60", "250x80"]
PAGES = {"main": (), "device": ("d",), "memory": ("m",), "job": ("j",)}
BLANK = 6
"""So many lines below the last text are no waste: lines are shared by fours."""


@computed_once
def jobs(count: int, chips: int) -> ScriptedFeed:
    """So many jobs with equal shares of the chips."""
    each = max(1, chips // max(count, 1))
    found = [MemoryJob(41_000 + n, n * each, each, busy=True) for n in range(count)]
    return ScriptedFeed(tuple(found), past_s=590)


def blank_below(pilot: Pilot[None]) -> int:
    """Empty lines at the end of the page, above the footer."""
    lines = screen_text(pilot)[1:-1]
    return next((n for n, line in enumerate(reversed(lines)) if line.strip()), len(lines))


@pytest.mark.parametrize("size", SIZES, ids=NAMES)
@pytest.mark.parametrize("chips", [1, 4, 8, 256])
@pytest.mark.parametrize("page", PAGES)
async def test_one_job_fills_the_screen(page: str, chips: int, size: tuple[int, int]) -> None:
    async with dashboard(jobs(1, chips), size) as pilot:
        await press(pilot, *PAGES[page])
        assert blank_below(pilot) <= BLANK, shown(pilot)


@pytest.mark.parametrize("size", SIZES, ids=NAMES)
@pytest.mark.parametrize("count", [2, 8])
async def test_several_jobs_fill_it(count: int, size: tuple[int, int]) -> None:
    async with dashboard(jobs(count, 8), size) as pilot:
        assert blank_below(pilot) <= BLANK, shown(pilot)


@pytest.mark.parametrize("size", SIZES, ids=NAMES)
@pytest.mark.parametrize("page", ["main", "job"])
async def test_a_job_without_an_agent_fills_it(page: str, size: tuple[int, int]) -> None:
    async with dashboard(ScriptedFeed((Bare(),), past_s=300), size) as pilot:
        await press(pilot, *PAGES[page])
        assert blank_below(pilot) <= BLANK, shown(pilot)


@pytest.mark.parametrize("size", SIZES, ids=NAMES)
async def test_without_a_job_the_welcome_stands_alone(size: tuple[int, int]) -> None:
    async with dashboard(ScriptedFeed(), size) as pilot:
        assert "import tpusmi; tpusmi.start()" in shown(pilot)
        assert "now" not in text(pilot, "graphs").split()


async def test_a_very_tall_screen_has_the_details_of_a_second_job() -> None:
    async with dashboard(jobs(2, 8), (200, 90)) as pilot:
        titles = [r for r in text(pilot, "detail").splitlines() if "python -m train.main" in r]
        assert [title.split()[1] for title in titles] == ["41000", "41001"]
        await press(pilot, "down")
        titles = [r for r in text(pilot, "detail").splitlines() if "python -m train.main" in r]
        assert [title.split()[1] for title in titles] == ["41001", "41000"]


async def test_what_only_a_file_says_and_what_has_ended_has_no_second_place() -> None:
    dead = Job(39_001, "python old.py", 0, 4, state="dead", phase="ended")
    feed = ScriptedFeed((MemoryJob(41_000, 0, 4), dead), past_s=300)
    async with dashboard(feed, (200, 90)) as pilot:
        assert "39001" not in text(pilot, "detail")


def parts(pilot: Pilot[None]) -> list[int]:
    """How many lines each part of the main page has."""
    return [height(pilot, name) for name in ("devices", "graphs", "processes", "detail")]


@pytest.mark.parametrize("size", SIZES, ids=NAMES)
async def test_no_part_of_the_main_page_moves_while_data_come_in(size: tuple[int, int]) -> None:
    """From a job without a profile to one whose lines of code become more, and fewer again."""
    job = MemoryJob(41_000, 0, 4, busy=True)
    job.take(None)
    feed = ScriptedFeed((job,), tick_s=1.0)
    async with dashboard(feed, size) as pilot:
        first = parts(pilot)
        for more in (0, 1, 2, 1, 0):
            lines = [(f"f{n}", "train/new.py", n, 30, 3) for n in range(more)]
            job.take(profile(99_999.0, held(4, *lines)))
            await press(pilot, "r", "r")
            assert parts(pilot) == first


async def test_a_job_page_has_the_memory_over_time_where_it_is_tall() -> None:
    async with dashboard(story(), (120, 60)) as pilot:
        await press(pilot, "j")
        assert "memory     live arrays, with all memory in use above" in shown(pilot)
        await pilot.resize_terminal(120, 30)
        await settle(pilot)
        assert "live arrays, with all memory in use" not in shown(pilot)


async def test_a_wide_job_page_has_its_devices_and_another_job() -> None:
    async with dashboard(jobs(2, 8), (250, 80)) as pilot:
        await press(pilot, "j")
        page = shown(pilot)
        assert "DEVICE             MEMORY     MXU    DUTY      BW" in page
        assert all(f"tpu:{n} " in page for n in range(4))
        assert "R 41001 python -m train.main" in page


async def test_the_memory_page_draws_what_the_job_or_the_device_holds() -> None:
    async with dashboard(jobs(1, 4), (120, 50)) as pilot:
        await press(pilot, "m")
        whole = text(pilot, "memory-graph").splitlines()
        assert whole[0].startswith("memory live arrays, with all memory in use above")
        assert whole[1].startswith("60.0 GiB")
        await press(pilot, "D")
        assert text(pilot, "memory-graph").splitlines()[1].startswith("15.0 GiB")


async def test_the_graph_gives_way_to_what_a_person_unfolds() -> None:
    async with dashboard(jobs(1, 4), (120, 50)) as pilot:
        await press(pilot, "m")
        before = height(pilot, "memory-graph")
        await press(pilot, "enter")
        assert height(pilot, "memory-graph") == before - 4
        await press(pilot, "e")
        assert height(pilot, "memory-graph") < before - 4
        await press(pilot, "E")
        assert height(pilot, "memory-graph") == before


async def test_a_line_that_comes_and_goes_moves_the_graph_once() -> None:
    feed = jobs(1, 4)
    job = feed.jobs[0]
    assert isinstance(job, MemoryJob)
    async with dashboard(feed, (120, 50)) as pilot:
        await press(pilot, "m")
        seen = [height(pilot, "memory-graph")]
        for n in range(4):
            new = [("new", "train/new.py", 3, 30, 3)] if n % 2 == 0 else []
            job.take(profile(99_997.0 + n, held(4, *new)))
            await press(pilot, "r")
            seen.append(height(pilot, "memory-graph"))
        assert seen[1:] == [seen[0] - 1] * 4


async def test_a_small_memory_page_has_no_graph() -> None:
    async with dashboard(jobs(1, 4), (80, 16)) as pilot:
        await press(pilot, "m")
        assert height(pilot, "memory-graph") == 0


@pytest.mark.parametrize("size", SIZES, ids=NAMES)
@pytest.mark.parametrize("page", PAGES)
async def test_tall_pages(golden_screen: GoldenScreen, page: str, size: Size) -> None:
    await golden_screen(jobs(2, 8), size, *PAGES[page])


@pytest.mark.parametrize("past_s", [5, 70])
@pytest.mark.parametrize("size", [(80, 24), (120, 50)], ids=["80x24", "120x50"])
async def test_the_first_minute(golden_screen: GoldenScreen, past_s: int, size: Size) -> None:
    await golden_screen(many_devices(8, busy=True, past_s=past_s), size)
