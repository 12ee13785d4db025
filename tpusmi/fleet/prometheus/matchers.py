"""Selectors of series as Prometheus has them, `job="tpusmi",slice=~"pod-.*"`: what a user writes
after `--match`, checked, and what is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tpusmi.text import clean

TEXT_MOST = 1000
"""Characters of all matchers together: they are sent in the first line of a request."""
MATCHERS_MOST = 20
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_OPERATOR = re.compile(r"=~|!~|!=|=")
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`]*`')
_BARE = re.compile(r"(?![=~])[^\s,{}\"'`\\]+")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}


class Matcher(NamedTuple):
    """What a label must be, or must not be."""

    label: str
    operator: str
    """One of `=`, `!=`, `=~` and `!~`."""
    value: str

    def __str__(self) -> str:
        return f"{self.label}{self.operator}{quoted(self.value)}"


def matchers(texts: Iterable[str]) -> tuple[Matcher, ...]:
    """The matchers of all these texts: a series must fit each of them. The braces around a text and
    the quotes around a simple value can be left out. Raises ValueError with a sentence.
    """
    texts = [*texts]
    if sum(map(len, texts)) > TEXT_MOST:
        raise ValueError(f"matchers must have at most {TEXT_MOST} characters in all")
    some = [one for text in texts for one in _of_text(text)]
    if len(some) > MATCHERS_MOST:
        raise ValueError(f"at most {MATCHERS_MOST} matchers can be used")
    return tuple(some)


def exactly(labels: Mapping[str, str]) -> tuple[Matcher, ...]:
    """Matchers that only series with these labels fit, less names that would need quotes."""
    return tuple(Matcher(n, "=", v) for n, v in labels.items() if _LABEL.fullmatch(n) and v)


def selector(name: str, some: Iterable[Matcher]) -> str:
    """All series with that name that fit: `up{job="tpusmi"}`."""
    text = ",".join(map(str, some))
    return f"{name}{{{text}}}" if text else name


def quoted(value: str) -> str:
    """The value as a text of PromQL, in which no character of it can end the text."""
    return '"' + "".join(_escape(c) for c in value) + '"'


def _escape(c: str) -> str:
    if c in '"\\':
        return f"\\{c}"
    if c >= " " and c != "\x7f" and not "\ud800" <= c <= "\udfff":
        return c
    return f"\\x{ord(c):02x}" if ord(c) < 0x80 else "\ufffd"


def _of_text(text: str) -> list[Matcher]:
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    elif re.match(r"[\w:]+\s*\{", inner):
        raise ValueError(f"{_named(text)}: the name of a series cannot be chosen")
    some, at = [], 0
    while at < len(inner):
        one, at = _one(inner, at, text)
        some.append(one)
    if not some:
        raise ValueError(f'{_named(text)} has no matcher such as slice="pod-7"')
    return some


def _one(inner: str, at: int, text: str) -> tuple[Matcher, int]:
    """The matcher at that place, and where the next one begins."""
    label = _LABEL.match(inner, at)
    operator = label and _OPERATOR.match(inner, _after_space(inner, label.end()))
    if label is None or operator is None:
        raise ValueError(f'{_named(text)} is not a matcher such as slice="pod-7"')
    if label[0] == "__name__":
        raise ValueError(f"{_named(text)}: the name of a series cannot be chosen")
    start = _after_space(inner, operator.end())
    value = _QUOTED.match(inner, start) or _BARE.match(inner, start)
    if value is None:
        raise ValueError(f"{_named(text)}: the value of {label[0]} must be in quotes")
    end = _after_space(inner, value.end())
    if end < len(inner) and inner[end] != ",":
        raise ValueError(f"{_named(text)}: a comma is missing after the value of {label[0]}")
    one = Matcher(label[0], operator[0], _plain(value[0], text))
    return one, _after_space(inner, end + 1)


def _plain(value: str, text: str) -> str:
    """The value without its quotes and escapes."""
    if value[0] == "`":
        return value[1:-1]
    if value[0] not in "\"'":
        return value

    def character(match: re.Match[str]) -> str:
        letter = match[1]
        if len(letter) > 1:
            return chr(int(letter[1:], 16))
        if letter not in _ESCAPES:
            raise ValueError(f"{_named(text)}: \\{letter} is not an escape of PromQL")
        return _ESCAPES[letter]

    return _ESCAPED.sub(character, value[1:-1])


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _named(text: str) -> str:
    return repr(clean(text, 60))
