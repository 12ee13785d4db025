"""P: the question, the child that captures, and the page of its profile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import capturers, profiles
from support.commands import environment
from support.dashboards import dashboard, press, settle, shown, text, until
from support.feeds import Job, ScriptedFeed, two_jobs
from support.waits import until as wait_until
from textual.pilot import Pilot

from tpusmi.model import Host, ProcessKey
from tpusmi.trace.figures import TraceProfile
from tpusmi.tui.capturing.capture_screen import CaptureScreen
from tpusmi.tui.capturing.capture_thread import command_for
from tpusmi.tui.capturing.shown_captures import CaptureOrder, ShownCaptures
from tpusmi.tui.profile.profile_page import ProfilePage

PID, OTHER = 41234, 52870
HOST = Host()
CAPTURE = ("P", "P", "enter")
"""Opens the question, chooses a second, and confirms."""


def captures(pilot: Pilot[None]) -> ShownCaptures:
    found: ShownCaptures = pilot.app.scene.captures
    return found


async def captured(pilot: Pilot[None], *keys: str) -> None:
    await press(pilot, *(keys or CAPTURE))
    await until(pilot, lambda: captures(pilot).running is None)


def page_text(pilot: Pilot[None]) -> str:
    return text(pilot, "profile")


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def noted(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


async def test_a_capture_is_asked_about_and_starts_at_cancel() -> None:
    async with dashboard(two_jobs(), host=HOST, capturer=capturers.failing("no")) as pilot:
        await press(pilot, "P")
        assert isinstance(pilot.app.screen, CaptureScreen)
        assert f"Capture a trace of pid {PID} (ada)?" in shown(pilot)
        assert ">[Cancel]<" in shown(pilot)
        await press(pilot, "enter")
        assert not isinstance(pilot.app.screen, CaptureScreen)
        assert captures(pilot).running is None
        assert pilot.app.page.NAME == ""


@pytest.mark.parametrize(
    ("keys", "duration"), [("1", 100), ("2", 500), ("3", 1000), ("4", 2000), ("P", 1000)]
)
async def test_keys_choose_how_long_the_trace_is(keys: str, duration: int, tmp_path: Path) -> None:
    mark = tmp_path / "arguments"
    child = capturers.script(f"open({str(mark)!r}, 'w').write(' '.join(sys.argv[1:])); say('x')")
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await captured(pilot, "P", *keys, "enter")
        words = f"profile {PID} --json --progress --duration-ms {duration} --top 2000"
        assert mark.read_text() == words


async def test_the_profile_is_shown_with_its_age_and_scrolls() -> None:
    child = capturers.printing(profiles.v5p_training)
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await captured(pilot)
        assert isinstance(pilot.app.screen, ProfilePage)
        assert page_text(pilot).startswith(f"pid {PID}  captured ")
        assert "FINDINGS" in page_text(pilot)
        assert "more lines" in page_text(pilot)
        newest = captures(pilot).newest(captures(pilot).shown)
        assert newest is not None
        for age_s in (0, 40):
            captures(pilot).clock = lambda age_s=age_s: newest.at_s + age_s
            await press(pilot, "r")
            assert f"captured {age_s}s ago" in page_text(pilot)
        first = page_text(pilot).splitlines()[2:6]
        await press(pilot, "down")
        assert page_text(pilot).splitlines()[2:5] == first[1:4]
        await press(pilot, "end")
        assert "more lines" not in page_text(pilot)
        await press(pilot, "home")
        assert page_text(pilot).splitlines()[2:6] == first


async def test_progress_is_shown_and_esc_cancels(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    child = capturers.waiting(str(mark), "waiting for the job's agent")
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await press(pilot, *CAPTURE)
        await until(pilot, lambda: "waiting for the job's agent" in page_text(pilot))
        assert f"capturing 1 s of pid {PID}" in page_text(pilot)
        assert "Esc cancels" in page_text(pilot)
        await press(pilot, "escape")
        await until(pilot, lambda: captures(pilot).running is None)
        assert "the capture was cancelled" in page_text(pilot)
        pid, *rest = noted(mark)
        assert rest == ["removed"]  # it had the time to clean up
        assert is_gone(int(pid))
        await press(pilot, "escape")
        assert pilot.app.page.NAME == ""


async def test_a_child_that_ignores_its_interruption_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpusmi.tui.capturing.profile_child.ENDS_WITHIN_S", 0.2)
    mark = tmp_path / "mark"
    child = capturers.script(
        f"""
