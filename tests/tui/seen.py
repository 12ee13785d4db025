"""A feed of what is really seen of a host."""

from __future__ import annotations

from tpusmi.collect import look
from tpusmi.model import History, Host, Snapshot


class HostFeed:
    """A look at the host whenever it is asked."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.history = History()

    def snapshot(self) -> Snapshot:
        """A look."""
        return look(self._host)
