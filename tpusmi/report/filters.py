"""The language of filters: a process must match every word. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import NamedTuple

from tpusmi.model import Process
from tpusmi.report.comparisons import ComparisonError, comparison, values
from tpusmi.report.patterns import PatternError, searcher
from tpusmi.report.rows import IndexedSnapshot
from tpusmi.text import span

USER = "user="
STILL_TYPED = ("", "~", USER, "pid=", "chip=")
"""Words that match every process: the opposite would hide all while a person goes on typing."""
SHOWN_MOST = 20
"""Characters of a wrong word that are repeated."""


class About(NamedTuple):
    """What a filter tests of a process."""

    pid: int
    user: str | None
    numbers: Collection[int]
    """The numbers of its devices."""
    stale: bool
    text: str
    """All text shown about it, pid and user as well."""
    values: Callable[[str], Collection[float]] = lambda name: ()
    """Its known values in the column of that title, in small letters."""


def about(at: IndexedSnapshot, p: Process) -> About:
    """What filters test of a process in a snapshot."""
    numbers = [d.number for d in at.devices_of(p.key)]
    if not numbers and p.holds:  # a holder of which no device is known
        held = {*p.holds}
        numbers = [c.index for c in at.snapshot.chips if held & {*c.nodes}]
    return About(
        pid=p.pid,
        user=p.user,
        numbers=numbers,
        stale=p.is_stale,
        text=f"{p.pid} {p.user or ''} {p.command} {p.phase or ''} {p.state} {p.status}",
        values=lambda name: values(at, p, name),
    )


Test = Callable[[About], bool]


class FilterWordError(ValueError):
    """What is wrong with a word of a filter, in a few words."""


def matcher(text: str) -> Test:
    """A test of a filter: `user=ann` (or its beginning), `pid=12`, `chip=0-3,6`, `stale`, a
    comparison as `mxu<30`, a pattern as `~train.*v2`, or any word in the text; `!word` for the
    opposite. Case does not matter. A word with a mistake is still being typed: it excludes nothing.
    """
    tests = []
    for word in text.split():
        with suppress(FilterWordError):
            tests.append(_word(word))
    return lambda about: all(test(about) for test in tests)


def problem(text: str) -> str:
    """What is wrong with the first word that is not right; empty if all are."""
    return first_problem(text, _word)


def first_problem(text: str, read: Callable[[str], object]) -> str:
    """The same of another language, whose words `read` takes. It raises FilterWordError."""
    for word in text.split():
        try:
            read(word)
        except FilterWordError as error:
            return str(error)
    return ""


def user_of(text: str) -> str:
    """The user named in a filter; empty for all users."""
    return next((w[len(USER) :] for w in text.split() if w.casefold().startswith(USER)), "")


def with_user(text: str, user: str) -> str:
    """The filter with that user in place of another; for all users if it is empty."""
    rest = [word for word in text.split() if not word.casefold().startswith(USER)]
    return " ".join([USER + "".join(user.split()), *rest] if user.strip() else rest)


def _word(word: str) -> Test:
    """The test of a word. Raises FilterWordError."""
    bare = word.lstrip("!")
    test = _pattern(bare[1:]) if bare.startswith("~") else _plain(bare.casefold())
    is_opposite = (len(word) - len(bare)) % 2 == 1
    if not is_opposite or bare.casefold() in STILL_TYPED:
        return test
    return lambda about: not test(about)


def _pattern(text: str) -> Test:
    try:
        is_in = searcher(text)
    except PatternError as error:
        raise FilterWordError(f"~{text[:SHOWN_MOST]}: {error}") from None
    return lambda about: is_in(about.text)


def _plain(word: str) -> Test:
    name, equals, value = word.partition("=")
    test = _named(name, value) if equals else None
    if word == "stale":
        return lambda about: about.stale
    return test or _compared(word) or (lambda about: word in about.text.casefold())


def _compared(word: str) -> Test | None:
    try:
        compared = comparison(word)
    except ComparisonError as error:
        raise FilterWordError(str(error)) from None
    if compared is None:
        return None
    return lambda about: compared.holds(about.values(compared.name))


def _named(name: str, value: str) -> Test | None:
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
