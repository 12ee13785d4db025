"""The terminal from outside: signals, its loss, and restoring it."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ENDINGS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Signals at which the dashboard leaves."""
ENDED_WITHIN_S = 5.0
"""The process ends this long after its terminal has gone."""
LEAVE = b"\x1b[?1000;1002;1003;1004;1006;1015;2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
"""No reports of the mouse, of focus and of pastes; wrapped lines, the cursor, the main screen."""


@contextmanager
def restored() -> Iterator[None]:
    """Restore the terminal when Textual fails while it takes it.

    Textual cannot leave it properly without the threads that write to it and read from it.
    """
    before = termios.tcgetattr(sys.__stdin__) if sys.__stdin__ and sys.__stdin__.isatty() else None
    try:
        yield
    except RuntimeError:
        if before is not None and sys.__stdin__ is not None:
            termios.tcsetattr(sys.__stdin__, termios.TCSADRAIN, before)
            os.write(1, LEAVE)
        raise


def on_signals(leave: Callable[[int], object]) -> None:
    """Call `leave` with the exit code at each: a killed dashboard gives the terminal back first."""
    loop = asyncio.get_running_loop()
    for number in ENDINGS:
        loop.add_signal_handler(number, leave, 128 + number)


def on_continued(redraw: Callable[[], object]) -> None:
    """Call `redraw` after a stop, during which a shell has written over the screen."""
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGCONT)

    def handle(number: int, frame: FrameType | None) -> None:
        if callable(before):
            before(number, frame)  # Textual's own, which takes the terminal back
        if not loop.is_closed():  # the process may live on when the dashboard has ended
            loop.call_soon_threadsafe(redraw)

    signal.signal(signal.SIGCONT, handle)


def hung_up() -> bool:
    """True when the terminal is gone. Without a controlling terminal no signal reports that, and
    reading from what is left of it ends at once, again and again.
    """
    poll = select.poll()
    poll.register(0, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


def end_with_terminal() -> None:
    """End this process soon after its terminal has gone, whatever it is waiting for.

    Textual hands its output to a thread, through a queue of a fixed length. On a terminal that
    stopped reading before it went, both may wait for each other.
    """
    if not os.isatty(0):
        return
    try:
        threading.Thread(target=_end_with_terminal, name="tpusmi-terminal", daemon=True).start()
    except RuntimeError:  # no more threads
        pass


def _end_with_terminal() -> None:
    poll = select.poll()
    poll.register(0, 0)
    poll.poll()
    time.sleep(ENDED_WITHIN_S)
    os._exit(128 + signal.SIGHUP)
