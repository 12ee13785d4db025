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


def forget_exported_size() -> None:
    """Take COLUMNS and LINES out of the environment where the terminal on stdout tells its size:
    they are of another one, or of before, and Textual believes them first.
    """
    try:
        size = os.get_terminal_size()
    except OSError:
        return
    for name, told in (("COLUMNS", size.columns), ("LINES", size.lines)):
        if told:
            os.environ.pop(name, None)
