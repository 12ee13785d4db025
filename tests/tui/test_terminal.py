"""The dashboard in a real pseudo-terminal: odd sizes, and a terminal left as it was found."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 30.0
LEFT_ALTERNATE_SCREEN = b"\x1b[?1049l"
CHILD = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests" / "tui")!r}]
from scripted import two_jobs
from tpusmi.tui import Options, run
sys.exit(run(two_jobs(tick_s=1.0), Options()))
"""


class Terminal:
    """The dashboard as a child on a terminal of that size."""

    def __init__(self, columns: int, lines: int) -> None:
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        self.child = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            env={**env, "TERM": "xterm-256color"},
        )
        self.written = b""

    def wait_for(self, text: bytes) -> None:
        """Read until the child has written this."""
        until_s = time.monotonic() + DEADLINE_S
        while text not in self.written:
            assert time.monotonic() < until_s, self.written[-2000:]
            if select.select([self._ours], [], [], 0.1)[0]:
                self.written += os.read(self._ours, 65536)

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._ours, keys)

    def close(self) -> None:
        """End the child and hang up."""
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        os.close(self._ours)
        os.close(self._theirs)


@pytest.fixture(params=[(80, 24), (0, 0), (40, 10)], ids=["80x24", "0x0", "40x10"])
def terminal(request: pytest.FixtureRequest) -> Iterator[Terminal]:
    found = Terminal(*request.param)
    yield found
    found.close()


def test_it_draws_and_gives_the_terminal_back_at_q(terminal: Terminal) -> None:
    terminal.wait_for(b"tpu:0")
    terminal.press(b"q")
    terminal.wait_for(LEFT_ALTERNATE_SCREEN)
    assert terminal.child.wait(DEADLINE_S) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_gives_the_terminal_back(number: signal.Signals) -> None:
    terminal = Terminal(80, 24)
    try:
        terminal.wait_for(b"tpu:0")
        terminal.child.send_signal(number)
        terminal.wait_for(LEFT_ALTERNATE_SCREEN)
        assert terminal.child.wait(DEADLINE_S) == 128 + number
    finally:
        terminal.close()
