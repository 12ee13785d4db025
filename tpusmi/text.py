"""Text from outside made safe to show: no control characters, no secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "***"

# Patterns stay text until needed: most text is harmless, and compiling them would cost the start.
_SECRET_NAME = (
    r"[\w.-]*(?:token|secrets?|passw(?:or)?d|passphrase|credentials?|api[-_]?keys?|access[-_]?key"
    r"|accountkey|signature|cookie|auth(?:orization)?)|[\w.-]*[_-]key"
    r"|(?:[\w.-]*[_.-])?(?:pwd|pw|pat|pass|jwt|sig|bearer)"
)
_ASSIGNED = rf"(?is)^(-{{0,2}}(?:{_SECRET_NAME})[=:])(.+)$"
_EMBEDDED = (
    rf"(?i)((?<![\w.-])[\\\"']*(?:{_SECRET_NAME})[\\\"'\]]*\s*[=:]\s*)"
    r"([\[{][^\]}]*|\\*\"[^\"]*\"?|'[^']*'?|(?:Bearer |Basic )?[^\s\"',;&}]+)"
)
"""`--env=HF_TOKEN=x`, `{"api_key": "x"}`, `?token=x`"""
_NAMED = rf"(?i)^-{{1,2}}(?:{_SECRET_NAME})$"
_SHAPED = (
    r"\b(?:hf_|ghp_|gho_|ghs_|github_pat_|glpat-|sk-|xox[abp]-|AIza|ya29\.|AKIA)[A-Za-z0-9_./-]{8,}"
    r"|\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"
    r"|(?<=://)[^/\s@]+(?=@)"
)
_HINTS = (
    *("token", "secret", "pass", "credential", "key", "auth", "://", "cookie", "signature"),
    *("pwd", "pw", "pat", "jwt", "sig", "bearer"),
    *("hf_", "gh", "glpat", "sk-", "xox", "aiza", "ya29", "akia", "eyj"),
)
"""Lower-case text, one of which stands in everything the patterns can match."""


def clean(text: str, most: int = 4096) -> str:
    """The text, cut to `most` characters, with a space for what cannot be printed.

    That is terminal escapes, line breaks, text-direction overrides, and undecodable bytes.
    """
    cut = text[:most]
    if not cut.isprintable():
        cut = re.sub("\0+", " ", "".join(c if c.isprintable() else "\0" for c in cut))
    return cut.strip()


def command_line(argv: Iterable[str], most: int = 1024) -> str:
    """The arguments as one line, secrets hidden, control characters removed."""
    return clean(" ".join(without_secrets(argv)), most)


def without_secrets(argv: Iterable[str]) -> list[str]:
    """The arguments with what looks like a secret hidden."""
    words: list[str] = []
    hide_next = False
    for word in argv:
        if hide_next and not word.startswith("-"):
            words.append(HIDDEN)
            hide_next = False
            continue
        hide_next = _may_hide(word) and re.match(_NAMED, word) is not None
        words.append(redacted(word))
    return words


def redacted(word: str) -> str:
    """One argument or environment value with what looks like a secret hidden."""
    if not _may_hide(word):
        return word
    assigned = re.sub(_ASSIGNED, rf"\g<1>{HIDDEN}", word)
    return re.sub(_SHAPED, HIDDEN, re.sub(_EMBEDDED, rf"\g<1>{HIDDEN}", assigned))


def _may_hide(word: str) -> bool:
    lower = word.lower()
    return any(hint in lower for hint in _HINTS)
