"""A grip on one process: only the process that was shown is signalled, and only while it still
holds the TPU.
"""

from __future__ import annotations

import errno
import os
import select
import signal
from collections.abc import Sequence

from tpusmi.model import Process
from tpusmi.model.states import Word
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.scan import Scan


class Fate(Word):
    """What became of a process that was to be ended."""

    ENDED = "ended"
    KILLED = "killed"
    """Ended by SIGKILL."""
    RELEASED = "released"
    """Released the TPU, and is still running."""
    NOT_PERMITTED = "not_permitted"
    ALIVE = "alive"
    """Does not end."""
    GONE = "gone"
    REPLACED = "replaced"
    LET_GO = "let_go"
    UNSEEN = "unseen"


DOUBTS = {
    Fate.GONE: "had already ended",
    Fate.REPLACED: "pid was reused by another process; not signalled",
    Fate.LET_GO: "no longer holds the TPU; not signalled",
    Fate.UNSEEN: "cannot be inspected; not signalled",
}
"""Why a process is not signalled."""

_NO_PIDFD = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.EACCES)


class Grip:
    """One process, held by a pidfd where the kernel has them: its pid cannot become another's."""

    def __init__(self, scan: Scan, proc: str, process: Process) -> None:
        self.process = process
        self._scan = scan
        self._path = f"{proc}/{process.pid}"
        self._descriptor: int | None = None
        self._is_gone = False
        self._is_ours = procfs.is_ours(proc)
        """False where this /proc numbers the processes of another namespace."""
        try:
            self._descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            self._is_gone = True
        except (AttributeError, OSError) as error:
            # Before Linux 5.3, and in some sandboxes.
            expected = (*_NO_PIDFD, errno.EMFILE, errno.ENFILE)
            if isinstance(error, OSError) and error.errno not in expected:
                raise
        self.is_firm = self._descriptor is not None or self._is_gone
        """False where the kernel has no pidfd: a moment passes between the look and the signal."""

    def doubt(self) -> Fate | None:
        """Why it must not be signalled, a key of DOUBTS; None when it is proven to be the process
        that was shown, and to hold a node.
        """
        if not self._is_ours:
            return Fate.UNSEEN
        if self.has_ended():
            return Fate.GONE
        stat = procfs.read_stat(self._path)
        if stat is None or stat.start_ticks != self.process.key.start_ticks:
            return Fate.REPLACED
        held = self.held()
        if held is None:
            return Fate.UNSEEN
        return None if held else Fate.LET_GO

    def held(self) -> Sequence[str] | None:
        """The nodes it holds now; None when that cannot be seen."""
        return self._scan.held_by(self.process.pid)

    def has_ended(self) -> bool:
        """True when the process has ended with all its threads."""
        if self._is_gone:
            return True
        if self._descriptor is not None:
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            self._is_gone = bool(poll.poll(0))
        else:
            stat = procfs.read_stat(self._path)
            self._is_gone = stat is None or stat.is_gone
        return self._is_gone

    def signal(self, number: int) -> None:
        """Send a signal. Raises OSError: ProcessLookupError when the process has ended."""
        if self._descriptor is not None:
            signal.pidfd_send_signal(self._descriptor, number)
        else:
            os.kill(self.process.pid, number)

    def is_stopped(self) -> bool:
        """True for a stopped process, which takes SIGTERM only after SIGCONT."""
        return procfs.is_stopped(self._path)

    def is_exiting(self) -> bool:
        """True while the kernel takes it apart: its descriptors disappear before what they held is
        released.
        """
        stat = procfs.read_stat(self._path)
        return stat is None or stat.exiting

    def where_it_waits(self) -> str:
        """What a process that does not end is doing in the kernel."""
        stat = procfs.read_stat(self._path)
        if stat is not None and stat.is_stopped:
            return f"it is stopped (state {stat.state})"
        if stat is None or not stat.has_ended:
            return procfs.where_it_sleeps(self._path)
        left = [t for t in procfs.threads(self._path) if not t.endswith(f"/{self.process.pid}")]
        where = sorted({procfs.where_it_sleeps(thread) for thread in left})
        return f"its main thread has ended, {len(left)} others are left: {', '.join(where)}"

    def reaper(self) -> int | None:
        """The parent that has to reap it; None where it has not ended, or is gone."""
        stat = procfs.read_stat(self._path)
        if stat is None or stat.start_ticks != self.process.key.start_ticks or not stat.is_gone:
            return None
        return stat.parent

    def close(self) -> None:
        """Close its descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
