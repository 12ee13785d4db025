"""The memory page, its keys and its mouse."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, press, screen_text, settle, shown
from support.feeds import Job, ScriptedFeed
from support.memory_feeds import MIB, MemoryJob, held, profile, sums, trainer
from textual.events import MouseScrollDown
from textual.pilot import Pilot

from tpusmi.model import MemoryProfile
from tpusmi.tui.memory.memory_page import MemoryPage
from tpusmi.tui.memory.memory_tree import TreeTable

LEAK = ("log_metrics", "train/metrics.py", 27, 300, 30)


def page(pilot: Pilot[None]) -> MemoryPage:
    found = pilot.app.screen
    assert isinstance(found, MemoryPage)
    return found


def table(pilot: Pilot[None]) -> TreeTable:
    return page(pilot).rows


def titles(pilot: Pilot[None]) -> str:
    return table(pilot).text().splitlines()[0]


def rows(pilot: Pilot[None]) -> list[str]:
    return [line.rstrip() for line in table(pilot).text().splitlines()[1:]]


def names(pilot: Pilot[None]) -> list[str]:
    """What the rows are about, without numbers and marks."""
    return [line.partition("▸ ")[2].split()[0] for line in rows(pilot) if "▸" in line]


def head(pilot: Pilot[None]) -> str:
    return page(pilot).head.text()


def one_job(count: int = 4, **how: object) -> ScriptedFeed:
    return ScriptedFeed((MemoryJob(41234, 0, count),), **how)  # type: ignore[arg-type]


def grow(feed: ScriptedFeed, at_s: float = 99_999.0) -> None:
    """The first job has a newer profile, in which a line has come and another has grown."""
    job = feed.jobs[0]
    assert isinstance(job, MemoryJob)
    more = (
        a._replace(bytes=a.bytes + 10 * MIB, count=a.count + 1) if a.line == 77 and a.bytes else a
        for a in held(job.count, LEAK)
    )
    job.take(profile(at_s, tuple(more)))


async def test_the_largest_allocation_is_read_after_one_key() -> None:
    async with dashboard(trainer(), size=(80, 24)) as pilot:
        await press(pilot, "m")
        first = rows(pilot)[0]
        assert "21.8 GiB" in first
        assert "init_optimizer  train/optimizer.py:48" in first
        assert page(pilot).copied() == "train/optimizer.py:48"


async def test_enter_opens_a_row_and_shuts_it() -> None:
    async with dashboard(one_job(), size=(100, 30)) as pilot:
        await press(pilot, "m", "enter")
        devices = [line.split("B", 1)[1].split()[-4:] for line in rows(pilot)[1:5]]
        assert devices == [[f"tpu:{n}", "mean", "11.1", "MiB"] for n in range(4)]
        await press(pilot, "enter")
        assert names(pilot)[1] == "init_params"


async def test_a_row_of_several_lines_opens_line_by_line() -> None:
    async with dashboard(one_job(), size=(100, 30)) as pilot:
        await press(pilot, "m", "down", "down", "enter")
        assert "▾ train_step  train/loop.py, 2 lines" in rows(pilot)[2]
        assert "▸ train/loop.py:131" in rows(pilot)[3]
        await press(pilot, "down", "down", "enter", "down")
        assert "tpu:0" in rows(pilot)[5]
        assert page(pilot).copied() == "train/loop.py:188"


async def test_e_opens_every_row_and_capital_e_shuts_them_under_the_cursor() -> None:
    async with dashboard(one_job(2), size=(100, 40)) as pilot:
        await press(pilot, "m", "e")
        assert len(rows(pilot)) == 4 + 1 + 2 + 4 + 3 * 2 + 2 + 2
        await press(pilot, "down", "down", "E")
        assert len(rows(pilot)) == 5
        assert page(pilot).copied() == "train/optimizer.py:48"


async def test_the_cursor_moves_by_rows_and_pages_and_to_the_ends() -> None:
    async with dashboard(one_job(), size=(100, 24)) as pilot:
        await press(pilot, "m", "e")
        grid = table(pilot)
        last = len(grid.items) - 1
        for key, index in (
            ("end", last),
            ("up", last - 1),
            ("pageup", last - 1 - grid.page),
            ("home", 0),
            ("pagedown", grid.page),
            ("down", grid.page + 1),
        ):
            await press(pilot, key)
            assert grid.index == index, key


async def test_the_mark_shows_what_has_grown_since() -> None:
    feed = one_job()
    async with dashboard(feed, size=(110, 30)) as pilot:
        await press(pilot, "m")
        assert "CHANGE" not in titles(pilot)
        assert "none: b sets it" in head(pilot)
        await press(pilot, "b")
        assert "no newer profile yet" in head(pilot)
        grow(feed)
        await press(pilot, "r")
        assert "4s ago · live +1.2 GiB · 1 line new, 0 gone" in head(pilot)
        leak = next(line for line in rows(pilot) if "log_metrics" in line)
        assert "+1.2 GiB   +120 ▸ new log_metrics" in leak


async def test_a_rate_is_a_dash_until_known_and_then_per_minute_of_all_devices_together() -> None:
    feed = one_job()
    async with dashboard(feed, size=(120, 35)) as pilot:
        await press(pilot, "m")
        assert rows(pilot)[0].split("▸")[0].split()[-1] == "–"
        rates = {
            ("init_params", "train/model.py", 212): 6.5 * MIB,
            ("init_optimizer", "train/optimizer.py", 48): 0.0,
            ("train_step", "train/loop.py", 131): -0.5 * MIB,
        }
        job = feed.jobs[0]
        assert isinstance(job, MemoryJob)
        job.take(profile(99_999.0, held(4))._replace(rates=rates))
        await press(pilot, "r")
        assert "RATE" in titles(pilot)
        found = {line.split("▸ ")[1].split()[0]: line.split("▸")[0].split() for line in rows(pilot)}
        assert found["init_params"][-2:] == ["+390", "MiB/min"]
        assert found["init_optimizer"][-1] == "0"
        assert found["train_step"][-1] == "–", "one of its two lines is not known"
        await press(pilot, "S", "S")
        assert rows(pilot)[0].endswith("▸ init_params  train/model.py:212")
        await press(pilot, "D")
        assert "MiB/min" not in shown(pilot), "of one device alone it is not known"


async def test_a_second_press_moves_the_mark() -> None:
    feed = one_job()
    async with dashboard(feed) as pilot:
        await press(pilot, "m", "b")
        grow(feed)
        await press(pilot, "r", "b")
        assert "1s ago · no newer profile yet" in head(pilot)
        assert "new log_metrics" not in shown(pilot)


async def test_the_mark_survives_leaving_the_page_and_is_of_one_job() -> None:
    feed = trainer()
    async with dashboard(feed, size=(110, 30)) as pilot:
        await press(pilot, "m", "b", "escape")
        grow(feed)
        await press(pilot, "r", "m")
        assert "1 line new" in head(pilot)
        await press(pilot, "tab")
        assert "none: b sets it" in head(pilot)
        await press(pilot, "shift+tab")
        assert "1 line new" in head(pilot)


async def test_capital_s_sorts_by_change_only_since_a_mark() -> None:
    feed = one_job()
    async with dashboard(feed, size=(110, 30)) as pilot:
        await press(pilot, "m", "S")
        assert "COUNT▾" in titles(pilot)
        await press(pilot, "S")
        assert "RATE▾" in titles(pilot)
        await press(pilot, "S", "b")
        assert "BYTES▾" in titles(pilot)
        grow(feed)
        await press(pilot, "r", "S")
        assert "CHANGE▾" in titles(pilot)
        assert rows(pilot)[0].endswith("▸ new log_metrics  train/metrics.py:27")
        assert "▸ load_batch" in rows(pilot)[1]
        await press(pilot, "S")
        assert "+/-▾" in titles(pilot)


async def test_the_cursor_follows_its_line_when_the_order_changes() -> None:
    feed = one_job()
    async with dashboard(feed) as pilot:
        await press(pilot, "m", "down", "down")
        assert page(pilot).copied() == "train/loop.py:131"
        job = feed.jobs[0]
        assert isinstance(job, MemoryJob)
        small = (a._replace(bytes=MIB) if a.line == 48 else a for a in held(4))
        job.take(profile(99_999.0, tuple(small)))
        await press(pilot, "r")
        assert names(pilot)[:2] == ["init_params", "train_step"]
        assert (table(pilot).index, page(pilot).copied()) == (1, "train/loop.py:131")


async def test_until_a_person_moves_it_the_cursor_stays_on_the_largest() -> None:
    feed = one_job()
    async with dashboard(feed) as pilot:
        await press(pilot, "m")
        job = feed.jobs[0]
        assert isinstance(job, MemoryJob)
        small = (a._replace(bytes=MIB) if a.line == 48 else a for a in held(4))
        job.take(profile(99_999.0, tuple(small)))
        await press(pilot, "r")
        assert page(pilot).copied() == "train/model.py:212"


async def test_nothing_is_built_or_unfolded_anew_while_the_profile_is_the_same() -> None:
    feed = ScriptedFeed((MemoryJob(41234, 0, 256),), tick_s=1.0)
    async with dashboard(feed) as pilot:
        await press(pilot, "m", "e")
        built, items = page(pilot).trees.built, table(pilot).items
        assert len(items) > 1200
        before = feed.asked
        await press(pilot, "r", "r", "r", "down")
        assert feed.asked >= before + 3
        assert page(pilot).trees.built == built
        assert table(pilot).items is items


async def test_capital_d_shows_one_device_after_the_other_and_then_all() -> None:
    async with dashboard(one_job(2), size=(110, 30)) as pilot:
        await press(pilot, "m")
        assert "all 2 devices" in head(pilot)
        for key, name, size in (
            ("D", "tpu:0", "5.5 GiB"),
            ("greater_than_sign", "tpu:1", "5.5 GiB"),
            ("D", "all 2 devices", "10.9 GiB"),
            ("less_than_sign", "tpu:1", "5.5 GiB"),
        ):
            await press(pilot, key)
            assert name in head(pilot)
            assert size in rows(pilot)[0]
        assert "/15.8 GiB" in head(pilot)


async def test_a_profile_of_sums_says_so_and_still_has_a_bar_for_each_device() -> None:
    feed = one_job(2)
    job = feed.jobs[0]
    assert isinstance(job, MemoryJob)
    job.take(MemoryProfile(99_996.0, sums(held(2))))
    async with dashboard(feed, size=(110, 30)) as pilot:
        await press(pilot, "m", "D")
        assert "the tree sums all devices" in head(pilot)
        assert "tpu:0" in head(pilot).splitlines()[1]
        assert "10.9 GiB" in rows(pilot)[0]
        await press(pilot, "enter")
        assert "buffer  mean 11.1 MiB" in rows(pilot)[1]


async def test_a_filter_is_typed_kept_and_dropped() -> None:
    async with dashboard(one_job(), size=(100, 30)) as pilot:
        await press(pilot, "m", "slash", *"data")
        assert names(pilot) == ["load_batch"]
        assert "Filter: data" in shown(pilot)
        await press(pilot, "enter")
        assert names(pilot) == ["load_batch"]
        assert "4.7 %" in rows(pilot)[0]
        await press(pilot, "escape")
        assert len(names(pilot)) == 5
        assert isinstance(pilot.app.screen, MemoryPage)
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, MemoryPage)


async def test_a_filter_that_finds_nothing_says_so() -> None:
    async with dashboard(one_job()) as pilot:
        await press(pilot, "m", "slash", *"[b]q")
        assert "No line contains '[b]q'." in head(pilot)
        assert page(pilot).copied() == ""
        await press(pilot, "enter", "enter", "down", "end")
        assert "No line contains" in head(pilot)


async def test_tab_goes_through_the_jobs_that_have_a_profile() -> None:
    async with dashboard(trainer(), size=(110, 30)) as pilot:
        await press(pilot, "m")
        assert "41234" in head(pilot).splitlines()[0]
        assert "job 1 of 2" in head(pilot)
        for key, pid in (("tab", "52870"), ("tab", "41234"), ("shift+tab", "52870")):
            await press(pilot, key)
            assert pid in head(pilot).splitlines()[0]


async def test_with_one_job_tab_leaves_it_as_it_is() -> None:
    async with dashboard(one_job()) as pilot:
        await press(pilot, "m", "enter", "down", "tab")
        assert "tpu:0" in rows(pilot)[1]
        assert table(pilot).index == 1


async def test_a_job_without_an_agent_says_what_to_do() -> None:
    async with dashboard(trainer()) as pilot:
        await press(pilot, "down", "down", "m")
        assert "60001 python notebook.py" in shown(pilot)
        assert "import tpusmi; tpusmi.start()" in shown(pilot)
        assert "Tab shows a job with a profile:\n    41234 python" in head(pilot)
        await press(pilot, "b", "enter", "S", "D", "e", "E", "down", "slash", "x", "escape", "tab")
        assert "41234" in head(pilot)


async def test_an_agent_without_a_profile_yet_says_so() -> None:
    feed = ScriptedFeed((Job(7001, "python a.py", 0, 1, profile=None),))
    async with dashboard(feed) as pilot:
        await press(pilot, "m", "tab")
        assert "No memory profile yet." in shown(pilot)
        assert "tpusmi.start()" not in shown(pilot)


async def test_without_any_job_the_page_says_how_to_begin() -> None:
    async with dashboard(ScriptedFeed()) as pilot:
        await press(pilot, "m", "tab", "b", "enter", "D", "down", "S")
        assert "import tpusmi; tpusmi.start()" in shown(pilot)
        assert page(pilot).copied() == ""


async def test_a_job_that_loses_its_profile_has_no_rows_left() -> None:
    feed = one_job()
    async with dashboard(feed) as pilot:
        await press(pilot, "m", "down")
        job = feed.jobs[0]
        assert isinstance(job, MemoryJob)
        job.take(None)
        await press(pilot, "r")
        assert "No memory profile yet." in shown(pilot)
        assert "init_params" not in shown(pilot)
        assert page(pilot).copied() == ""


async def test_in_the_past_the_profile_is_one_of_now() -> None:
    async with dashboard(trainer(past_s=120), size=(110, 30)) as pilot:
        await press(pilot, "m")
        used = head(pilot).splitlines()[1]
        await press(pilot, "left", "left")
        assert "current profile, 4s old" in head(pilot)
        assert head(pilot).splitlines()[1] != used
        await press(pilot, "n")
        assert "of now" not in head(pilot)


async def test_a_click_selects_and_a_second_at_once_opens() -> None:
    async with dashboard(one_job(), size=(100, 30)) as pilot:
        await press(pilot, "m")
        await pilot.click("#memory", offset=(5, 2))
        await settle(pilot)
        assert page(pilot).copied() == "train/model.py:212"
        assert len(rows(pilot)) == 5
        await pilot.click("#memory", offset=(5, 1), times=2)
        await settle(pilot)
        assert "tpu:0" in rows(pilot)[1]


async def test_a_click_on_the_mark_opens_and_shuts() -> None:
    async with dashboard(one_job(), size=(100, 30)) as pilot:
        await press(pilot, "m")
        mark = rows(pilot)[2].index("▸")
        await pilot.click("#memory", offset=(mark, 3))
        await settle(pilot)
        assert "▾ train_step" in rows(pilot)[2]
        await pilot.click("#memory", offset=(mark + 2, 4))
        await settle(pilot)
        assert "▾ train/loop.py:131" in rows(pilot)[3]
        await pilot.click("#memory", offset=(mark, 3))
        await settle(pilot)
        assert len(rows(pilot)) == 5


@pytest.mark.parametrize("title", ["COUNT", "SHARE", "BYTES"])
async def test_a_click_on_a_title_sorts(title: str) -> None:
    async with dashboard(one_job(), size=(100, 30)) as pilot:
        await press(pilot, "m", "S")
        await pilot.click("#memory", offset=(titles(pilot).index(title) + 1, 0))
        await settle(pilot)
        assert ("COUNT▾" if title == "COUNT" else "BYTES▾") in titles(pilot)
        await pilot.click("#memory", offset=(titles(pilot).index("ALLOCATED") + 1, 0))
        await settle(pilot)
        assert ("COUNT▾" if title == "COUNT" else "BYTES▾") in titles(pilot)


async def test_the_wheel_scrolls_and_leaves_the_cursor() -> None:
    async with dashboard(one_job(), size=(100, 24)) as pilot:
        await press(pilot, "m", "e")
        grid = table(pilot)
        first = rows(pilot)[0]
        wheel = MouseScrollDown(grid, 1, 1, 0, 0, 0, False, False, False)  # type: ignore[arg-type]
        grid.post_message(wheel)
        await settle(pilot)
        assert rows(pilot)[0] != first
        assert grid.index == 0
        seen = rows(pilot)
        await press(pilot, "r")
        assert rows(pilot) == seen


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (40, 10), (400, 100)])
async def test_it_is_drawn_at_every_size(size: tuple[int, int]) -> None:
    feed = one_job(8)
    async with dashboard(feed, size=size) as pilot:
        await press(pilot, "m", "b")
        grow(feed)
        await press(pilot, "r", "e", "end", "D", "S")
        assert all(len(line) <= size[0] for line in screen_text(pilot))


async def test_in_ascii_there_is_nothing_else_on_the_page() -> None:
    feed = one_job()
    async with dashboard(feed, ascii=True, color=False, size=(110, 40)) as pilot:
        await press(pilot, "m", "b")
        grow(feed)
        await press(pilot, "r", "e")
        body = head(pilot) + table(pilot).text()
        assert body.isascii()
        assert "v init_optimizer" in body
        assert "####" in body
        assert "==" in body


async def test_the_keys_of_the_page_are_in_its_help() -> None:
    async with dashboard(one_job(), size=(120, 60)) as pilot:
        await press(pilot, "m", "question_mark")
        found = shown(pilot)
        for words in (
            "b          Set the mark for CHANGE",
            "e E        Unfold / fold all rows",
            "D > . < ,  Next / previous device",
            "S  Sort by the next column",
            "ALLOCATED BY",
        ):
            assert words in found


def wide(*, first: int, count: int = 40) -> MemoryProfile:
    """Many lines of code, the largest of which are those from `first` on."""
    order = [(first + n) % count for n in range(count)]
    lines = ((f"line_{n:02}", "a.py", n, 4000 - 90 * at, 1) for at, n in enumerate(order))
    return profile(99_999.0, held(1, *lines)[:count])


async def test_a_cursor_in_sight_stays_in_sight_when_its_line_moves_away() -> None:
    feed = one_job(1)
    job = feed.jobs[0]
    assert isinstance(job, MemoryJob)
    job.take(wide(first=0))
    async with dashboard(feed, size=(100, 24)) as pilot:
        await press(pilot, "m", "down", "down", "down")
        followed = page(pilot).copied()
        job.take(wide(first=8))
        await press(pilot, "r")
        assert page(pilot).copied() == followed
        assert table(pilot).index is not None
        assert table(pilot).index > 20  # type: ignore[operator]
        assert any(line.endswith(followed) for line in rows(pilot))


async def test_another_order_is_looked_at_from_its_top() -> None:
    feed = one_job(1)
    job = feed.jobs[0]
    assert isinstance(job, MemoryJob)
    job.take(wide(first=0))
    async with dashboard(feed, size=(100, 24)) as pilot:
        await press(pilot, "m", "down")
        table(pilot).scroll_rows(20)
        await press(pilot, "S")
        assert table(pilot).index == 0
        assert page(pilot).copied() in rows(pilot)[0]


async def test_another_job_is_shown_with_all_of_its_devices() -> None:
    async with dashboard(trainer(), size=(110, 30)) as pilot:
        await press(pilot, "m", "D", "tab")
        assert "all 4 devices" in head(pilot)
        await press(pilot, "tab")
        assert "all 4 devices" in head(pilot)
