"""The kill dialog: whom it is about, what its keys do, and that what it is about stays."""

from __future__ import annotations

import re
import signal
import subprocess

import pytest
from support.dashboards import dashboard, order, press, screen_text, selected, shown, text, until
from support.feeds import Job, ScriptedFeed
from support.holder_feeds import (
    BESIDE,
    HEALTHY,
    LOADED,
    LOCK,
    ORPHANED,
    STALE,
    ScriptedEnder,
    armed,
    beside,
    holders,
    report,
)
from textual.pilot import Pilot

from tpusmi.actions.end import Order
from tpusmi.actions.outcome import Newcomer
from tpusmi.actions.plan import Starter
from tpusmi.model import Host, Verdict
from tpusmi.tui.app import Dashboard
from tpusmi.tui.ending.kill_screen import KillScreen

TERM, INT, KILL = int(signal.SIGTERM), int(signal.SIGINT), int(signal.SIGKILL)
KEYS = [("k", TERM), ("f9", TERM), ("I", INT), ("K", KILL)]
BUTTONS = {TERM: "SIGTERM", INT: "SIGINT", KILL: "SIGKILL", None: "Cancel"}


def is_asking(pilot: Pilot[None]) -> bool:
    return isinstance(pilot.app.screen, KillScreen)


def chosen(pilot: Pilot[None]) -> str:
    """The choice that is marked."""
    return shown(pilot).partition(">[")[2].partition("]<")[0]


# -- opening it


async def test_of_a_job_that_has_ended_it_says_so_in_a_sentence() -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    feed = ScriptedFeed((Job(ended.pid, "python train.py", 0, 4, state="dead"),))
    async with dashboard(feed, host=Host()) as pilot:
        await press(pilot, "k")
        assert not is_asking(pilot)
        assert text(pilot, "footer").startswith(f"pid {ended.pid} is not running")


@pytest.mark.parametrize(("key", "number"), KEYS)
async def test_each_key_asks_with_its_signal_chosen_and_sends_nothing(
    key: str, number: int
) -> None:
    ender = ScriptedEnder()
    async with armed(holders(), ender) as pilot:
        await press(pilot, key)
        assert is_asking(pilot)
        assert chosen(pilot) == BUTTONS[number]
        assert BUTTONS[number] in shown(pilot)
    assert ender.orders == []


@pytest.mark.parametrize(("key", "number"), KEYS)
async def test_enter_ends_the_selected_process_with_the_signal_of_the_key(
    key: str, number: int
) -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(holders(), ender) as pilot:
        await press(pilot, key, "enter")
        assert not is_asking(pilot)
        ender.step(STALE, report(STALE, "ended", "ended by it"))
        await until(pilot, lambda: "ended by it" in text(pilot, "notices"))
    assert ender.orders == [((STALE,), Order(number))]


async def test_it_says_whom_it_is_about_and_why_it_is_stale() -> None:
    async with armed(holders(lock_files=(LOCK,)), ScriptedEnder()) as pilot:
        await press(pilot, "k")
        for words in (
            f"End pid {STALE} (ada)?",
            "python -m train.main --config=configs/gemma_2b.py --batch=256",
            "chips 0-3: /dev/vfio/0-3",
            "3h00m",
            "stale (orphaned): its launcher, pid 41230, has ended",
            "Sends SIGTERM; after 10 s, SIGKILL to any still running",
        ):
            assert words in shown(pilot), words
        assert "another user" not in shown(pilot)
        assert "will not be free" not in shown(pilot)
        # Another process still holds a chip, so it stays.
        assert LOCK.path not in shown(pilot)


async def test_a_lock_file_that_would_be_removed_is_named() -> None:
    feed = holders(lock_files=(LOCK,))
    feed.jobs = feed.jobs[:1]
    async with armed(feed, ScriptedEnder()) as pilot:
        await press(pilot, "k")
        assert f"{LOCK.path} is removed if no process" in shown(pilot)


