"""Processes of ours that never outlive the one that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

from tpusmi.interpreter import this_python

PR_SET_PDEATHSIG = 1


def start_module(name: str) -> subprocess.Popen[bytes]:
    """That module in a Python of its own, which reads and writes pipes of ours.

    Ctrl-C is for us: it goes when its pipe does. Raises OSError where it cannot be started.
    """
    # It finds what this process finds, also in a source tree, and nothing else: `-m` puts the
    # current directory first, where the user may have a random.py.
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    return subprocess.Popen(
        [this_python(), "-m", name],
        env={**os.environ, "PYTHONPATH": path},
        cwd="/",
        bufsize=0,  # select() knows nothing of what a buffer holds
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def die_with(parent: int) -> None:
    """In a child, before it is a program: end when the parent does, even by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # it ended before the kernel knew
