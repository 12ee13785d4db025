"""The Python that runs this code: whether it can be started again, and can start threads."""

from __future__ import annotations

import errno
import os
import sys

NONE_LEFT = ("can't start new thread", "cannot join thread before it is started")
"""Python's messages when no thread can be started; the second if cleanup code hides the first."""
WHERE = "see ulimit -u, or the pod's pids limit"


def this_python() -> str:
    """The path of this interpreter. Raises OSError, with a sentence, if sys.executable is not
    its path: in a program or server that embeds Python, or in a bundled application.
    """
    if reason := why_unknown():
        raise OSError(errno.ENOEXEC, reason)
    return sys.executable


def why_unknown() -> str:
    """Why this interpreter cannot be started again; empty when it can."""
    path = sys.executable
    if not path:
        return "sys.executable is empty"
    if getattr(sys, "frozen", False):
        return f"{path} is a bundled application"
    name = os.path.basename(path)
    if not name.startswith(("python", "pypy")):
        return f"sys.executable is {path}, which is not a Python by its name"
    try:
        is_this = os.path.samefile(path, "/proc/self/exe")
    except OSError as error:
        return f"sys.executable is {path}: {error.strerror}"
    return "" if is_this else f"sys.executable is {path}, which is not the running program"


def is_none_left(error: BaseException) -> bool:
    """True for the error of a thread that could not be started."""
    return isinstance(error, RuntimeError) and str(error) in NONE_LEFT


def can_start(count: int) -> bool:
    """True if that many threads can run at once: other libraries fail half-way without them."""
    import threading

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
