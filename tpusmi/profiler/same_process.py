"""Whether a pid that the user named is the same process as at the first capture: a loop outlives
jobs, and a pid is used again.
"""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi.model import Host
from tpusmi.profiler.capture_target import ProfileTarget
from tpusmi.trace.troubles import CaptureError, Trouble
from tpusmi.wire import identity


class SameProcesses:
    """The processes of one loop. Another one that has a pid of theirs later is never captured."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._start_ticks: dict[int, int] = {}

    def split(
        self, targets: Sequence[ProfileTarget]
    ) -> tuple[list[ProfileTarget], dict[str, CaptureError]]:
        """The targets that can be captured, and by its text why each other one is not."""
        errors: dict[str, CaptureError] = {}
        for target in targets:
            if target.pid is not None and not self._is_same(target.pid):
                sentence = f"process {target.pid} has ended, and another one has its pid now"
                errors[target.text] = CaptureError(Trouble.ABSENT, sentence)
        return [target for target in targets if target.text not in errors], errors

    def _is_same(self, pid: int) -> bool:
        """True until another process has the pid. The capture says that a process is gone."""
        ticks = identity.start_ticks(self._host.path("/proc"), pid)
        return ticks is None or self._start_ticks.setdefault(pid, ticks) == ticks
