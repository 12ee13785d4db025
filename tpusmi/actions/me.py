"""Who asks for an end: this process, what started it, and whose processes are its user's."""

from __future__ import annotations

import os

from tpusmi.actions.plan import Me
from tpusmi.model import Host
from tpusmi.sources.holders.life import ancestors
from tpusmi.sources.users import user_before_sudo

ANCESTORS_MOST = 100_000
"""All of them: whatever started us is never ended."""


def me(host: Host) -> Me:
    """This process. Mine are the processes of its effective uid; with sudo also those of the user
    before, whom the kernel shows above us: the variable of sudo alone gives no rights.
    """
    uids = {os.geteuid()}
    if (before := user_before_sudo()) is not None:
        uids.add(before)
    started_us = ancestors(host.path("/proc"), os.getppid(), most=ANCESTORS_MOST)
    return Me(os.getpid(), frozenset(pid for pid, _ in started_us), frozenset(uids))
