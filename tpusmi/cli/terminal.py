"""What the terminal can show, and what its owner wants."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import argparse
import os
import sys
from typing import NamedTuple

CELL = (
    "a notebook cell takes no keys: one plain table instead of the dashboard "
    "(tpusmi.show() is a live panel, -m the dashboard all the same)"
)


class Looks(NamedTuple):
    """How to draw."""

    color: bool
    ascii_only: bool


def looks_of(options: argparse.Namespace) -> Looks:
    """A flag beats the environment, the environment beats what the terminal seems to be."""
    ascii_only = options.ascii or not _is_utf8()
    if options.no_color or options.color:
        return Looks(not options.no_color, ascii_only)
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return Looks(sys.stdout.isatty() and not plain and not is_in_cell(), ascii_only)


def _is_utf8() -> bool:
    """Python writes UTF-8 in the C locale too, where the terminal may not show it."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    asked = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return encoding.startswith("utf") and next(filter(None, asked), "") not in ("C", "POSIX")


def why_no_dashboard(is_wanted: bool = False) -> str | None:
    """Why a full screen cannot be drawn, in a sentence; empty when it is not expected; None when it
    can. `is_wanted`: it was asked for by name.
    """
    if not sys.stdout.isatty() or not sys.stdin.isatty():
        return "the dashboard needs a terminal: one plain table instead" if is_wanted else ""
    term = os.environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return f"TERM is {term or 'not set'}: one plain table instead of the dashboard"
    return CELL if not is_wanted and is_in_cell() else None


def is_in_cell() -> bool:
    """True where stdin is the terminal of a notebook cell, into which a person cannot type."""
    if not sys.stdin.isatty():
        return False
    from tpusmi.cli.cell import is_cell

    return is_cell()
