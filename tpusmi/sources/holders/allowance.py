"""How many descriptors one pass looks at: a user who opens very many costs the others a part of it.

A process that is left out for that counts as one that could not be inspected, so its user hides
nothing by it: what it may hold is not called free.
"""

from __future__ import annotations

import os

from tpusmi.sources.holders.procfs import read_status

FREE = 100_000
"""Descriptors that a pass looks at without asking whose they are: hosts with thousands of processes
have fewer. It takes about half a second.
"""
OF_USER = 32_768
"""And so many more of each user. Those of root and of the user who looks have no limit."""


class Allowance:
    """What is left of one pass."""

    def __init__(self) -> None:
        self._trusted = frozenset((0, os.geteuid()))
        self.renew()

    def renew(self) -> None:
        """Begin another pass."""
        self._free = FREE
        self._of_users: dict[int, int] = {}

    def refuses(self, process: str, count: int) -> bool:
        """Whether so many descriptors of that process are too many; takes them if not."""
        if count <= self._free:
            self._free -= count
            return False
        # Not the owner of its directory: that is root when a process may not be traced.
        uid = read_status(process).uid
        if uid is None or uid in self._trusted:
            return uid is None
        left = self._of_users.get(uid, OF_USER) - count
        if left >= 0:
            self._of_users[uid] = left
        return left < 0
