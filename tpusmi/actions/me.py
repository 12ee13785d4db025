"""Who asks for an end: this process, what started it, and whose processes are its user's."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tpusmi.actions.plan import Me
from tpusmi.model import Host
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.life import ancestors
from tpusmi.sources.users import user_before_sudo

ANCESTORS_MOST = 100_000
"""All of them: whatever started us is never ended."""


def me(host: Host) -> Me:
    """This process. Mine are the processes of its effective uid; with sudo also those of the user
    before, if the kernel confirms what SUDO_UID says: it is the uid of our login, or of a process
    that started us.
    """
    proc = host.path("/proc")
    started_us = frozenset(pid for pid, _ in ancestors(proc, os.getppid(), most=ANCESTORS_MOST))
    uids = {os.geteuid()}
    before = user_before_sudo()
    if before is not None and (before == _login_uid() or before in _uids(proc, started_us)):
        uids.add(before)
    return Me(os.getpid(), started_us, frozenset(uids))


def _login_uid() -> int | None:
    """Of the login that we come from, which sudo does not change; None where there was none."""
    text = procfs.read("/proc/self/loginuid").strip()
    return int(text) if text.isdecimal() else None  # 4294967295 is nobody's, and equals no other


def _uids(proc: str, pids: Iterable[int]) -> set[int | None]:
    return {procfs.read_status(f"{proc}/{pid}").uid for pid in pids}
