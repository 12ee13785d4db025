"""Who a user is."""

from __future__ import annotations

import os
from functools import lru_cache

from tpusmi.text import clean


@lru_cache(maxsize=256)
def user_name(uid: int) -> str:
    """The name of a user; the number where nobody has it."""
    import pwd

    try:
        return clean(pwd.getpwuid(uid).pw_name, 64)
    except (KeyError, OverflowError):
        return str(uid)


def user_before_sudo() -> int | None:
    """Whose sudo has made us root; None without one."""
    uid = os.environ.get("SUDO_UID", "")
    return int(uid) if os.geteuid() == 0 and uid.isdecimal() else None
