"""Which processes hold which device nodes of a TPU, and the state of libtpu's lock file.

A node is never opened: if a monitor opened one, the real job could not.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence

from tpusmi.model import ABSENT, HOLDERS, Chip, Host, Outcome, Process
from tpusmi.sources.holders.nodes import Nodes, known_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.sources.holders.passes import Passes

PERIOD_S = 0.5
NODES_AGAIN_S = 2.0
"""Nodes change seldom, and a host may have hundreds: they are looked at again after that."""


class Holders:
    """The source of the processes that hold a TPU. Other sources call it too, hence the lock."""

    name = HOLDERS
    period_s = PERIOD_S

    def __init__(
        self, host: Host, chips: Callable[[], Sequence[Chip]], detailed: bool = False
    ) -> None:
        """`detailed` adds what only screens show: processes that have libtpu loaded and hold no
        TPU, what a holder uses of the host, and the chain of its parents.
        """
        self._host = host
        self._chips = chips
        self._detailed = detailed
        self._lock = threading.Lock()
        self._newest: Outcome | None = None
        self._read_at_s = 0.0
        self._has_read = False
        self._nodes: Nodes | None = None
        self._nodes_of: tuple[Chip, ...] = ()
        """The chips that the nodes belong to."""
        self._nodes_at_s = -math.inf
        self._passes: Passes | None = None
        """None until there is a node."""

    def read(self, now_s: float) -> Outcome:
        """Every holder with its nodes. ABSENT when the host has no node of a TPU.

        The first call waits until it shows whether holders that look left behind work.
        """
        with self._lock:
            outcome = self._look(now_s)
            passes = self._passes
            wait_s = None if self._has_read or passes is None else passes.describer.wait_s
            self._has_read = True
        if passes is None or wait_s is None:
            return outcome
        time.sleep(wait_s)  # without the lock: other sources need the holders meanwhile
        with self._lock:
            self._newest = outcome = outcome._replace(processes=passes.describer.again())
        return outcome._replace(took_s=outcome.took_s + wait_s)

    def close(self) -> None:
        """Stop the watch, unless a look is under way: then the end of the next one does."""
        if self._lock.acquire(blocking=False):
            if self._passes is not None:
                self._passes.close()
            self._lock.release()

    def processes(self) -> Sequence[Process]:
        """The holders, from a pass that is not older than two periods."""
        now_s = time.monotonic()
        with self._lock:
            if self._newest is None or now_s - self._read_at_s > 2 * PERIOD_S:
                self._look(now_s)
            assert self._newest is not None
            return [p for p in self._newest.processes if p.holds]

    def _look(self, now_s: float) -> Outcome:
        self._newest = self._outcome(now_s)
        self._read_at_s = now_s
        return self._newest

    def _outcome(self, now_s: float) -> Outcome:
        nodes = self._known_nodes(now_s)
        if not nodes.names:
            return Outcome(self.name, ABSENT, "no device node")
        if self._passes is None:
            from tpusmi.sources.holders.passes import Passes

            self._passes = Passes(self._host, self._detailed)
        return self._passes.outcome(nodes, now_s)

    def _known_nodes(self, now_s: float) -> Nodes:
        chips = tuple(self._chips())
        is_due = now_s - self._nodes_at_s >= NODES_AGAIN_S
        if self._nodes is None or is_due or chips != self._nodes_of:
            self._nodes = known_nodes(self._host, chips)
            self._nodes_of, self._nodes_at_s = chips, now_s
        return self._nodes
