"""Which name a wrong one was meant to be. Pure."""

from __future__ import annotations

from collections.abc import Iterable

COMPARED_MOST = 64
"""Characters of a wrong name that are compared: it may be any text."""


def nearest(name: str, names: Iterable[str]) -> str:
    """The name that is most like this one, in upper or lower case; empty if none is like it."""
    from difflib import get_close_matches  # here, because most names are right

    by_lower: dict[str, str] = {}
    for candidate in names:
        by_lower.setdefault(candidate.lower(), candidate)
    similar = get_close_matches(name[:COMPARED_MOST].lower(), by_lower, 1)
    return by_lower[similar[0]] if similar else ""
