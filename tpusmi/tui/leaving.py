"""What comes to a dashboard from outside: signals, and the loss of its terminal."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

ENDINGS = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2),
)

ENDED_WITHIN_S = 5.0
"""After the loss of the terminal."""


def on_signals(leave: Callable[[int], object]) -> None:
    """Call `leave` with the exit code at each: a killed dashboard gives the terminal back first."""
    loop = asyncio.get_running_loop()
    for number in ENDINGS:
        loop.add_signal_handler(number, leave, 128 + number)


def on_continued(draw_anew: Callable[[], object]) -> None:
    """Call it after a stop: a shell has written over the screen meanwhile."""
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGCONT)

    def handle(number: int, frame: FrameType | None) -> None:
        if callable(before):
            before(number, frame)  # Textual's own, which takes the terminal back
        loop.call_soon_threadsafe(draw_anew)

    signal.signal(signal.SIGCONT, handle)


def hung_up() -> bool:
    """True when the terminal is gone. Without a controlling terminal no signal says so, and reading
    from what is left of it ends at once, again and again.
    """
    poll = select.poll()
    poll.register(0, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


def end_with_terminal() -> None:
    """End this process soon after its terminal has gone, whatever it waits for then.

    Textual hands what it draws to a thread, through a queue of a fixed length. On a terminal that
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