async def test_another_users_process_and_who_shares_its_chips_are_said_in_words() -> None:
    async with armed(holders(beside()), ScriptedEnder()) as pilot:
        await press(pilot, "down", "k")
        assert "grace: another user's process, you are ada" in shown(pilot)
        assert f"pid {BESIDE} also holds them: the chips will not be free" in shown(pilot)
        assert "not stale: its TensorCores are busy" in shown(pilot)


async def test_whose_a_process_is_says_its_uid_and_not_its_name() -> None:
    feed = holders(Job(77, "python x.py", 0, 0, user="ada", uid=1001, holds=("/dev/vfio/0",)))
    async with armed(feed, ScriptedEnder()) as pilot:
        await press(pilot, "/", *"x.py", "enter", "k")
        assert "End pid 77 (ada)?" in shown(pilot)
        assert "ada: another user's process, you are ada" in shown(pilot)


async def test_it_says_what_is_suspected_only_what_stands_still_and_what_may_come_back() -> None:
    stopped = Job(
        *(77, "python x.py", 0, 0),
        holds=("/dev/vfio/0",),
        verdict=Verdict.MAYBE,
        stale_reason="its launcher has ended",
        life=ORPHANED._replace(state="T"),
    )
    ender = ScriptedEnder()
    ender.starter = Starter("parent", "70", "pid 70, a shell script: bash loop.sh")
    async with armed(ScriptedFeed((stopped,)), ender) as pilot:
        await press(pilot, "k")
        assert "may be stale: its launcher has ended" in shown(pilot)
        assert "stopped (state T): SIGSTOP or Ctrl-Z" in shown(pilot)
        assert "may come back: started by pid 70, a shell script: bash loop.sh" in shown(pilot)


async def test_that_it_is_stopped_is_said_once() -> None:
    why = "stopped (state T): SIGSTOP or Ctrl-Z"
    stopped = Job(
        *(77, "python x.py", 0, 0),
        holds=("/dev/vfio/0",),
        verdict=Verdict.MAYBE,
        stale_code="stopped",
        stale_reason=why,
        life=ORPHANED._replace(state="T"),
    )
    async with armed(ScriptedFeed((stopped,)), ScriptedEnder()) as pilot:
        await press(pilot, "k")
        dialog = shown(pilot).partition("End pid 77")[2].partition("SIGTERM")[0]
        assert f"may be stale: {why}" in dialog
        assert dialog.count("state T") == 1


async def test_who_comes_back_is_said_to_be_new() -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    starter = Starter("unit", "x.service", "unit x.service: systemctl stop x.service")
    new = Newcomer(99, 1, 1000, "ada", "python x.py", ("/dev/vfio/0",), STALE, 0.34, starter)
    async with armed(holders(), ender, size=(140, 40)) as pilot:
        await press(pilot, "k", "enter")
        done = report(STALE, "ended", "ended by it", {"/dev/vfio/0": (99,)})
        ender.step(STALE, done._replace(came_back=(new,)))
        await until(pilot, lambda: "pid 99 (ada) is new" in text(pilot, "notices"))
        said = " ".join(text(pilot, "notices").split())
        assert f"it took /dev/vfio/0 0.3 s after pid {STALE} ended" in said
        assert "started by unit x.service: systemctl stop x.service" in said
        assert "still held" not in said


async def test_sigkill_carries_a_warning_and_the_others_do_not() -> None:
    async with armed(holders(), ScriptedEnder()) as pilot:
        await press(pilot, "K")
        assert "the next job may fail to start" in shown(pilot)
        await press(pilot, "t")
        assert "may fail to start" not in shown(pilot)
        await press(pilot, "c")
        assert "Nothing is done." in shown(pilot)


