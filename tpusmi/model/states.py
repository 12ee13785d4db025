"""The fixed sets of words that the model, the JSON and every screen use. No I/O.

Each word equals the plain string of its value, prints as it, and goes into JSON as it.
"""

from enum import Enum


class Word(str, Enum):
    """A word of a fixed set."""

    # Otherwise an f-string prints `State.LIVE` on some versions of Python and `live` on others.
    __str__ = str.__str__
    __format__ = str.__format__  # type: ignore[assignment]  # the same, with a positional name


class State(Word):
    """Whether a process and its agent are alive."""

    LIVE = "live"
    SILENT = "silent"
    """Alive, but its agent stopped writing."""
    DEAD = "dead"
    UNCERTAIN = "unknown"
    """Its agent stopped writing, and the process may or may not be alive."""


class SliceState(Word):
    """Whether another host of the slice is heard of."""

    LIVE = "live"
    STOPPED = "stopped reporting"


NOT_HEARD_OF = "not heard of"
"""A process of a job whose agent has not reported yet, or that has none: it has no state."""


class Phase(Word):
    """What a job is doing. Segments hold the place in this list, so a new one comes last."""

    STARTING = "starting"
    """No backend and no step yet."""
    COMPILING = "compiling"
    RUNNING = "running"
    IDLE = "idle"
    ENDED = "ended"


PHASES = tuple(Phase)
"""By the number that a segment holds."""


class Verdict(Word):
    """Whether a holder will do any more work. One function gives it: `merge.staleness.judged`."""

    STALE = "stale"
    """It shows signs, and every witness that could have objected was asked."""
    MAYBE = "maybe"
    """It shows signs that are not enough: `--stale` leaves it alone."""
    UNKNOWN = "unknown"
    """A witness that could have changed the verdict could not be asked."""
    NOT_STALE = "not_stale"
    """It works, or shows no sign of being stale."""


VERDICT_WORDS = {
    Verdict.STALE: "is stale",
    Verdict.MAYBE: "may be stale",
    Verdict.UNKNOWN: "cannot be judged",
    Verdict.NOT_STALE: "is not stale",
}
"""Each verdict as every screen, plan and warning words it, after the name of the process."""
UNJUDGED = VERDICT_WORDS[Verdict.UNKNOWN]


class Status(Word):
    """How a source or a server answered."""

    OK = "ok"
    ABSENT = "absent"
    DENIED = "denied"
    FAILED = "failed"


OK, ABSENT, DENIED, FAILED = Status


class LockState(Word):
    """What libtpu's lock file does to the next process that wants the TPU."""

    ABSENT = "absent"
    HARMLESS = "harmless"
    """No process locks it, and this user may open it."""
    BLOCKING = "blocking"
    """No process locks it, and this user has no permission to open it."""
    LOCKED = "locked"
    DELETED = "deleted"
    """Deleted while it was locked: the next process will not see the lock."""
    UNKNOWN = "unknown"


class Holding(Word):
    """Whether a device node, or the whole TPU, is free."""

    FREE = "free"
    HELD = "held"
    STALE = "stale"
    """On a node: every holder is stale. On the TPU: at least one is."""
    RELEASING = "releasing"
    """Every holder of the node is ending."""
    NOT_VISIBLE = "not_visible"
    """No holder was seen, but not every process could be inspected."""
    NO_PERMISSION = "no_permission"
    """Free, but this user has no permission to open it."""
    NO_NODE = "no_node"
    """There are chips, and no device node of them."""
    NO_TPU = "no_tpu"