signal.signal(signal.SIGINT, signal.SIG_IGN)
open({str(mark)!r}, "w").write(str(os.getpid()))
say("stubborn")
time.sleep(600)
"""
    )
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await press(pilot, *CAPTURE)
        await until(pilot, lambda: "stubborn" in page_text(pilot))
        await press(pilot, "escape")
        await until(pilot, lambda: captures(pilot).running is None)
        assert is_gone(int(mark.read_text()))


async def test_quitting_ends_the_capture(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with dashboard(two_jobs(), host=HOST, capturer=capturers.waiting(str(mark))) as pilot:
        await press(pilot, *CAPTURE)
        await until(pilot, lambda: "waiting" in page_text(pilot))
    pid, *rest = noted(mark)
    assert rest == ["removed"]
    assert is_gone(int(pid))


@pytest.mark.parametrize(
    ("child", "sentence"),
    [
        (capturers.failing("pid 41234 is busy with another capture"), "is busy with another capt"),
        (
            capturers.script("sys.exit(4)"),
            "the capture ended with exit code 4, and did not say why",
        ),
        (capturers.script("os.kill(os.getpid(), 9)"), "ended with signal 9"),
        (capturers.script("print('{]')"), "the capture failed: it is not JSON"),
        (capturers.script("print('{}')"), "it is not a profile of tpusmi"),
        (capturers.script("print('[' * 90000)"), "the capture failed: "),
        (capturers.script("say('\\x1b[2J\\x07evil'); sys.exit(1)"), "evil"),
        (("/no/such/program",), "the capture failed: "),
    ],
)
async def test_an_error_is_a_sentence_on_the_page(child: Sequence[str], sentence: str) -> None:
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await captured(pilot)
        assert sentence in page_text(pilot)
        assert "\x1b" not in page_text(pilot)


async def test_output_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpusmi.tui.capturing.profile_child.OUTPUT_BYTES_MOST", 1 << 18)
    child = capturers.script("while True: print('x' * 65536)")
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await captured(pilot)
        assert "the capture printed too much, and was ended" in page_text(pilot)


async def test_talk_without_end_is_shown_no_more_than_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tpusmi.tui.capturing.capture_thread.DEADLINE_S", 0.5)
    child = capturers.script("while True: sys.stderr.write('y' * 65536)")
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await captured(pilot)
        assert "the capture took too long, and was ended" in page_text(pilot)


async def test_a_failed_capture_leaves_the_profile_before(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    good, _, script = capturers.printing(profiles.healthy)
    fail = f"\nif os.path.exists({str(flag)!r}): say('too late'); sys.exit(3)\n"
    child = (good, "-c", script.replace("from support import", fail + "from support import"))
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await captured(pilot)
        flag.touch()
        await captured(pilot)
        assert "! too late" in page_text(pilot)
        assert "FINDINGS" in page_text(pilot)


async def test_one_capture_at_a_time(tmp_path: Path) -> None:
    async with dashboard(two_jobs(), host=HOST, capturer=capturers.waiting()) as pilot:
        await press(pilot, *CAPTURE)
        await press(pilot, "j", "tab", "P")
        assert pilot.app.page.NAME == "profile"
        assert f"One capture at a time: that of pid {PID} is running" in text(pilot, "footer")
        assert not isinstance(pilot.app.screen, CaptureScreen)


async def test_the_profile_is_kept_and_p_shows_it_again() -> None:
    child = capturers.printing(profiles.healthy)
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await captured(pilot)
        await press(pilot, "escape", "P")
        assert pilot.app.page.NAME == "profile"
        assert "FINDINGS" in page_text(pilot)
        assert not isinstance(pilot.app.screen, CaptureScreen)
        await press(pilot, "P")
        assert isinstance(pilot.app.screen, CaptureScreen)


async def test_a_second_capture_can_be_compared_with_the_first() -> None:
    child = capturers.printing(profiles.healthy)
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await captured(pilot)
        await press(pilot, "c")
        assert "There is one profile of it" in text(pilot, "footer")
        await captured(pilot)
        await press(pilot, "c")
        assert "compared with the profile" in page_text(pilot)
        await press(pilot, "escape")
        assert "compared with the profile" not in page_text(pilot)
        assert pilot.app.page.NAME == "profile"
        await press(pilot, "escape")
        assert pilot.app.page.NAME == ""


async def test_tab_goes_through_the_captured_processes() -> None:
    child = capturers.printing(profiles.healthy)
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await captured(pilot)
        await press(pilot, "escape", "down")
        await captured(pilot)
        assert f"pid {OTHER}" in page_text(pilot)
        await press(pilot, "tab")
        assert f"pid {PID}" in page_text(pilot)
        assert pilot.app.scene.process_key == ProcessKey(PID, PID * 100)


async def test_p_on_a_device_captures_its_process() -> None:
    child = capturers.printing(profiles.healthy)
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await press(pilot, "tab", "end", "P")
        assert f"Capture a trace of pid {OTHER}" in shown(pilot)


async def test_a_capture_that_ends_on_another_page_is_news(tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = f"\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\n"
    python, _, script = capturers.printing(profiles.healthy)
    child = (python, "-c", script.replace("from support import", wait + "from support import"))
    async with dashboard(two_jobs(), host=HOST, capturer=child) as pilot:
        await press(pilot, *CAPTURE, "j")
        assert " CAPTURING " in text(pilot, "header")
        go.touch()
        await until(pilot, lambda: captures(pilot).running is None)
        assert f"pid {PID} is captured: P shows its profile" in text(pilot, "footer")
        assert pilot.app.page.NAME == "job"
        assert " CAPTURING " not in text(pilot, "header")


async def test_the_feed_gets_what_a_capture_shows() -> None:
    kept: list[tuple[ProcessKey, TraceProfile, float]] = []

    def keep(process: ProcessKey, profile: TraceProfile, at_s: float) -> None:
        kept.append((process, profile, at_s))

    child = capturers.printing(profiles.healthy)
    began_s = time.monotonic()
    async with dashboard(two_jobs(), host=HOST, capturer=child, keep_profile=keep) as pilot:
        await captured(pilot)
    ((process, profile, at_s),) = kept
    assert process == ProcessKey(PID, PID * 100)
    assert profile.mxu_percent == profiles.healthy().mxu_percent
    assert began_s <= at_s <= time.monotonic()


# -- refusals


def one(**fields: object) -> ScriptedFeed:
    return ScriptedFeed((Job(PID, "python train.py", 0, 4, **fields),), past_s=60)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("feed", "host", "keys", "sentence"),
    [
        (one(), None, (), "This view is read-only: it captures nothing"),
        (one(), HOST, ("left",), "This is the past: n returns to now, then P captures"),
        (one(state="dead", phase="ended"), HOST, (), f"pid {PID} has ended: nothing is left"),
        (one(interval_s=None), HOST, (), f"pid {PID} has no agent: call tpusmi.start() in it"),
        (
            one(interval_s=None),
            Host(root="/tmp/host", simulated=True),
            (),
            f"pid {PID} has no agent: simulate a host with `tpusmi simulate v5e-8 --agent`",
        ),
        (two_jobs(), HOST, ("space", "down", "space"), "One capture at a time: select one"),
        (ScriptedFeed(), HOST, (), "No process is selected"),
    ],
)
async def test_a_capture_that_cannot_be_is_refused_with_a_sentence(
    feed: ScriptedFeed, host: Host | None, keys: tuple[str, ...], sentence: str
) -> None:
    async with dashboard(feed, (120, 30), host=host, capturer=("/no/such/program",)) as pilot:
        await press(pilot, *keys, "P")
        assert sentence in text(pilot, "footer")
        assert pilot.app.page.NAME == ""
        assert not isinstance(pilot.app.screen, CaptureScreen)


async def test_a_process_without_an_agent_and_with_a_port_can_be_captured() -> None:
    feed = one(interval_s=None, facts={"profiler_port": 9012})
    async with dashboard(feed, host=HOST, capturer=capturers.failing("no")) as pilot:
        await press(pilot, "P")
        assert isinstance(pilot.app.screen, CaptureScreen)


async def test_a_process_without_an_agent_that_listens_on_a_usual_port_can_be_captured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tpusmi.profiler.local_ports.usual_port_of", {PID: 9012}.get)
    async with dashboard(one(interval_s=None), host=HOST, capturer=("/no/such",)) as pilot:
        await press(pilot, "P")
        assert isinstance(pilot.app.screen, CaptureScreen)


async def test_a_stopped_process_without_chips_is_not_captured() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        try:
            os.kill(child.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, child.pid, os.WSTOPPED)
            feed = ScriptedFeed((Job(child.pid, "python train.py", 0, 4),))
            async with dashboard(feed, (120, 30), host=HOST, capturer=("/no/such",)) as pilot:
                await press(pilot, "P")
                sentence = f"pid {child.pid} is stopped: resume it with `kill -CONT {child.pid}`"
                assert sentence in text(pilot, "footer")
        finally:
            child.kill()


async def test_a_read_only_view_does_not_offer_the_key() -> None:
    async with dashboard(two_jobs(), (200, 30)) as pilot:
        assert "Profile" not in text(pilot, "footer")
        assert "profile" not in {b.id for b in pilot.app.page.bindings}
    async with dashboard(two_jobs(), (200, 30), host=HOST) as pilot:
        assert "P Profile" in text(pilot, "footer")


async def test_a_process_that_ended_keeps_its_profile_on_the_screen() -> None:
    feed = two_jobs()
    child = capturers.printing(profiles.healthy)
    async with dashboard(feed, host=HOST, capturer=child) as pilot:
        await captured(pilot)
        feed.jobs = feed.jobs[1:]
        await press(pilot, "r")
        assert "it has ended" in page_text(pilot)
        assert "FINDINGS" in page_text(pilot)
        await press(pilot, "P")
        assert "No process is selected" in text(pilot, "footer")


async def test_a_process_that_ends_while_the_question_is_open_is_not_captured() -> None:
    feed = two_jobs()
    async with dashboard(feed, (120, 30), host=HOST, capturer=capturers.failing("no")) as pilot:
        await press(pilot, "P", "1")
        feed.jobs = feed.jobs[1:]
        pilot.app.scene.newest = feed.snapshot()
        await press(pilot, "enter")
        assert f"pid {PID} has ended: nothing is left to capture" in text(pilot, "footer")
        assert not captures(pilot).processes


async def test_the_page_follows_the_size_of_the_screen() -> None:
    child = capturers.printing(profiles.v5p_training)
    async with dashboard(two_jobs(), (200, 60), host=HOST, capturer=child) as pilot:
        await captured(pilot)
        for size in ((20, 5), (1, 1), (80, 24)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
        assert all(len(line) <= 80 for line in shown(pilot).splitlines())
        assert "FINDINGS" in page_text(pilot)


# -- the real child


PARENT = """
import os, subprocess, sys, time
from tpusmi.tui.capturing.capture_thread import _ENDS_WITH_US
command = [sys.executable, "-c", _ENDS_WITH_US, str(os.getpid()), "dmon", "-d", "60"]
child = subprocess.Popen(command, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_capture_does_not_outlive_a_dashboard_that_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], env=environment(tmp_path), stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert not is_gone(child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: _has_ended(child), what="it ends with its dashboard")


def _has_ended(pid: int) -> bool:
    """Also as a zombie, where no process reaps what is left over."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_the_command_is_this_python_with_the_simulated_host_and_the_modules_of_this_one() -> None:
    order = CaptureOrder(process=ProcessKey(PID, 1), duration_ms=500)
    command = command_for(Host(root="/tmp/host", simulated=True), order)
    assert command[0] == sys.executable
    assert command[4:] == (
        *("profile", str(PID), "--json", "--progress", "--duration-ms", "500", "--top", "2000"),
        *("--simulate", "/tmp/host"),
    )
    assert "--simulate" not in command_for(Host(), order)


async def test_the_real_command_says_why_it_cannot_capture() -> None:
    """A process without an agent, by the whole command: its sentence is on the page."""
    async with dashboard(one(), host=HOST) as pilot:
        await captured(pilot)
        assert page_text(pilot).splitlines()[1].startswith("! ")
        assert "exit code" not in page_text(pilot)