async def test_unknown_facts_are_dashes() -> None:
    bare = Job(
        *(77, "python x.py", 0, 0),
        **{"user": None, "holds": ("/dev/vfio/0",), "sampled_at_s": None, "interval_s": None},
    )
    async with armed(ScriptedFeed((bare,)), ScriptedEnder()) as pilot:
        await press(pilot, "k")
        for name in ("age", "verdict"):
            assert f"│ {name:<9}– " in shown(pilot)
        assert "│ user     –: perhaps another user's process" in shown(pilot)


@pytest.mark.parametrize("key", ["k", "f9", "K", "I"])
async def test_enter_after_a_key_does_nothing_to_a_healthy_training(key: str) -> None:
    ender = ScriptedEnder()
    async with armed(holders(), ender) as pilot:
        await press(pilot, "end", "up", key)
        assert f"End pid {HEALTHY}" in shown(pilot)
        assert chosen(pilot) == "Cancel"
        assert "Not certainly stale: Enter ends a process only after t, i or k." in shown(pilot)
        await press(pilot, "enter")
        assert not is_asking(pilot)
        ender.expect(HEALTHY)
        await press(pilot, key, "i", "enter")
        await until(pilot, lambda: ender.orders == [((HEALTHY,), Order(INT))])
        ender.step(HEALTHY, report(HEALTHY, "ended", "ended"))


@pytest.mark.parametrize("verdict", [Verdict.MAYBE, Verdict.UNKNOWN, Verdict.NOT_STALE, None])
async def test_only_a_stale_verdict_leaves_the_signal_chosen(verdict: Verdict | None) -> None:
    job = Job(77, "python x.py", 0, 0, holds=("/dev/vfio/0",), verdict=verdict)
    async with armed(ScriptedFeed((job,)), ScriptedEnder()) as pilot:
        await press(pilot, "K")
        assert chosen(pilot) == "Cancel"


async def test_a_job_without_a_tpu_is_not_offered_and_the_footer_says_what_ends_it() -> None:
    ender = ScriptedEnder()
    async with armed(ScriptedFeed((Job(1781, "python cpu.py", 0, 4),)), ender) as pilot:
        await press(pilot, "k")
        assert not is_asking(pilot)
        said = "pid 1781 holds no TPU: `kill 1781` in a shell ends it"
        assert text(pilot, "footer").startswith(said)


async def test_who_is_refused_can_only_be_let_go() -> None:
    ender = ScriptedEnder(STALE)
    async with armed(holders(), ender) as pilot:
        await press(pilot, "K")
        assert "It started this tpusmi, which would end with it" in shown(pilot)
        assert chosen(pilot) == "Cancel"
        assert "[SIG" not in shown(pilot)
        await press(pilot, "t", "1", "k", "right", "tab")
        assert chosen(pilot) == "Cancel"
        await press(pilot, "enter")
        assert not is_asking(pilot)
    assert ender.orders == []


async def test_without_a_process_there_is_nothing_to_ask() -> None:
    async with armed(ScriptedFeed(), ScriptedEnder()) as pilot:
        await press(pilot, "k", "K", "f9")
        assert not is_asking(pilot)


async def test_read_only_has_no_such_key_anywhere() -> None:
    async with dashboard(holders(), size=(100, 45)) as pilot:
        assert "End" not in text(pilot, "footer")
        await press(pilot, *(key for key, _ in KEYS))
        assert not is_asking(pilot)
        assert isinstance(pilot.app, Dashboard)
        pilot.app.action_end("SIGTERM")
        await press(pilot)
        assert not is_asking(pilot)
        await press(pilot, "question_mark")
        assert "SIGKILL" not in shown(pilot)
        assert "F9" not in shown(pilot)


async def test_the_help_names_each_key_that_ends_and_the_footer_one() -> None:
    async with armed(holders(), ScriptedEnder(), size=(180, 60)) as pilot:
        assert "k End" in text(pilot, "footer")
        await press(pilot, "question_mark")
        assert "k F9   End selected or tagged" in shown(pilot)
        assert re.search("K I +SIGKILL, SIGINT", shown(pilot))
        assert re.search("L  +left over \\(stale\\)", shown(pilot))


