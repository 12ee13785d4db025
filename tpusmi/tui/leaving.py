"""What ends a dashboard that nobody quits: a signal, or a terminal that is gone."""

from __future__ import annotations

import asyncio
import select
import signal
from collections.abc import Callable


def on_signals(leave: Callable[[int], object]) -> None:
    """Call `leave` with the exit code at each: a killed dashboard gives the terminal back first."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, leave, 128 + number)


def hung_up() -> bool:
    """True when the terminal is gone. Without a controlling terminal no signal says so, and reading
    from what is left of it ends at once, again and again.
    """
    poll = select.poll()
    poll.register(0, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
