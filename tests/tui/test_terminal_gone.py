"""A dashboard ends with its terminal, also with one that stopped reading before it went."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import time

import pytest
from support.commands import TPUSMI, environment

from tpusmi.simulate.host import HostPlan, start
from tpusmi.tui.terminal import ENDED_WITHIN_S

LIMIT_S = ENDED_WITHIN_S + 25
STALLED_S = 6.0
"""Longer than its queue takes to fill."""


@pytest.mark.parametrize("stalled_s", [0.0, STALLED_S], ids=["reads to its end", "stalls first"])
def test_a_dashboard_ends_with_its_terminal(stalled_s: float) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    with start(HostPlan("v5e-4")) as host:
        child = subprocess.Popen(
            [*TPUSMI, "--interval", "0.25", "--simulate", host.root],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env=environment("/"),
        )  # fmt: skip
        os.close(theirs)
        try:
            seen = b""
            while b"Quit" not in seen:
                seen += os.read(ours, 65536)
            time.sleep(stalled_s)
            os.close(ours)
            assert child.wait(LIMIT_S) == 128 + signal.SIGHUP
        finally:
            child.kill()
            child.wait()
