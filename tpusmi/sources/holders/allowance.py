"""How much a pass through /proc looks at for each user."""

import os

from tpusmi.sources.holders.procfs import read_status

FREE_DESCRIPTORS = 100_000
"""How many descriptors a pass looks at before it asks whose they are: hosts with thousands of
processes have fewer. It takes about half a second.
"""
USER_DESCRIPTORS = 32_768
"""How many more a pass looks at for each user. Root and the user who looks have no limit."""


class Allowance:
    """How many descriptors are left to look at in a pass: a user who opens very many must not
    delay the answer about all others.

    A process that is skipped for that counts as not inspected, so its user hides nothing by it:
    what it may hold is not called free.
    """

    def __init__(self) -> None:
        self._trusted = frozenset((0, os.geteuid()))
        self.renew()

    def renew(self) -> None:
        """Begin another pass."""
        self._free = FREE_DESCRIPTORS
        self._of_users: dict[int, int] = {}

    def refuses(self, process: str, count: int) -> bool:
        """True if `count` descriptors of that process are too many; takes them if not."""
        if count <= self._free:
            self._free -= count
            return False
        # Not the owner of its directory: that is root when a process may not be traced.
        uid = read_status(process).uid
        if uid is None or uid in self._trusted:
            return uid is None
        left = self._of_users.get(uid, USER_DESCRIPTORS) - count
        if left >= 0:
            self._of_users[uid] = left
        return left < 0

    def spend(self, process: str, count: int) -> None:
        """Take as many, also where fewer are left: after that nothing more is given."""
        if self._free > 0:
            self._free -= count
            return
        uid = read_status(process).uid
        if uid is not None:
            self._of_users[uid] = self._of_users.get(uid, USER_DESCRIPTORS) - count
