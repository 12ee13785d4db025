"""How far back graphs go: as far as a person has chosen, or as far as there is anything. Pure."""

from __future__ import annotations

from math import inf

from tpusmi.text import counted

SPANS_S = (60, 120, 300, 600)
CHOICES = (None, *reversed(SPANS_S))
"""What a person can choose; None is the shortest span that has all there is."""


def shortest(seconds: float) -> int:
    """The shortest span that has room for so many seconds; the longest where none has."""
    return next((span_s for span_s in SPANS_S if seconds <= span_s), SPANS_S[-1])


def next_choice(chosen_s: int | None, shown_s: int) -> int | None:
    """The choice after that one. Every key press but the last shows another span than before."""
    after = CHOICES[CHOICES.index(chosen_s) + 1 :]
    return next((choice for choice in after if choice != shown_s), None)


def in_words(chosen_s: int | None) -> str:
    """`5 minutes`; of no choice that the span is as long as it must be."""
    if chosen_s is None:
        return f"all there is, up to {SPANS_S[-1] // 60} minutes"
    return counted(chosen_s // 60, "minute")


class Fit:
    """The shortest span that has all there is of one thing.

    For the same thing it only grows: a look back changes no scale. It begins anew for another
    thing, and when nothing is left of all that was drawn before.
    """

    def __init__(self) -> None:
        self._thing: object = None
        self._span_s = SPANS_S[0]
        self._until_s = -inf

    def span_s(self, thing: object, first_s: int | None, at_s: float) -> int:
        """The span of graphs up to `at_s`. `first_s` is the second of the oldest value of that
        thing, None where there is none.
        """
        if first_s is None:
            return self._span_s if thing == self._thing else SPANS_S[0]
        needed_s = shortest(int(at_s) - first_s + 1)
        if thing != self._thing or first_s > self._until_s:
            self._thing, self._span_s, self._until_s = thing, needed_s, at_s
        self._span_s = max(self._span_s, needed_s)
        self._until_s = max(self._until_s, at_s)
        return self._span_s
