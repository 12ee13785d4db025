"""Who a user is. Names may come over a network, which numbers never wait for."""

from __future__ import annotations

import os
import threading
import time

from tpusmi.text import clean, whole_number

WAIT_MOST_S = 0.15
"""For all names that a process ever asks for, together; what comes later is there the next time."""
AT_ONCE_MOST = 4
"""Names that are looked up at the same time."""
KEPT_MOST = 4096
"""Users that are remembered."""
ANCESTORS_MOST = 1000


def user_name(uid: int) -> str:
    """The name of a user; the number where there is none, or as long as it has not come."""
    return _NAMES.of(uid)


def user_before_sudo() -> int | None:
    """Who has become root with sudo; None where no process that started us is that user's.

    SUDO_UID alone proves nothing: anything may set it.
    """
    uid = whole_number(os.environ.get("SUDO_UID", ""))
    if os.geteuid() != 0 or uid is None:
        return None
    return uid if _has_started_us(uid) else None


class _Names:
    """Each user is looked up once, on a thread. Failures are remembered as well."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self._coming: dict[int, threading.Event] = {}
        self._left_s = WAIT_MOST_S

    def of(self, uid: int) -> str:
        """The name, or the number for now."""
        if uid not in self._known and (came := self._ask(uid)) is not None and self._left_s > 0:
            started_s = time.monotonic()
            came.wait(self._left_s)
            self._left_s -= time.monotonic() - started_s
        return self._known.get(uid, str(uid))

    def _ask(self, uid: int) -> threading.Event | None:
        """Set once the name is there; None where it cannot be looked up now."""
        if (coming := self._coming.get(uid)) is not None:
            return coming
        if uid in self._known:  # it came meanwhile: what has come is known first
            return None
        if len(self._coming) >= AT_ONCE_MOST or len(self._known) >= KEPT_MOST:
            return None
        came = self._coming[uid] = threading.Event()
        try:
            threading.Thread(target=self._look_up, args=(uid, came), daemon=True).start()
        except RuntimeError:  # no more threads
            self._coming.pop(uid, None)
            return None
        return came

    def _look_up(self, uid: int, came: threading.Event) -> None:
        import pwd

        try:
            self._known[uid] = clean(pwd.getpwuid(uid).pw_name, 64)
        except (KeyError, OverflowError, OSError):
            self._known[uid] = str(uid)
        self._coming.pop(uid, None)
        came.set()


_NAMES = _Names()


def _has_started_us(uid: int) -> bool:
    """True when that user runs our parent, its parent, or one further up."""
    pid = os.getppid()
    for _ in range(ANCESTORS_MOST):
        try:
            with open(f"/proc/{pid}/status", "rb") as file:
                lines = dict(line.split(b":", 1) for line in file if b":" in line)
            real, pid = int(lines[b"Uid"].split()[0]), int(lines[b"PPid"])
        except (OSError, KeyError, ValueError, IndexError):
            return False
        if real == uid:
            return True
    return False
