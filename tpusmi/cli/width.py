"""How wide the terminal is. Imports nothing that --version has no use for."""

from __future__ import annotations

import os


def columns() -> int | None:
    """Of the terminal on stdout; None where there is none, or one that does not say.

    Not with shutil, whose import nobody else here needs.
    """
    try:
        return os.get_terminal_size().columns or None
    except OSError:
        return None
