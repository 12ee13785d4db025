"""How far back graphs go: as chosen by the user, or as far as there are values. Pure."""

from __future__ import annotations

from math import inf

from tpusmi.text import counted

SPANS_S = (60, 120, 300, 600)
CHOICES = (None, *reversed(SPANS_S))
"""What the user can choose; None is the shortest span that has all values."""


def shortest(seconds: float) -> int:
    """The shortest span of at least that many seconds, or the longest span."""
    return next((span_s for span_s in SPANS_S if seconds <= span_s), SPANS_S[-1])


def next_choice(chosen_s: int | None, shown_s: int) -> int | None:
    """The next choice that shows another span; None, the first choice, after the last one."""
    after = CHOICES[CHOICES.index(chosen_s) + 1 :]
    return next((choice for choice in after if choice != shown_s), None)


def in_words(chosen_s: int | None) -> str:
    """`5 minutes`, or for None that the span is as long as there are values."""
    if chosen_s is None:
        return f"all data, up to {SPANS_S[-1] // 60} minutes"
    return counted(chosen_s // 60, "minute")


class Fit:
    """The shortest span that has all values of one thing.

    For the same thing it only grows: a look back changes no scale. It starts again for another
    thing, and when none of the values drawn before is left.
    """

    def __init__(self) -> None:
        self._thing: object = None
        self._span_s = SPANS_S[0]
        self._until_s = -inf

    def span_s(self, thing: object, first_s: int | None, at_s: float) -> int:
        """The span of graphs that end at `at_s`. `first_s` is the second of its oldest value, or
        None.
        """
        if first_s is None:
            return self._span_s if thing == self._thing else SPANS_S[0]
        needed_s = shortest(int(at_s) - first_s + 1)
        if thing != self._thing or first_s > self._until_s:
            self._thing, self._span_s, self._until_s = thing, needed_s, at_s
        self._span_s = max(self._span_s, needed_s)
        self._until_s = max(self._until_s, at_s)
        return self._span_s