# -- choosing


@pytest.mark.parametrize(
    ("keys", "number"),
    [
        (("right",), INT),
        (("tab", "tab"), KILL),
        (("left",), None),
        (("shift+tab", "shift+tab"), KILL),
        (("right", "right", "right", "right"), TERM),
        (("i",), INT),
        (("k",), KILL),
        (("c",), None),
        (("k", "t"), TERM),
        (("2",), INT),
        (("3",), KILL),
        (("4",), None),
        (("4", "1"), TERM),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else BUTTONS[value],
)
async def test_a_key_chooses_and_confirms_nothing(
    keys: tuple[str, ...], number: int | None
) -> None:
    ender = ScriptedEnder()
    async with armed(holders(), ender) as pilot:
        await press(pilot, "k", *keys)
        assert is_asking(pilot)
        assert chosen(pilot) == BUTTONS[number]
    assert ender.orders == []


async def test_a_hasty_second_enter_ends_nobody_twice() -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(holders(), ender) as pilot:
        await pilot.press("k", "enter", "enter", "enter")
        await press(pilot, "escape")  # the second Enter has opened its page
        ender.step(STALE, report(STALE, "ended", "ended"))
        await until(pilot, lambda: "ended" in text(pilot, "notices"))
    assert len(ender.orders) == 1


async def test_space_confirms_too() -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(holders(), ender) as pilot:
        await press(pilot, "k", "i", "space")
        assert not is_asking(pilot)
        await until(pilot, lambda: ender.orders == [((STALE,), Order(INT))])
        ender.step(STALE, report(STALE, "ended", "ended"))


@pytest.mark.parametrize("keys", [("escape",), ("n",), ("q",), ("c", "enter"), ("4", "space")])
async def test_cancel_does_nothing_and_does_not_quit(keys: tuple[str, ...]) -> None:
    ender = ScriptedEnder()
    async with armed(holders(), ender) as pilot:
        await press(pilot, "k", *keys)
        assert not is_asking(pilot)
        assert pilot.app.is_running
        assert selected(pilot) == str(STALE)
    assert ender.orders == []


async def test_ctrl_c_quits_while_it_asks() -> None:
    async with armed(holders(), ScriptedEnder()) as pilot:
        await pilot.press("k", "ctrl+c")
    assert pilot.app.return_code == 0


@pytest.mark.parametrize("number", [KILL, None])
async def test_a_click_on_a_choice_confirms_it(number: int | None) -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(holders(), ender) as pilot:
        await press(pilot, "k")
        lines = screen_text(pilot)
        (y,) = (y for y, line in enumerate(lines) if "[Cancel]" in line)
        await pilot.click(offset=(lines[y].index(BUTTONS[number]), y - 2))
        assert is_asking(pilot), "beside the choices a click does nothing"
        await pilot.click(offset=(lines[y].index(BUTTONS[number]), y))
        assert not is_asking(pilot)
        if number is not None:
            ender.step(STALE, report(STALE, "killed", "ended by SIGKILL"))
            await until(pilot, lambda: "ended by" in text(pilot, "notices"))
    assert [order.signal for _, order in ender.orders] == ([] if number is None else [number])


async def test_the_dialog_stands_still_while_one_chooses() -> None:
    async with armed(holders(), ScriptedEnder(), size=(80, 24)) as pilot:
        await press(pilot, "k")
        corners = set()
        for key in "tikc":
            await press(pilot, key)
            box = pilot.app.screen.query_one("#kill")
            corners.add(box.region)
        assert len(corners) == 1


# -- sizes and terminals


CHOSEN = {"t": "TERM", "i": "INT", "k": "KILL", "c": "Cancel"}


@pytest.mark.parametrize("size", [(40, 10), (60, 12), (80, 24), (300, 90)])
@pytest.mark.parametrize("key", CHOSEN)
async def test_the_choices_are_visible_at_every_size(size: tuple[int, int], key: str) -> None:
    async with armed(holders(), ScriptedEnder(), size=size) as pilot:
        await press(pilot, "k", key)
        assert chosen(pilot).removeprefix("SIG") == CHOSEN[key]
        assert str(STALE) in shown(pilot)
        for other in ("TERM]", "INT]", "KILL]", "[Cancel]"):
            assert other in shown(pilot)
        assert {len(line) for line in screen_text(pilot)} == {size[0]}


async def test_on_a_small_screen_the_rest_is_scrolled_to() -> None:
    async with armed(holders(), ScriptedEnder(), size=(40, 10)) as pilot:
        await press(pilot, "k")
        assert "more" in shown(pilot)
        assert "orphaned" not in shown(pilot)
        await press(pilot, *["down"] * 20)
        assert "been idle for 3h00m" in shown(pilot)
        assert "more" not in shown(pilot)
        assert "Cancel" in shown(pilot)
        await press(pilot, *["pageup"] * 20)
        assert f"End pid {STALE}" in shown(pilot)


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (20, 5)])
async def test_the_smallest_screens_clip_it(size: tuple[int, int]) -> None:
    async with armed(holders(), ScriptedEnder(), size=size) as pilot:
        await press(pilot, "k", "right", "down", "escape")
        assert not is_asking(pilot)


