"""The filter language of the process table: words that must all be true of a process. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

USER = "user="


class About(NamedTuple):
    """What a filter looks at in a process."""

    pid: int
    user: str | None
    numbers: Collection[int]
    """Of its devices."""
    stale: bool
    text: str
    """Everything else that is shown of it, pid and user as well."""


Test = Callable[[About], bool]


def matcher(text: str) -> Test:
    """Whether a process passes: `user=ann` (or how it begins), `pid=12`, `chip=0-3,6`, `stale`, any
    other word in its text; `!word` for the opposite. Upper and lower case are the same.
    """
    tests = [_word(word) for word in text.casefold().split()]
    return lambda about: all(test(about) for test in tests)


def user_of(text: str) -> str:
    """The user that a filter asks for; empty for everybody."""
    return next((w[len(USER) :] for w in text.split() if w.casefold().startswith(USER)), "")


def with_user(text: str, user: str) -> str:
    """The filter for that user instead of another; for everybody where it is empty."""
    rest = [word for word in text.split() if not word.casefold().startswith(USER)]
    return " ".join([USER + "".join(user.split()), *rest] if user.strip() else rest)


def _word(word: str) -> Test:
    if word.startswith("!"):
        opposite = _word(word[1:])
        # A lone `!` is one that is still being typed.
        return (lambda about: not opposite(about)) if word[1:] else opposite
    name, equals, value = word.partition("=")
    test = _about(name, value) if equals else None
    if word == "stale":
        return lambda about: about.stale
    return test or (lambda about: word in about.text.casefold())


def _about(name: str, value: str) -> Test | None:
    """The test of `name=value`; None for what is only a text, as `batch=256`."""
    if name == "user":
        return lambda about: (about.user or "").casefold().startswith(value)
    if name not in ("pid", "chip"):
        return None
    if not value:
        return lambda about: True
    spans = [_span(part) for part in value.split(",") if part]
    known = [span for span in spans if span is not None]
    if not known or len(known) < len(spans):
        return None
    if name == "pid":
        return lambda about: any(first <= about.pid <= last for first, last in known)
    return lambda about: any(a <= number <= b for a, b in known for number in about.numbers)


def _span(text: str) -> tuple[int, int] | None:
    """`3` or `0-3`; None for anything else, and `0-` as it is typed is `0`."""
    first, _, last = text.partition("-")
    if not _is_number(first) or (last and not _is_number(last)):
        return None
    return int(first), int(last or first)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
