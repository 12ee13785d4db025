"""The process that the agent runs in: its command line, whether it is a helper or missed the TPU,
and how not to get in its way.
"""

from __future__ import annotations

import os
import select
import signal
import sys

from tpusmi.agent import jaxread
from tpusmi.text import WORDS_MOST, clean, counted, without_secrets

COMMAND_MOST_BYTES, ARGUMENT_MOST = 3000, 200
"""Limits of the command line in the facts, whose place in the segment is small."""


LINE_MOST = 500
"""The length of a line in characters: a pipe that has room at all takes that much at once."""
_FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)
"""Signals that a thread raises itself: if blocked, they would end the process silently."""


def say(message: str) -> None:
    """Print a line on stderr, unless that would block. Raises nothing, whatever stderr is."""
    line = f"tpusmi: {clean(message, LINE_MOST)}\n"
    try:
        descriptor = sys.stderr.fileno()
    except Exception:  # noqa: BLE001  # None, closed, or an object of the job's: a notebook's
        descriptor = -1
    try:
        if descriptor < 0:
            sys.stderr.write(line)
        elif _takes_a_line(descriptor):
            # Past the buffer: what stays in it would be tried again, and spoil the exit code.
            os.write(descriptor, line.encode("utf-8", "replace"))
    except Exception:  # noqa: BLE001  # closed, or full
        pass


def _takes_a_line(descriptor: int) -> bool:
    """False for a pipe that is full or has no reader."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return any(event == select.POLLOUT for _, event in poll.poll(0))


def block_signals() -> None:
    """Leave every signal to the job's own threads, as long as this one lives.

    A job that waits for SIGTERM in one thread has blocked it in all its other threads; delivered to
    ours, the signal would end the job. A write beyond the file size limit, or to a closed
    connection, is an error here and nothing else.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - {*_FAULTS})


def command() -> list[str]:
    """The command line, secrets hidden, cut to fit; sys.argv where /proc hides it."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            raw = file.read(65536).rstrip(b"\0")
        argv = raw.decode("utf-8", "replace").split("\0", WORDS_MOST)[:WORDS_MOST]
    except OSError:
        argv = sys.argv
    words, left = [], COMMAND_MOST_BYTES
    for word in without_secrets(argv):
        word = clean(word, ARGUMENT_MOST)
        left -= len(word.encode("utf-8", "replace")) + 4
        if left < 0:
            break
        words.append(word)
    return words


def is_helper(argv: list[str]) -> bool:
    """True in a worker of multiprocessing: it runs the user's main again and may never touch JAX.

    While it imports that main, only the command line shows it.
    """
    if "--multiprocessing-fork" in argv or any("multiprocessing.forkserver" in w for w in argv):
        return True
    # A module that another thread is importing right now does not have all its names yet.
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    return parent is not None and parent() is not None


def fallback_warning(platform: str | None) -> list[dict[str, str]]:
    """A warning about the classic silent failure: the machine has TPUs, and the job runs on the CPU
    without having chosen it. Empty where that is not so.
    """
    if platform != "cpu" or jaxread.is_cpu_chosen():
        return []
    functions = jaxread.tpu_functions()
    if not functions:
        return []
    present = f"{counted(functions, 'TPU function')} {'is' if functions == 1 else 'are'}"
    message = f"JAX runs on the CPU although {present} on the PCI bus"
    return [{"code": "cpu_fallback", "message": message}]
