"""What is told of an end, of the stale holders that want one, and a real one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.dashboards import HostFeed, dashboard, order, press, row, selected, shown, text, until
from support.holder_feeds import (
    HEALTHY,
    STALE,
    ScriptedEnder,
    armed,
    holders,
    report,
)
from support.hosts import NODE, SECOND, add_chips, host, running

from tpusmi.actions.end import Report
from tpusmi.tui.ending import ends

# -- an end under way


async def test_its_row_and_its_details_tell_how_far_it_is() -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(holders(), ender, size=(140, 35)) as pilot:
        await press(pilot, "k", "enter")
        ender.step(STALE, "SIGTERM sent, 3 of 10 s")
        await until(pilot, lambda: "SIGTERM sent, 3 of 10 s  python" in row(pilot, STALE))
        assert "ending " in row(pilot, STALE)
        assert "SIGTERM sent, 3 of 10 s" in text(pilot, "detail")
        assert "SIGTERM" not in row(pilot, HEALTHY)
        ender.step(STALE, "SIGKILL sent, 1 of 60 s")
        await until(pilot, lambda: "SIGKILL sent, 1 of 60 s" in row(pilot, STALE))
        await press(pilot, "k")
        assert "ending   SIGKILL sent, 1 of 60 s" in shown(pilot)
        await press(pilot, "escape")
        ender.step(STALE, report(STALE, "killed", "ended by SIGKILL"))
        await until(pilot, lambda: "SIGKILL" not in row(pilot, STALE))
        assert "SIGKILL" not in text(pilot, "detail")


async def test_a_narrow_row_keeps_the_part_that_changes() -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(holders(), ender, size=(80, 24)) as pilot:
        await press(pilot, "k", "enter")
        ender.step(STALE, "SIGTERM sent, 3 of 10 s")
        await until(pilot, lambda: "3 of 10 s" in row(pilot, STALE))
        ender.step(STALE, report(STALE, "ended", "ended"))


async def test_several_ends_run_at_once() -> None:
    ender = ScriptedEnder()
    async with armed(holders(), ender, size=(140, 35)) as pilot:
        for pid, keys in ((STALE, ("home", "k")), (HEALTHY, ("down", "I"))):
            ender.expect(pid)
            await press(pilot, *keys, keys[-1].lower().replace("k", "t"), "enter")
            ender.step(pid, f"{pid} goes on")
        for pid in (STALE, HEALTHY):
            await until(pilot, lambda pid=pid: f"{pid} goes on" in row(pilot, pid))
        for pid in (HEALTHY, STALE):
            ender.step(pid, report(pid, "ended", "ended"))
        for pid in (STALE, HEALTHY):
            await until(pilot, lambda pid=pid: f"pid {pid}: ended" in text(pilot, "notices"))


@pytest.mark.parametrize(
    ("answer", "words", "style"),
    [
        (report(STALE, "ended", "ended by SIGTERM"), "pid 41234: ended by SIGTERM (1.2 s)", "good"),
        (
            report(
                *(STALE, "alive", "SIGKILL is pending, but it does not end: state D in vfio_x"),
                {"/dev/vfio/0": (STALE,), "/dev/vfio/1": (STALE,)},
            ),
            "SIGKILL is pending, but it does not end: state D in vfio_x (1.2 s)",
            "bad",
        ),
        (
            report(STALE, "ended", "ended", {f"/dev/vfio/{n}": (5, 6) for n in range(4)}),
            "ended (1.2 s); /dev/vfio/0-3 is still held by pid 5, 6",
            "bad",
        ),
        (report(STALE, "not_permitted", "could not be signalled: no"), "be signalled: no", "bad"),
        (OSError(24, "Too many open files"), "could not be ended: OSError(24, 'Too many", "bad"),
    ],
)
async def test_what_became_of_it_is_said_below(
    answer: Report | Exception, words: str, style: str
) -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(holders(), ender, size=(120, 35)) as pilot:
        await press(pilot, "k", "enter")
        ender.step(STALE, answer)
        await until(pilot, lambda: words in text(pilot, "notices"))
        notices = pilot.app.query_one("#notices")
        assert notices.drawn[0][-1].style == notices.look.style[style]  # type: ignore[attr-defined]
        assert pilot.app.is_running
        assert order(pilot)[0] == str(STALE)


async def test_the_notice_goes_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 10 <= ends.SHOWN_S <= 20
    timers: list[tuple[float, Callable[[], None]]] = []
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(holders(), ender) as pilot:
        await press(pilot, "k", "enter")
        monkeypatch.setattr(pilot.app, "set_timer", lambda *timer: timers.append(timer))
        ender.step(STALE, report(STALE, "ended", "ended"))
        await until(pilot, lambda: "ended" in text(pilot, "notices"))
        (forget,) = (action for after_s, action in timers if after_s == ends.SHOWN_S)
        forget()
        assert text(pilot, "notices") == ""


async def test_to_quit_waits_for_no_end() -> None:
    ender = ScriptedEnder()
    ender.expect(STALE)
    async with armed(holders(), ender) as pilot:
        await press(pilot, "k", "enter")
        await until(pilot, lambda: ender.orders != [])
        (thread,) = (t for t in threading.enumerate() if t.name == f"tpusmi-end-{STALE}")
        await pilot.press("q")
    assert pilot.app.return_code == 0
    assert thread.daemon
    assert thread.is_alive()
    ender.step(STALE, "still at it")
    ender.step(STALE, report(STALE, "ended", "ended"))
    thread.join(60)
    assert not thread.is_alive()


# -- stale holders in the tables


async def test_a_stale_holder_is_marked_and_found_by_the_word() -> None:
    async with dashboard(holders(), size=(140, 35)) as pilot:
        assert row(pilot, STALE).startswith(f"L {STALE}")
        assert " stale " in row(pilot, STALE)
        assert "stale" not in row(pilot, HEALTHY)
        await press(pilot, "slash", *"stale", "enter")
        assert order(pilot) == [str(STALE)]


async def test_the_details_tell_what_the_kernel_knows_and_nothing_of_the_rest() -> None:
    async with dashboard(holders(), size=(140, 45)) as pilot:
        assert "! stale (orphaned): its launcher" in text(pilot, "detail")
        assert "up 3h00m · CPU 0.2 % · 29.0 GiB of host memory" in text(pilot, "detail")
        assert "by pid 1 · directory /home/ada/gemma\n" in text(pilot, "detail")
        await press(pilot, "down")
        where = "by bash (52801) under tmux (52644) · pts/3 · directory /srv/t5"
        assert f"{where} · container 3f6c1f0b9a52 as pid 17" in text(pilot, "detail")
        assert "not stale: its TensorCores are busy" in text(pilot, "detail")


# -- for real


@pytest.mark.usefixtures("only_ours")
async def test_a_real_holder_is_really_ended_and_its_node_seen_free(tmp_path: Path) -> None:
    machine = host(tmp_path, NODE, SECOND)
    add_chips(tmp_path, 2)
    hold = "files = hold(*sys.argv[1:]); say('holds'); wait()"
    with running(hold, tmp_path / NODE[1:]) as mine, running(hold, tmp_path / SECOND[1:]) as other:
        assert mine.line() == other.line() == "holds"
        feed = HostFeed(machine)
        async with dashboard(feed, size=(140, 35), host=machine, interval_s=30.0) as pilot:
            assert set(order(pilot)) == {str(mine.pid), str(other.pid)}
            await press(pilot, "slash", *f"{mine.pid} ", "enter")
            assert selected(pilot) == str(mine.pid)
            await press(pilot, "k")
            assert f"End pid {mine.pid}" in shown(pilot)
            assert NODE in shown(pilot)
            await press(pilot, "t", "enter")
            ended = f"pid {mine.pid}: ended by SIGTERM"
            await until(pilot, lambda: ended in text(pilot, "notices"))
            assert mine.process.wait(60) == -signal.SIGTERM
            await press(pilot, "escape", "r")
            await until(pilot, lambda: order(pilot) == [str(other.pid)])
            assert "held by" not in text(pilot, "notices")
        assert other.process.poll() is None
        assert os.path.exists(tmp_path / NODE[1:])
