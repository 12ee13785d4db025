"""Who listens on a port that is no holder's, as far as we may look."""

from __future__ import annotations

import math
import os
import time

from tpusmi.sources.sockets import Listener, visible_sockets
from tpusmi.wire import identity, places

PROCESSES_MOST = 32768
CPU_MOST_S, LOOK_MOST_S = 0.05, 0.1
"""For one look through the descriptors of a user's processes, and for all of them at one time."""
AGAIN_S = 10.0
"""A listener that was not found is looked for again after that."""


class Strangers:
    """The processes behind sockets, remembered."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._pids: dict[Listener, tuple[int | None, float]] = {}
        self._left_s = LOOK_MOST_S

    def pid(self, listener: Listener) -> int | None:
        """The process that listens there; None when it cannot be seen."""
        pid, at_s = self._pids.get(listener, (None, -math.inf))
        now_s = time.monotonic()
        if pid is None and now_s - at_s >= AGAIN_S and self._left_s > 0:
            began_s = time.thread_time()
            pid = self._find(listener)
            self._left_s -= time.thread_time() - began_s
            self._pids[listener] = (pid, now_s)
        return pid

    def keep(self, listeners: set[Listener]) -> None:
        """Forget all others. The next look has its own time."""
        self._left_s = LOOK_MOST_S
        self._pids = {found: known for found, known in self._pids.items() if found in listeners}

    def _find(self, listener: Listener) -> int | None:
        until_s = time.thread_time() + CPU_MOST_S
        for name in places.names(self._proc, PROCESSES_MOST):
            if time.thread_time() > until_s:
                break
            if name.isdigit() and self._is_of(name, listener.uid):
                sockets = visible_sockets(f"{self._proc}/{name}/fd")
                if sockets is not None and listener.inode in sockets:
                    return int(name)
        return None

    def _is_of(self, name: str, uid: int) -> bool:
        """True for a process of that user. Root has the directories of those that hide."""
        try:
            owner = os.stat(f"{self._proc}/{name}").st_uid
        except OSError:
            return False
        return owner == uid or (owner == 0 and identity.real_uid(self._proc, int(name)) == uid)
