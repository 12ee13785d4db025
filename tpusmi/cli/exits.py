"""What the exit code says. The README prints this table."""

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
    CANNOT_WRITE = 74
    INTERRUPTED = 130
