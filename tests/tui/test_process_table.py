"""The keys of the process table: tree, order, filters, tags, and what a mouse does."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, height, press, row, screen_text, selected, settle, text
from support.feeds import Job, ScriptedFeed, many_devices, two_jobs
from support.holder_feeds import HEALTHY, LOADED, SERVER_SHELL, STALE, WORKERS, family
from textual.events import MouseScrollDown
from textual.pilot import Pilot

from tpusmi.tui.job.job_page import JobPage
from tpusmi.tui.main.main_page import MainPage

WIDE = (200, 45)
FIRST, SECOND = WORKERS


def pids(pilot: Pilot[None]) -> list[int]:
    """From top to bottom, those that have only started others as well."""
    lines = text(pilot, "processes").splitlines()[1:]
    return [int(line[2:].split()[0]) for line in lines if line.strip()]


def tagged(pilot: Pilot[None]) -> list[int]:
    lines = text(pilot, "processes").splitlines()[1:]
    return [int(line[2:].split()[0]) for line in lines if line[1:2] == "*"]


def titles(pilot: Pilot[None]) -> str:
    return text(pilot, "processes").splitlines()[0]


def copied(pilot: Pilot[None]) -> str:
    page = pilot.app.screen
    assert isinstance(page, MainPage)
    return page.copied()


async def click(pilot: Pilot[None], title: str) -> None:
    await pilot.click("#processes", offset=(titles(pilot).index(title), 0))
    await settle(pilot)


# -- the tree


async def test_the_tree_shows_who_started_whom_and_goes_away_again() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        flat = pids(pilot)
        assert SERVER_SHELL not in flat
        await press(pilot, "t")
        assert pids(pilot) == [STALE, SERVER_SHELL, HEALTHY, *WORKERS, LOADED]
        assert "└─ python serve.py" in row(pilot, HEALTHY)
        assert "   ├─ python -m worker --rank=0" in row(pilot, FIRST)
        assert "   └─ python -m worker --rank=1" in row(pilot, SECOND)
        shell = row(pilot, SERVER_SHELL).split()
        assert (shell[0], shell[-2:]) == (str(SERVER_SHELL), ["bash", "-l"])
        assert "tree" in titles(pilot)
        await press(pilot, "t")
        assert pids(pilot) == flat
        assert "tree" not in titles(pilot)


async def test_commands_scroll_sideways_to_their_end_and_back() -> None:
    async with dashboard(family(), size=(80, 24)) as pilot:
        start = row(pilot, FIRST)
        await press(pilot, "right_curly_bracket")
        assert "…orker --ran" in row(pilot, FIRST)
        await press(pilot, *["right_curly_bracket"] * 50)
        assert row(pilot, FIRST).split()[-1].startswith("…")
        await press(pilot, *["left_curly_bracket"] * 50)
        assert row(pilot, FIRST) == start


async def test_in_the_tree_those_with_one_parent_are_sorted() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        await press(pilot, "t", "o", "P")
        assert pids(pilot) == [LOADED, SERVER_SHELL, HEALTHY, SECOND, FIRST, STALE]
        await press(pilot, "R")
        assert pids(pilot) == [STALE, SERVER_SHELL, HEALTHY, FIRST, SECOND, LOADED]


async def test_the_cursor_passes_over_what_has_only_started_others() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        await press(pilot, "t", "home", "down")
        assert selected(pilot) == str(HEALTHY)
        await press(pilot, "up")
        assert selected(pilot) == str(STALE)
        y = pids(pilot).index(SERVER_SHELL) + 1
        await pilot.click("#processes", offset=(30, y))
        await settle(pilot)
        assert selected(pilot) == str(HEALTHY)


async def test_in_the_tree_nothing_but_ascii_where_only_that_can_be_shown() -> None:
    async with dashboard(family(), size=WIDE, ascii=True) as pilot:
        await press(pilot, "t")
        assert "|- python -m worker --rank=0" in row(pilot, FIRST)
        assert "\n".join(screen_text(pilot)).isascii()


async def test_a_filter_holds_in_the_tree() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        await press(pilot, "t", "slash", *"rank=1", "enter")
        # The parent is drawn as a mere starter then: it does not pass.
        assert pids(pilot) == [SERVER_SHELL, HEALTHY, SECOND]
        await press(pilot, "down")
        assert selected(pilot) == str(SECOND)


# -- the order


@pytest.mark.parametrize(
    ("letter", "title", "first", "first_then"),
    [
        ("n", "DEVICES▴", STALE, HEALTHY),
        ("p", "PID▴", STALE, LOADED),
        ("u", "USER▴", STALE, HEALTHY),
        ("g", "MEMORY▾", HEALTHY, FIRST),
        ("c", "CPU▾", HEALTHY, STALE),
        ("m", "RSS▾", STALE, SECOND),
        ("t", "TIME▾", HEALTHY, SECOND),
        ("s", "STEPS/s▾", HEALTHY, FIRST),
    ],
)
async def test_o_and_a_letter_sort_by_its_column_and_the_capital_the_other_way(
    letter: str, title: str, first: int, first_then: int
) -> None:
    async with dashboard(family(), size=(220, 45)) as pilot:
        await press(pilot, "o")
        assert "p PID" in text(pilot, "prompt")
        await press(pilot, letter)
        assert height(pilot, "prompt") == 0
        assert title in titles(pilot)
        assert pids(pilot)[0] == first
        await press(pilot, "o", letter.upper())
        other = title.translate(str.maketrans("▴▾", "▾▴"))
        assert other in titles(pilot)
        assert pids(pilot)[0] == first_then


async def test_unknown_values_are_last_both_ways() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        for keys in (("o", "c"), ("o", "C")):
            await press(pilot, *keys)
            assert pids(pilot)[-1] == LOADED


async def test_bandwidth_is_a_column_and_an_order_where_it_is_measured() -> None:
    async with dashboard(two_jobs(on_chips=True), size=(220, 45)) as pilot:
        await press(pilot, "o", "b")
        assert "BW▾" in titles(pilot)
        assert " MXU " in titles(pilot)
        assert row(pilot, 41234).count(" %") == 2


@pytest.mark.parametrize("key", ["escape", "z", "1", "enter"])
async def test_a_key_that_is_no_column_changes_nothing(key: str) -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        before = text(pilot, "processes")
        await press(pilot, "o", key)
        assert text(pilot, "processes") == before
        assert height(pilot, "prompt") == 0
        said = "No column has the letter" in text(pilot, "footer")
        assert said == (key != "escape")
        # The next key is a key again.
        await press(pilot, "o", "p")
        assert "PID▴" in titles(pilot)


async def test_o_and_a_letter_in_one_burst_leave_the_next_key_alone() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        await pilot.press("o", "m", "space")
        await settle(pilot)
        assert "RSS▾" in titles(pilot)
        assert len(tagged(pilot)) == 1


async def test_a_click_on_a_title_sorts_and_a_second_one_reverses() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        await click(pilot, "RSS")
        assert "RSS▾" in titles(pilot)
        await click(pilot, "RSS")
        assert "RSS▴" in titles(pilot)
        await click(pilot, "COMMAND")
        assert "COMMAND▴" in titles(pilot)


async def test_an_order_whose_column_has_no_room_is_said() -> None:
    async with dashboard(family(), size=(80, 24)) as pilot:
        await press(pilot, "o", "t")
        assert titles(pilot).rstrip().endswith("by TIME▾")


async def test_columns_of_the_host_are_there_where_they_are_known_and_have_room() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        for words in ("0.2 %", "29.0 GiB", "3h00m"):
            assert words in row(pilot, STALE)
        assert "3d02h" in row(pilot, HEALTHY)
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert "RSS" not in titles(pilot)
        assert "python" in row(pilot, STALE)
    async with dashboard(two_jobs(), size=WIDE) as pilot:
        assert not {"CPU", "RSS", "TIME", "MXU", "BW"} & set(titles(pilot).split())


# -- filters


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("user=grace", [HEALTHY, *WORKERS]),
        ("chip=0-3", [STALE]),
        ("chip=5", [HEALTHY, SECOND]),
        ("stale", [STALE]),
        ("!stale worker", [*WORKERS]),
        (f"pid={LOADED}", [LOADED]),
        ("WORKER rank=1", [SECOND]),
    ],
)
async def test_a_filter_is_made_of_words(words: str, found: list[int]) -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        await press(pilot, "slash", *words, "enter")
        assert sorted(pids(pilot)) == found
        assert f"Filter: {words}" in text(pilot, "prompt")
        await press(pilot, "escape")
        assert len(pids(pilot)) == 5


async def test_a_filter_of_the_command_line_is_shown_from_the_start() -> None:
    async with dashboard(family(), size=WIDE, filter="stale user=a") as pilot:
        assert pids(pilot) == [STALE]
        assert "Filter: stale user=a" in "\n".join(screen_text(pilot))
        await press(pilot, "escape")
        assert len(pids(pilot)) == 5


async def test_u_asks_for_a_user_and_enter_alone_shows_everybody() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        await press(pilot, "u")
        assert "User: " in text(pilot, "prompt")
        await press(pilot, *"gr", "enter")
        assert sorted(pids(pilot)) == [HEALTHY, *WORKERS]
        assert "Filter: user=gr" in text(pilot, "prompt")
        await press(pilot, "slash", *" worker", "enter")
        assert sorted(pids(pilot)) == [*WORKERS]
        await press(pilot, "u")
        assert "User: gr" in text(pilot, "prompt")
        await press(pilot, "ctrl+u", "enter")
        assert "Filter: worker" in text(pilot, "prompt")
        await press(pilot, "u", *"ada", "escape")
        assert "Filter: worker" in text(pilot, "prompt")


# -- tags


async def test_space_tags_and_goes_on_and_untags_again() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        assert selected(pilot) == str(STALE)
        await press(pilot, "space")
        assert tagged(pilot) == [STALE]
        assert selected(pilot) != str(STALE)
        await press(pilot, "space")
        assert len(tagged(pilot)) == 2
        assert titles(pilot).rstrip().endswith("2 tagged")
        await press(pilot, "home", "space")
        assert STALE not in tagged(pilot)
        assert titles(pilot).rstrip().endswith("1 tagged")


async def test_tags_stay_on_their_processes_and_vanish_with_them() -> None:
    feed = family()
    async with dashboard(feed, size=WIDE) as pilot:
        await press(pilot, "end", "space", "home", "space")
        assert tagged(pilot) == [STALE, LOADED]
        await press(pilot, "o", "P")
        assert tagged(pilot) == [LOADED, STALE]
        await press(pilot, "t")
        assert tagged(pilot) == [LOADED, STALE]
        feed.jobs = feed.jobs[1:]
        await press(pilot, "r")
        assert tagged(pilot) == [LOADED]
        # Another process of that number is another process.
        feed.jobs = (Job(STALE, "new", 0, 1), *feed.jobs)
        feed.jobs[0].key = feed.jobs[0].key._replace(start_ticks=7)
        await press(pilot, "r")
        assert tagged(pilot) == [LOADED]


async def test_escape_untags_before_it_drops_the_filter() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        await press(pilot, "slash", *"worker", "enter", "space", "space")
        assert len(tagged(pilot)) == 2
        await press(pilot, "escape")
        assert tagged(pilot) == []
        assert len(pids(pilot)) == 2
        await press(pilot, "escape")
        assert len(pids(pilot)) == 5


async def test_a_tagged_process_that_the_filter_hides_is_still_counted() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        await press(pilot, "space", "slash", *"worker", "enter")
        assert "1 tagged" in titles(pilot)
        assert tagged(pilot) == []


async def test_what_has_ended_cannot_be_tagged_and_devices_neither() -> None:
    dead = Job(39001, "python old.py", 0, 1, state="dead", phase="ended")
    async with dashboard(ScriptedFeed((dead,)), size=WIDE) as pilot:
        await press(pilot, "space")
        assert "tagged" not in titles(pilot)
    async with dashboard(family(), size=WIDE) as pilot:
        await press(pilot, "tab", "space")
        assert "tagged" not in titles(pilot)


# -- the cursor


async def test_the_cursor_starts_on_a_stale_holder_and_never_moves_there_by_itself() -> None:
    feed = family()
    feed.jobs = (*feed.jobs[1:], feed.jobs[0])
    feed.change(processes=tuple(j.process(feed.at_s) for j in feed.jobs))
    async with dashboard(feed, size=WIDE) as pilot:
        await press(pilot, "o", "P")
        assert selected(pilot) == str(STALE)
        assert pids(pilot)[-1] == STALE
        await press(pilot, "home", "r", "r")
        assert selected(pilot) == str(LOADED)
        await press(pilot, "x")
        assert selected(pilot) == str(STALE)


async def test_when_its_process_is_gone_the_cursor_stays_in_its_place() -> None:
    feed = family()
    async with dashboard(feed, size=WIDE) as pilot:
        await press(pilot, "o", "p", "home", "down", "down")
        assert selected(pilot) == str(FIRST)
        feed.jobs = tuple(job for job in feed.jobs if job.key.pid != FIRST)
        await press(pilot, "r")
        assert selected(pilot) == str(SECOND)


async def test_a_double_click_opens_the_job_page_and_a_single_one_does_not() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        await pilot.click("#processes", offset=(4, 2))
        await settle(pilot)
        assert isinstance(pilot.app.screen, MainPage)
        await pilot.double_click("#processes", offset=(4, 3))
        await settle(pilot)
        assert isinstance(pilot.app.screen, JobPage)


async def test_the_wheel_scrolls_and_leaves_the_cursor() -> None:
    jobs = tuple(Job(1000 + i, f"python job{i}.py", i, 1) for i in range(60))
    async with dashboard(ScriptedFeed(jobs), size=(100, 24)) as pilot:
        top = pids(pilot)[0]
        await pilot._post_mouse_events([MouseScrollDown], "#processes", offset=(4, 2))
        await settle(pilot)
        assert pids(pilot)[0] > top
        assert selected(pilot) == "1000"


async def test_what_is_copied_is_the_pid_or_the_device() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        assert copied(pilot) == str(STALE)
        await press(pilot, "tab")
        assert copied(pilot) == "tpu:0"
    async with dashboard(ScriptedFeed(), size=WIDE) as pilot:
        assert copied(pilot) == ""


@pytest.mark.parametrize("size", [(40, 10), (20, 5), (1, 1), (300, 90)])
async def test_every_size_is_clipped(size: tuple[int, int]) -> None:
    async with dashboard(family(), size=size) as pilot:
        for keys in (("t",), ("space",), ("o",), ("escape",), ("u", "a", "enter")):
            await press(pilot, *keys)
            assert {len(line) for line in screen_text(pilot)} == {size[0]}


async def test_columns_stand_still_while_one_tags_and_draws_a_tree() -> None:
    async with dashboard(family(), size=WIDE) as pilot:
        before = titles(pilot).split()[:10]
        places = [titles(pilot).index(title) for title in before]
        for key in ("space", "t", "space", "down", "t", "escape"):
            await press(pilot, key)
            assert [titles(pilot).index(title) for title in before] == places


async def test_many_devices_have_one_row_for_each_job() -> None:
    async with dashboard(many_devices(256, busy=True), size=(220, 60)) as pilot:
        await press(pilot, "slash", *"chip=200", "enter")
        assert len(pids(pilot)) == 1
