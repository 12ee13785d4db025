"""How wide the terminal is. Imports nothing that --version does not need."""

from __future__ import annotations

import os


def columns() -> int | None:
    """Columns of the terminal on stdout; None without one, or if it does not report its size.

    Does not use shutil, which no other module here imports.
    """
    try:
        return os.get_terminal_size().columns or None
    except OSError:
        return None


def forget_exported_size() -> None:
    """Remove COLUMNS and LINES from the environment if the terminal on stdout reports its size:
    they may be another terminal's or old, but Textual trusts them more.
    """
    try:
        size = os.get_terminal_size()
    except OSError:
        return
    for name, value in (("COLUMNS", size.columns), ("LINES", size.lines)):
        if value:
            os.environ.pop(name, None)