async def test_ascii_uses_nothing_else_in_the_dialog() -> None:
    feed = holders(beside())
    async with armed(feed, ScriptedEnder(), ascii=True, size=(40, 10)) as pilot:
        await press(pilot, "k")
        assert shown(pilot).isascii()
        assert ">[TERM]<" in shown(pilot)


async def test_a_very_long_command_is_cut_and_wide_characters_stay_inside() -> None:
    for command in ("python " + "--flag=value " * 200, "python 訓練" * 100, "x" * 3000):
        job = Job(77, command, 0, 1, holds=("/dev/vfio/0",))
        async with armed(ScriptedFeed((job,)), ScriptedEnder(), size=(80, 24)) as pilot:
            await press(pilot, "k")
            assert "[Cancel]" in shown(pilot)
            assert "…" in shown(pilot)
            strips = pilot.app.screen._compositor.render_strips()
            assert {strip.cell_length for strip in strips} == {80}


async def test_a_simulated_host_says_so_in_the_dialog() -> None:
    async with armed(holders(simulated=True), ScriptedEnder(), size=(40, 10)) as pilot:
        await press(pilot, "k")
        dialog = pilot.app.screen.query_one("#kill")
        assert "SIMULATED" in "\n".join(
            strip.text for strip in dialog.render_lines(dialog.size.region)
        )


# -- what it is about stays


async def test_the_list_beneath_stands_still_and_the_dialog_keeps_its_process() -> None:
    feed, ender = holders(), ScriptedEnder()
    ender.expect(STALE)
    async with armed(feed, ender, interval_s=0.02) as pilot:
        await press(pilot, "k")
        before = text(pilot, "processes")
        asked, feed.jobs = feed.asked, feed.jobs[1:]
        await until(pilot, lambda: feed.asked > asked + 2)
        assert text(pilot, "processes") == before
        assert f"End pid {STALE}" in shown(pilot)
        await press(pilot, "enter")
        assert order(pilot) == [str(HEALTHY), str(LOADED)]
        await until(pilot, lambda: ender.orders == [((STALE,), Order(TERM))])
        ender.step(STALE, report(STALE, "ended", "ended"))


async def test_after_a_cancel_the_list_is_the_newest() -> None:
    feed = holders()
    async with armed(feed, ScriptedEnder(), interval_s=0.02) as pilot:
        await press(pilot, "k")
        asked, feed.jobs = feed.asked, feed.jobs[1:]
        await until(pilot, lambda: feed.asked > asked + 1)
        await press(pilot, "escape")
        assert order(pilot) == [str(HEALTHY), str(LOADED)]
