"""What became of a plan: of each process, of the nodes, of the lock file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tpusmi.actions.grip import Fate
from tpusmi.actions.plan import Refusal, Starter
from tpusmi.model import Process


class Result(NamedTuple):
    """What became of one process."""

    process: Process
    outcome: Fate
    """A key of DOUBTS when it was not signalled at all."""
    message: str
    took_s: float

    @property
    def is_free(self) -> bool:
        """True when it no longer holds the TPU."""
        return self.outcome in _FREE


_FREE = (Fate.ENDED, Fate.KILLED, Fate.RELEASED, Fate.GONE, Fate.LET_GO, Fate.REPLACED)


def zombie_until(parent: int) -> str:
    """What a process is between its end and the moment when its parent reaps it, in words."""
    return f"zombie until its parent, pid {parent}, collects it"


class Newcomer(NamedTuple):
    """A process that holds a node of the plan now, and did not when the plan was made."""

    pid: int
    start_ticks: int
    uid: int | None
    user: str | None
    command: str
    nodes: tuple[str, ...]
    replaces: int | None
    """Pid of the ended process that it replaces: the same unit, container or parent starts both, or
    their commands are the same. None when it replaces none of them.
    """
    after_s: float | None
    """How long after that end it began; None for a process that was there before."""
    starter: Starter | None


class Cleared(NamedTuple):
    """What became of a lock file."""

    path: str
    removed: bool
    message: str


class Report(NamedTuple):
    """What became of all targets, of their nodes, and of the lock file: the result of
    `tpusmi.free()`.

    >>> report = tpusmi.free(stale=True)
    >>> report
    <Report: nothing to end; not known whether the TPU is free>
    """

    results: tuple[Result, ...]
    still_held: Mapping[str, tuple[int, ...]]
    """Pids by node, for the nodes of the plan that are not free; none where that cannot be seen."""
    lock_files: tuple[Cleared, ...]
    notes: tuple[str, ...]
    unseen: str = ""
    """What could not be inspected, in words: it may include holders."""
    refused: tuple[Refusal, ...] = ()
    """Processes that were requested and left alone, with the reason."""
    also_held_by: tuple[int, ...] = ()
    """Other holders of the requested nodes when the plan was made."""
    nodes: tuple[str, ...] = ()
    """The nodes that were requested."""
    spared: tuple[Refusal, ...] = ()
    """Holders that may be stale, but not for certain."""
    came_back: tuple[Newcomer, ...] = ()
    """Processes that have taken a node of the plan since."""

    def __repr__(self) -> str:
        ends = ", ".join(f"{r.process.pid} {r.outcome}" for r in self.results)
        is_free = "not known whether the TPU is free"
        if self.is_free is not None:
            is_free = "the TPU is free" if self.is_free else "the TPU is not free"
        return f"<Report: {ends or 'nothing to end'}; {is_free}>"

    @property
    def is_free(self) -> bool | None:
        """True when every requested node was seen to be free. None when no holder was seen, but one
        is possible: some process could not be inspected, a holder could not be judged, or no
        requested node is known.
        """
        if any(self.still_held.values()) or not all(r.is_free for r in self.results):
            return False
        has_nodes = self.nodes and all(r.nodes for r in self.refused)
        doubtful = self.still_held or self.unseen or any(r.is_unjudged for r in self.spared)
        return True if has_nodes and not doubtful else None
