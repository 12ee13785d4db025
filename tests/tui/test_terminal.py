"""The dashboard in a real pseudo-terminal: odd sizes, and a terminal left as it was found."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import TPUSMI, environment
from support.terminals import LEFT_ALTERNATE_SCREEN, Terminal, terminal

from tpusmi.tui.terminal import ENDINGS, on_continued

CHILD = f"""
import sys
sys.path[:0] = {[*map(os.path.abspath, sys.path)]!r}
from support.feeds import two_jobs
from tpusmi.tui import Options, run
sys.exit(run(two_jobs(tick_s=1.0), Options()))
"""
COMMAND = [sys.executable, "-c", CHILD]


@pytest.fixture(params=[(80, 24), (0, 0), (40, 10)], ids=["80x24", "0x0", "40x10"])
def sized(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    with terminal(COMMAND, environment(tmp_path), *request.param) as found:
        yield found


def test_it_draws_and_gives_the_terminal_back_at_q(sized: Terminal) -> None:
    sized.see("DEVICE")
    sized.press("q")
    assert sized.end() == 0
    assert LEFT_ALTERNATE_SCREEN in sized.written


@pytest.mark.parametrize("number", ENDINGS)
def test_a_signal_ends_it_and_gives_the_terminal_back(
    tmp_path: Path, number: signal.Signals
) -> None:
    with terminal(COMMAND, environment(tmp_path)) as found:
        found.see("tpu:0")
        found.child.send_signal(number)
        assert found.end() == 128 + number
        assert LEFT_ALTERNATE_SCREEN in found.written


def test_a_dashboard_whose_terminal_is_gone_ends() -> None:
    """Without a controlling terminal nobody sends it SIGHUP."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*TPUSMI, "--interval", "30"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    while b"tpusmi" not in seen:
        seen += os.read(ours, 65536)
    os.close(ours)
    try:
        assert child.wait(60) == 129
    finally:
        child.kill()
        child.wait()


def test_a_stop_after_its_end_does_no_harm() -> None:
    drawn: list[int] = []

    async def dashboard() -> None:
        on_continued(lambda: drawn.append(1))
        signal.raise_signal(signal.SIGCONT)
        await asyncio.sleep(0)

    asyncio.run(dashboard())
    signal.raise_signal(signal.SIGCONT)
    assert drawn == [1]


def test_after_a_stop_the_whole_screen_is_drawn_anew(tmp_path: Path) -> None:
    with terminal(COMMAND, environment(tmp_path), 100, 30) as found:
        found.see("tpu:7")
        found.child.send_signal(signal.SIGSTOP)
        found.screen.reset()  # as a shell would write over it
        assert "tpu:7" not in found.text
        found.child.send_signal(signal.SIGCONT)
        for text in ("tpusmi 0.1.0", "DEVICE", "tpu:0", "tpu:7", "41234", "step time", "q Quit"):
            found.see(text)
