"""The filter language of the process table: a process must match every word. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from tpusmi.text import span

USER = "user="


class About(NamedTuple):
    """What a filter tests of a process."""

    pid: int
    user: str | None
    numbers: Collection[int]
    """The numbers of its devices."""
    stale: bool
    text: str
    """All text shown about it, pid and user as well."""


Test = Callable[[About], bool]


def matcher(text: str) -> Test:
    """A test of a filter: `user=ann` (or its beginning), `pid=12`, `chip=0-3,6`, `stale`, or any
    word in the text; `!word` for the opposite. Case does not matter.
    """
    tests = [_word(word) for word in text.casefold().split()]
    return lambda about: all(test(about) for test in tests)


def user_of(text: str) -> str:
    """The user named in a filter; empty for all users."""
    return next((w[len(USER) :] for w in text.split() if w.casefold().startswith(USER)), "")


def with_user(text: str, user: str) -> str:
    """The filter with that user in place of another; for all users if it is empty."""
    rest = [word for word in text.split() if not word.casefold().startswith(USER)]
    return " ".join([USER + "".join(user.split()), *rest] if user.strip() else rest)


def _word(word: str) -> Test:
    if word.startswith("!"):
        opposite = _word(word[1:])
        # A lone `!` is still being typed.
        return (lambda about: not opposite(about)) if word[1:] else opposite
    name, equals, value = word.partition("=")
    test = _about(name, value) if equals else None
    if word == "stale":
        return lambda about: about.stale
    return test or (lambda about: word in about.text.casefold())


def _about(name: str, value: str) -> Test | None:
    """The test of `name=value`; None for other text, such as `batch=256`."""
    if name == "user":
        return lambda about: (about.user or "").casefold().startswith(value)
    if name not in ("pid", "chip"):
        return None
    if not value:
        return lambda about: True
    spans = [span(part) for part in value.split(",") if part]
    ranges = [span for span in spans if span is not None]
    if not ranges or len(ranges) < len(spans):
        return None
    if name == "pid":
        return lambda about: any(first <= about.pid <= last for first, last in ranges)
    return lambda about: any(a <= number <= b for a, b in ranges for number in about.numbers)
