"""What became of a plan: of each process, of the nodes, of the lock file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tpusmi.actions.lockfile import Cleared
from tpusmi.actions.plan import Refusal, Starter
from tpusmi.actions.proof import GONE, LET_GO
from tpusmi.model import Process


class Result(NamedTuple):
    """What became of one process."""

    process: Process
    outcome: str
    """`ended`; `killed`, by SIGKILL; `released`: it lives on without the TPU; `not_permitted`;
    `alive`: it does not end; or one of DOUBTS, when it was not signalled at all.
    """
    message: str
    took_s: float

    @property
    def is_free(self) -> bool:
        """True when it holds nothing any more."""
        return self.outcome in ("ended", "killed", "released", GONE, LET_GO, "replaced")


class Newcomer(NamedTuple):
    """A process that holds a node of the plan now, and did not when the plan was made."""

    pid: int
    start_ticks: int
    uid: int | None
    user: str | None
    command: str
    nodes: tuple[str, ...]
    replaces: int | None
    """Pid of the process that has ended and that it is like: what started it or, where that is not
    known, the command is the same. None when it is like none of them.
    """
    after_s: float | None
    """So long after that end it began; None for one that was there before."""
    starter: Starter | None


class Report(NamedTuple):
    """What became of all of them, of their nodes, and of the lock file."""

    results: tuple[Result, ...]
    still_held: Mapping[str, tuple[int, ...]]
    """Pids by node, of the plan's nodes that are not free; none where nobody could look."""
    lock_files: tuple[Cleared, ...]
    notes: tuple[str, ...]
    unseen: str = ""
    """What could not be inspected, in words: holders may be among it."""
    refused: tuple[Refusal, ...] = ()
    """Those that were asked for and left alone, with the reason."""
    also_held_by: tuple[int, ...] = ()
    """Other holders of the nodes that were asked for, as they were when it was planned."""
    nodes: tuple[str, ...] = ()
    """The nodes that were asked for."""
    spared: tuple[Refusal, ...] = ()
    """Holders that may be stale, and are not certain to be."""
    came_back: tuple[Newcomer, ...] = ()
    """Who took a node of the plan since."""

    @property
    def is_free(self) -> bool | None:
        """True when every node that was asked for was seen to be free. None when no holder was seen
        and one may be there all the same: not everybody could be inspected, a holder could not be
        judged, or no node is known that was asked for.
        """
        if any(self.still_held.values()) or not all(r.is_free for r in self.results):
            return False
        known = self.nodes and all(r.nodes for r in self.refused)
        doubtful = self.still_held or self.unseen or any(r.is_unjudged for r in self.spared)
        return True if known and not doubtful else None
