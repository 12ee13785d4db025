"""Several processes ended at once: one dialog about all of them, and what became of each."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from support.dashboards import HostFeed, dashboard, press, row, screen_text, shown, text, until
from support.holder_feeds import (
    HEALTHY,
    LOADED,
    STALE,
    WORKERS,
    ScriptedEnder,
    armed,
    beside,
    family,
    holders,
    report,
)
from support.hosts import NODE, SECOND, add_chips, host, running
from textual.pilot import Pilot

from tpusmi.actions.end import Order
from tpusmi.actions.outcome import Report
from tpusmi.tui.ending.kill_screen import KillScreen

TERM, KILL = int(signal.SIGTERM), int(signal.SIGKILL)
SIZE = (140, 45)
THIRD = "/dev/vfio/2"


def is_asking(pilot: Pilot[None]) -> bool:
    return isinstance(pilot.app.screen, KillScreen)


def together(*reports: Report) -> Report:
    """What became of several in one end."""
    held = {node: pids for r in reports for node, pids in r.still_held.items()}
    return Report(tuple(result for r in reports for result in r.results), held, (), ())


async def tag(pilot: Pilot[None], *pids: int) -> None:
    """Tag these, from wherever the cursor is."""
    for pid in pids:
        await press(pilot, "slash", *f"pid={pid}", "enter", "space", "slash", "ctrl+u", "enter")


# -- the dialog


async def test_it_lists_every_tagged_process_with_what_speaks_for_and_against_its_end() -> None:
    async with armed(holders(beside()), ScriptedEnder(), size=SIZE) as pilot:
        await tag(pilot, STALE, HEALTHY)
        await press(pilot, "k", "t")
        for words in (
            "End 2 processes?",
            f"pid {STALE} (ada)  chips 0-3  3h00m old",
            "python -m train.main --config=configs/gemma_2b.py --batch=256",
            "stale (orphaned): its launcher, pid 41230, has ended",
            f"pid {HEALTHY} (grace)  chips 4-7  3d02h old",
            "not stale: its TensorCores are busy; grace: another user's process",
            "Pid 53911 also holds them: the chips will not be free.",
            "Sends SIGTERM; after 10 s, SIGKILL to any still running",
        ):
            assert words in shown(pilot), words
        assert "left alone" not in shown(pilot)


async def test_those_that_are_refused_are_named_with_the_reason_and_the_rest_can_be_ended() -> None:
    ender = ScriptedEnder(HEALTHY)
    ender.expect(STALE)
    async with armed(holders(), ender, size=SIZE) as pilot:
        await tag(pilot, STALE, HEALTHY, LOADED)
        await press(pilot, "k")
        assert "End 1 process? 2 of 3 are left alone" in shown(pilot)
        assert "Left alone: it started this tpusmi" in shown(pilot)
        assert "Left alone: it has libtpu loaded, and holds no TPU." in shown(pilot)
        await press(pilot, "enter")
        await until(pilot, lambda: ender.orders == [((STALE,), Order(TERM))])
        ender.step(STALE, report(STALE, "ended", "ended"))
        await until(pilot, lambda: "ended" in text(pilot, "notices"))


async def test_where_all_are_refused_there_is_only_a_cancel() -> None:
    ender = ScriptedEnder(HEALTHY)
    async with armed(holders(), ender, size=SIZE) as pilot:
        await tag(pilot, HEALTHY, LOADED)
        await press(pilot, "K")
        assert "These 2 processes are left alone" in shown(pilot)
        assert "[SIG" not in shown(pilot)
        await press(pilot, "enter")
        assert not is_asking(pilot)
    assert ender.orders == []


@pytest.mark.parametrize(
    ("key", "number"), [("k", TERM), ("f9", TERM), ("I", signal.SIGINT), ("K", KILL)]
)
async def test_each_key_ends_all_tagged_ones_in_one_order(key: str, number: int) -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(family(), ender, size=SIZE) as pilot:
        await tag(pilot, STALE, *WORKERS)
        await press(pilot, key, {"k": "t", "f9": "t"}.get(key, key), "enter")
        await until(pilot, lambda: ender.orders == [((STALE, *WORKERS), Order(int(number)))])
        assert "tagged" not in text(pilot, "processes")
        ender.step(STALE, report(STALE, "ended", "ended"))
        await until(pilot, lambda: "ended" in text(pilot, "notices"))


async def test_a_cancel_ends_nobody_and_keeps_the_tags() -> None:
    ender = ScriptedEnder()
    async with armed(holders(), ender, size=SIZE) as pilot:
        await tag(pilot, STALE, HEALTHY)
        await press(pilot, "k", "escape")
        assert "2 tagged" in text(pilot, "processes")
    assert ender.orders == []


async def test_a_tagged_process_that_the_filter_hides_is_in_the_dialog() -> None:
    async with armed(holders(), ScriptedEnder(), size=SIZE) as pilot:
        await tag(pilot, STALE, HEALTHY)
        await press(pilot, "slash", *"grace", "enter", "k")
        assert f"pid {STALE} (ada)" in shown(pilot)


async def test_one_tagged_process_has_the_dialog_of_one() -> None:
    async with armed(holders(), ScriptedEnder(), size=SIZE) as pilot:
        await tag(pilot, HEALTHY)
        await press(pilot, "home", "k")
        assert f"End pid {HEALTHY} (grace)?" in shown(pilot)


async def test_a_pid_that_is_another_ones_by_now_is_nobodys() -> None:
    feed, ender = holders(), ScriptedEnder()
    async with armed(feed, ender, size=SIZE, interval_s=0.02) as pilot:
        await press(pilot, "p")
        gone = feed.jobs[0].process(feed.at_s)._replace(state="dead", holds=(), verdict=None)
        again = gone._replace(key=gone.key._replace(start_ticks=5), state="live", holds=("/dev/x",))
        others = tuple(job.process(feed.at_s) for job in feed.jobs[1:])
        feed.change(processes=(gone, again, *others))
        await press(pilot, "r", "end")
        # The dead one is the last.
        await press(pilot, "k")
        assert not is_asking(pilot)


@pytest.mark.parametrize("size", [(40, 10), (60, 12), (80, 24)])
async def test_the_choices_are_visible_at_every_size(size: tuple[int, int]) -> None:
    async with armed(family(), ScriptedEnder(), size=size, ascii=True) as pilot:
        await press(pilot, "home", *["space"] * 5, "k")
        for choice in ("TERM]", "INT]", "KILL]", "[Cancel]"):
            assert choice in shown(pilot)
        assert "End 4 processes?" in shown(pilot)
        assert shown(pilot).isascii()
        assert {len(line) for line in screen_text(pilot)} == {size[0]}
        await press(pilot, *["down"] * 40)
        assert "more" not in shown(pilot)


# -- what becomes of them


async def test_rows_tell_how_far_each_is_and_notices_what_became_of_each() -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(holders(), ender, size=SIZE) as pilot:
        await tag(pilot, STALE, HEALTHY)
        await press(pilot, "k", "t", "enter")
        ender.step(STALE, "SIGTERM sent, 3 of 10 s")
        for pid in (STALE, HEALTHY):
            await until(pilot, lambda pid=pid: "3 of 10 s" in row(pilot, pid))
        held = {"/dev/vfio/4": (HEALTHY,)}
        alive = report(HEALTHY, "alive", "SIGKILL is pending, but it does not end", held)
        ender.step(STALE, together(report(STALE, "ended", "ended by SIGTERM"), alive))
        for words in (
            f"pid {STALE}: ended by SIGTERM (1.2 s)",
            f"pid {HEALTHY}: SIGKILL is pending, but it does not end (1.2 s)",
        ):
            await until(pilot, lambda words=words: words in text(pilot, "notices"))
        notices = pilot.app.page.query_one("#notices")  # type: ignore[attr-defined]
        good, bad = (notices.look.style[name] for name in ("good", "bad"))
        assert [line[-1].style for line in notices.drawn] == [good, bad]
        for pid in (STALE, HEALTHY):
            assert "of 10 s" not in row(pilot, pid)


async def test_an_error_that_stops_the_end_names_all_of_them() -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(holders(), ender, size=SIZE) as pilot:
        await tag(pilot, STALE, HEALTHY)
        await press(pilot, "k", "t", "enter")
        ender.step(STALE, "SIGTERM sent")
        ender.step(STALE, OSError(24, "Too many open files"))
        words = f"pid {STALE}, {HEALTHY}: could not be ended: OSError(24"
        await until(pilot, lambda: words in text(pilot, "notices"))
        assert "SIGTERM" not in row(pilot, HEALTHY)


async def test_a_stale_holder_is_found_and_freed_with_two_keys_from_the_start() -> None:
    feed, ender = family(), ScriptedEnder()
    feed.jobs = (*feed.jobs[1:], feed.jobs[0])
    ender.expect(STALE)
    async with armed(feed, ender, size=(80, 24)) as pilot:
        await press(pilot, "k", "t", "enter")
        await until(pilot, lambda: ender.orders == [((STALE,), Order(TERM))])
        ender.step(STALE, report(STALE, "ended", "ended"))
        await until(pilot, lambda: "ended" in text(pilot, "notices"))


# -- for real


@pytest.mark.usefixtures("only_ours")
async def test_two_real_holders_are_ended_with_one_dialog_and_a_third_lives_on(
    tmp_path: Path,
) -> None:
    machine = host(tmp_path, NODE, SECOND, THIRD)
    add_chips(tmp_path, 3)
    hold = "files = hold(*sys.argv[1:]); say('holds'); wait()"
    places = [tmp_path / node[1:] for node in (NODE, SECOND, THIRD)]
    with (
        running(hold, places[0]) as first,
        running(hold, places[1]) as second,
        running(hold, places[2]) as third,
    ):
        assert first.line() == second.line() == third.line() == "holds"
        feed = HostFeed(machine)
        async with dashboard(feed, size=SIZE, host=machine, interval_s=30.0) as pilot:
            await tag(pilot, first.pid, second.pid)
            await press(pilot, "k")
            assert "End 2 processes?" in shown(pilot)
            for pid in (first.pid, second.pid):
                assert f"pid {pid} (" in shown(pilot)
            await press(pilot, "t", "enter")
            for pid in (first.pid, second.pid):
                ended = f"pid {pid}: ended by SIGTERM"
                await until(pilot, lambda ended=ended: ended in text(pilot, "notices"))
            assert first.process.wait(60) == second.process.wait(60) == -signal.SIGTERM
            await press(pilot, "r")
            assert str(third.pid) in text(pilot, "processes")
            for pid in (first.pid, second.pid):
                assert str(pid) not in text(pilot, "processes")
        assert third.process.poll() is None
