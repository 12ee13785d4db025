"""Threads where a limit on processes may be reached: of the user, or of the container."""

from __future__ import annotations

import threading

NONE_LEFT = ("can't start new thread", "cannot join thread before it is started")
"""What Python says then; the second where another program's cleaning up hides the first."""
WHERE = "see ulimit -u, or the pod's pids limit"


def is_none_left(error: BaseException) -> bool:
    """True for the error of a thread that could not be started."""
    return isinstance(error, RuntimeError) and str(error) in NONE_LEFT


def can_start(count: int) -> bool:
    """True where so many threads can be had at once: programs of others fail half-way without."""
    end = threading.Event()
    started = []
    try:
        for _ in range(count):
            thread = threading.Thread(target=end.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError:
        return False
    finally:
        end.set()
        for thread in started:
            thread.join()
    return True
