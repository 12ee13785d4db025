"""User names and uids. Names may come over a network; a uid is never delayed by that."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from tpusmi.text import clean, whole_number

Result = TypeVar("Result")

WAIT_MOST_S = 0.15
"""For all names of one run of tpusmi together; a name that comes later is used the next time."""
AT_ONCE_MOST = 4
"""Names that are looked up at the same time."""
LOOKUP_S = 1.0
"""For one look into the user database that a command cannot do without."""
KEPT_MOST = 4096
"""Users that are remembered."""
ANCESTORS_MOST = 1000


def user_name(uid: int) -> str:
    """The name of a user; the uid while the name is unknown."""
    return _USER_NAMES.of(uid)


def user_number(name: str) -> int | None:
    """The uid of the user with that name; None where there is none. Raises TimeoutError."""
    import pwd

    try:
        return _in_time(lambda: pwd.getpwnam(name).pw_uid)
    except (KeyError, ValueError, OSError) as error:
        if isinstance(error, TimeoutError):
            raise
        return None


@cache
def home() -> str:
    """The home directory of this user by the environment, or else by the user database; `/` where
    neither has it.
    """
    import pwd

    try:
        return os.environ.get("HOME") or _in_time(lambda: pwd.getpwuid(os.getuid()).pw_dir) or "/"
    except (KeyError, OSError):
        return "/"


def user_before_sudo() -> int | None:
    """The uid of the user who called sudo; None where none of our ancestors belongs to that user.

    SUDO_UID alone proves nothing: any process may set it.
    """
    uid = whole_number(os.environ.get("SUDO_UID", ""))
    if os.geteuid() != 0 or uid is None:
        return None
    return uid if _has_started_us(uid) else None


class _UserNames:
    """Looks each user up once, on a thread, and remembers failures as well."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._coming: dict[int, threading.Event] = {}
        self._left_s = WAIT_MOST_S

    def of(self, uid: int) -> str:
        """The name, or the number for now."""
        if uid not in self._names and (came := self._start(uid)) is not None and self._left_s > 0:
            started_s = time.monotonic()
            came.wait(self._left_s)
            self._left_s -= time.monotonic() - started_s
        return self._names.get(uid, str(uid))

    def _start(self, uid: int) -> threading.Event | None:
        """An event that is set once the name is there; None where it cannot be looked up now."""
        if (coming := self._coming.get(uid)) is not None:
            return coming
        if uid in self._names:  # it came meanwhile: the name is set before the lookup is removed
            return None
        if len(self._coming) >= AT_ONCE_MOST:
            return None
        if len(self._names) >= KEPT_MOST:  # a user may have very many uids, without names
            named = [(uid, name) for uid, name in [*self._names.items()] if name != str(uid)]
            self._names = dict(named)
            if len(self._names) >= KEPT_MOST:
                return None
        came = self._coming[uid] = threading.Event()
        try:
            threading.Thread(
                target=self._look_up, args=(uid, came), name="tpusmi-user", daemon=True
            ).start()
        except RuntimeError:  # no more threads
            self._coming.pop(uid, None)
            return None
        return came

    def _look_up(self, uid: int, came: threading.Event) -> None:
        import pwd

        try:
            self._names[uid] = clean(pwd.getpwuid(uid).pw_name, 64)
        except (KeyError, OverflowError, OSError):
            self._names[uid] = str(uid)
        self._coming.pop(uid, None)
        came.set()


_USER_NAMES = _UserNames()


def _in_time(look_up: Callable[[], Result]) -> Result:
    """The result of a lookup, or its error. Raises TimeoutError when it takes over LOOKUP_S."""
    results: list[Result] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            results.append(look_up())
        except Exception as error:  # noqa: BLE001  # raised again where it is waited for
            errors.append(error)

    try:
        thread = threading.Thread(target=work, name="tpusmi-user", daemon=True)
        thread.start()
    except RuntimeError as error:  # no more threads
        raise TimeoutError(str(error)) from error
    thread.join(LOOKUP_S)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError("the user database has not answered")
    return results[0]


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
