"""Answers of Prometheus' HTTP API, read series by series: a body of many megabytes never becomes
objects as a whole. Trusts none of it.

https://prometheus.io/docs/prometheus/latest/querying/api/
"""

from __future__ import annotations

import codecs
import json
import math
import re
import time
from collections.abc import Iterator
from typing import Any

from tpusmi.fleet.samples import SeriesSample
from tpusmi.text import clean

ELEMENT_CHARACTERS = 1 << 19
"""The longest series of an answer that is sure to be read."""
LABELS_MOST = 64
NOTES_MOST, TEXT_CHARACTERS = 5, 4000
_BETWEEN = '},{"metric"'
SOME_CHARACTERS = 1 << 16
_SPACES = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)


class QueryAnswerError(ValueError):
    """What is wrong with an answer, in a sentence that begins with `it`."""


class QueryAnswer:
    """One answer. `series` must be read to its end, then the rest is known."""

    def __init__(self, body: bytes, until_s: float = math.inf) -> None:
        """`until_s` is of time.monotonic(): what has not been read by then is not read."""
        self._read = _Reader(body, until_s)
        self.status: object = None
        self.error = ""
        """What the server says went wrong."""
        self.notes: list[str] = []
        """Its warnings and infos."""
        self.unreadable = 0
        """Series of a wrong type."""

    def series(self) -> Iterator[Any]:
        """The elements of the result. Raises QueryAnswerError, also after the last one."""
        try:
            yield from self._series()
        except (ValueError, RecursionError) as error:
            if isinstance(error, QueryAnswerError):
                raise
            raise QueryAnswerError("its answer is not the JSON of Prometheus") from None
        if self.status != "success":
            raise QueryAnswerError(f"it cannot answer: {self.error or 'it does not say why'}")

    def samples(self, name: str | None) -> Iterator[SeriesSample]:
        """The result as samples of a series with that name, None for the name that each has.
        Values that are not finite numbers are left out. Raises QueryAnswerError.
        """
        for element in self.series():
            sample = _sample(element, name)
            if sample is None:
                self.unreadable += 1
            elif math.isfinite(sample.value):
                yield sample

    def scalar(self) -> float | None:
        """The number of a scalar, or of the one sample that VictoriaMetrics makes of it; None for
        another answer. Raises QueryAnswerError.
        """
        first, count = [], 0
        for element in self.series():
            count += 1
            first += [element][: count < 3]
        if count == 1:
            sample = _sample(first[0], "")
            return None if sample is None else sample.value
        return _number(first[1]) if count == 2 else None

    def _series(self) -> Iterator[Any]:
        for key in self._read.members():
            if key == "data":
                yield from self._data()
                continue
            value = self._read.value()
            if key == "status":
                self.status = value
            elif key == "error":
                self.error = _text(value)
            elif key in ("warnings", "infos"):
                self._note(value)
            elif key == "isPartial" and value is True:  # VictoriaMetrics
                self._note(["the answer is partial"])

    def _data(self) -> Iterator[Any]:
        if self._read.next() != "{":
            self._read.value()
            return
        for key in self._read.members():
            if key == "result" and self._read.next() == "[":
                yield from self._read.elements()
            else:
                self._read.value()

    def _note(self, value: object) -> None:
        texts = map(_text, value) if isinstance(value, list) else ()
        self.notes += [one for one in texts if one and one not in self.notes]
        del self.notes[NOTES_MOST:]


def _text(value: object) -> str:
    return clean(value, TEXT_CHARACTERS) if isinstance(value, str) else ""


def _sample(element: Any, name: str | None) -> SeriesSample | None:
    try:
        labels, pair = element["metric"], element["value"]
        number = _number(pair[1]) if type(pair) is list else None
        own = labels["__name__"] if name is None else name
    except (TypeError, LookupError):
        return None
    if type(labels) is not dict or len(labels) > LABELS_MOST or number is None:
        return None
    for value in labels.values():
        if type(value) is not str:
            return None
    return SeriesSample(own, labels, number) if type(own) is str else None


def _number(text: object) -> float | None:
    """The number in a text; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _end_of_spaces(text: str, at: int) -> int:
    match = _SPACES.match(text, at)
    return at if match is None else match.end()


class _Reader:
    """JSON, of which only a piece is a text at a time."""

    def __init__(self, body: bytes, until_s: float) -> None:
        self._body = memoryview(body)
        self._until_s = until_s
        self._is_usual = True
        """Written as Prometheus writes it, as far as it has been read."""
        self._decode = codecs.getincrementaldecoder("utf-8")("strict").decode
        self._bytes_at = 0
        self._text, self._at = "", 0

    def next(self) -> str:
        """The next character that is not a space; empty at the end."""
        while True:
            if len(self._text) - self._at < ELEMENT_CHARACTERS:
                self._fill()
            self._at = _end_of_spaces(self._text, self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if self._bytes_at >= len(self._body):
                return ""

    def value(self) -> Any:
        """The next value. Raises ValueError, also for one that is too long."""
        self.next()
        value, self._at = _DECODER.raw_decode(self._text, self._at)
        return value

    def members(self) -> Iterator[str]:
        """The keys of the next value, an object. After each the reader is at its value."""
        for _ in self._items("{", "}"):
            key = self.value()
            if not isinstance(key, str) or self.next() != ":":
                raise ValueError
            self._at += 1
            yield key

    def elements(self) -> Iterator[Any]:
        """The elements of the next value, an array."""
        for _ in self._items("[", "]"):
            yield from self._some() or (self.value(),)

    def _some(self) -> list[Any]:
        """The next series, up to some thousand characters of them at once: that is twice as fast.
        Empty where they are not as Prometheus writes them. No string has _BETWEEN in it: its quote
        would end the string.
        """
        if not self._is_usual:
            return []
        end = self._text.rfind(_BETWEEN, self._at, self._at + SOME_CHARACTERS) + 1
        try:
            elements: list[Any] = _DECODER.decode(f"[{self._text[self._at : end]}]") if end else []
        except (ValueError, RecursionError):
            elements = []
        if not elements:
            # To look again at each element would take hours.
            self._is_usual = False
            return []
        self._at = end
        return elements

    def _items(self, first: str, last: str) -> Iterator[None]:
        if self.next() != first:
            raise ValueError
        self._at += 1
        if self.next() == last:
            self._at += 1
            return
        while True:
            yield
            if time.monotonic() > self._until_s:
                raise QueryAnswerError("its answer takes too long to read")
            c = self.next()
            self._at += 1
            if c == last:
                return
            if c != ",":
                raise ValueError

    def _fill(self) -> None:
        """Have a whole element ahead, as far as there are bytes."""
        if self._bytes_at >= len(self._body):
            return
        end = self._bytes_at + 2 * ELEMENT_CHARACTERS
        more = self._decode(self._body[self._bytes_at : end], end >= len(self._body))
        self._bytes_at = end
        self._text, self._at = self._text[self._at :] + more, 0
