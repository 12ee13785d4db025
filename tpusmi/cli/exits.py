"""What the exit code says. The README prints this table."""

import os
import sys
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command."""

    ANSWERED = 0
    NOTHING_HERE = 1
    USAGE = 2
    PERMISSION = 3
    SOURCE_FAILED = 4
    BUSY = 5
    STALE = 6
    NO_NODE = 7
    CANNOT_WRITE = 74
    INTERRUPTED = 130


def forget_stdout() -> None:
    """What cannot be written now cannot be written at exit either; nor to a pipe that was closed
    with it.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    try:
        sys.stderr.flush()
    except BrokenPipeError:
        os.dup2(nowhere, sys.stderr.fileno())
