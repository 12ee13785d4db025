"""Text from outside made safe to show: no control characters, no secrets."""

from __future__ import annotations

import re
from typing import Iterable

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
"""Terminal escapes, line breaks, text-direction overrides, and what is left of undecodable bytes."""

_SECRET_NAME = (
    r"[\w.-]*(?:token|secrets?|passw(?:or)?d|passphrase|credentials?|api[-_]?key|access[-_]?key|auth)"
    r"|[\w.-]*[_-]key"
)
_ASSIGNED = re.compile(rf"^(-{{0,2}}(?:{_SECRET_NAME})[=:])(.+)$", re.IGNORECASE | re.DOTALL)
_NAMED = re.compile(rf"^-{{1,2}}(?:{_SECRET_NAME})$", re.IGNORECASE)
_SHAPED = re.compile(
    r"\b(?:hf_|ghp_|gho_|ghs_|github_pat_|glpat-|sk-|xox[abp]-|AIza|ya29\.|AKIA)[A-Za-z0-9_./-]{8,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
HIDDEN = "***"


def clean(text: str, most: int = 4096) -> str:
    """The text with control characters replaced by a space, cut to `most` characters."""
    return _CONTROL.sub(" ", text[: most + 1])[:most].strip()


def command_line(argv: Iterable[str], most: int = 1024) -> str:
    """The arguments as one line, secrets hidden, control characters removed."""
    words: list[str] = []
    hide_next = False
    for word in argv:
        if hide_next and not word.startswith("-"):
            words.append(HIDDEN)
            hide_next = False
            continue
        hide_next = bool(_NAMED.match(word))
        words.append(redacted(word))
    return clean(" ".join(words), most)


def redacted(word: str) -> str:
    """One argument or environment value with what looks like a secret hidden."""
    word = _ASSIGNED.sub(rf"\g<1>{HIDDEN}", word)
    return _SHAPED.sub(HIDDEN, word)
