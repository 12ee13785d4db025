"""Makes text from outside safe to show: no control characters, no secrets. Also durations of a
minute or more, counts and plurals.

Text is cut before anything reads it, and every pattern takes linear time: a stranger may have
written the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

HIDDEN = "***"
WORD_MOST, WORDS_MOST, ARGV_MOST = 4096, 4096, 16_384
"""How much is read: characters of one argument, arguments, characters of all arguments."""

# Patterns stay text until needed: most text is harmless, and compiling slows down the start.
_ENDINGS = (
    "token", "secret", "secrets", "password", "passwd", "passphrase", "credential",
    "credentials", "apikey", "apikeys", "api_keys", "api-keys", "accesskey", "accountkey",
    "_key", "-key", "signature", "cookie", "auth", "authorization",
)  # fmt: skip
"""The name of a secret ends in one of these."""
_LAST_PARTS = frozenset(("pwd", "pw", "pat", "pass", "jwt", "sig", "bearer"))
"""Or the last part of the name is one of these: `db.pwd`, but not `bypass`."""
_ASSIGNMENT = r"(?<![\w.-])([\w.-]+)([\\\"'\]]*\s*[=:])\s*"
"""A name and the characters before its value: `--env=`, `"api_key": `, `?token=`"""
_VALUE = (
    r"(?i)[\[{][^\]}]*|\\*\"[^\"]*\"?|'[^']*'?|(?:(?:bearer|basic|digest|token) )?[^\s\"',;&}]+"
)
_PREFIXED = (
    r"\b(?:hf_|ghp_|gho_|ghs_|github_pat_|glpat-|sk-|xox[abp]-|AIza|ya29\.|AKIA|eyJ)[A-Za-z0-9_./-]"
)
_SHAPED = rf"(?<=://)[^/\s@]+(?=@)|{_PREFIXED}{{8,}}"
_CUT_SHORT = rf"{_PREFIXED}{{0,7}}$|(?<=://)[^/\s@]+$"
"""A possible beginning of such a secret, at the end of a cut text."""
_HINTS = (
    "token", "secret", "pass", "credential", "key", "auth", "://", "cookie", "signature",
    "pwd", "pw", "pat", "jwt", "sig", "bearer",
    "hf_", "gh", "glpat", "sk-", "xox", "aiza", "ya29", "akia", "eyj",
)  # fmt: skip
"""Any text that the patterns can match contains one of these, in lower case."""


def counted(number: int, what: str, several: str = "") -> str:
    """`1 device`, `2 devices`; `several` is an irregular plural."""
    return f"{number} {noun(number, what, several)}"


NUMBER_DIGITS_MOST = 9


def span(text: str) -> tuple[int, int] | None:
    """The range `3` or `0-3`, and `0-` is `0` while it is typed; None for anything else."""
    first, _, last = text.partition("-")
    if not _is_number(first) or (last and not _is_number(last)):
        return None
    return int(first), int(last or first)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS_MOST


def duration(seconds: float) -> str:
    """A measured time: `12.3 ms`, `4.20 s`, and from a minute on as `elapsed`."""
    if seconds < 5e-9:  # less than the last digit of the smallest unit
        return "0 s"
    for below, factor, unit in ((0.9995e-3, 1e6, "µs"), (0.9995, 1e3, "ms"), (59.95, 1.0, "s")):
        if seconds < below:
            return f"{three_digits(seconds * factor)} {unit}"
    return elapsed(round(seconds))


def three_digits(value: float) -> str:
    """A number of at least one with three digits: `4.20`, `12.3`, `240`."""
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def elapsed(seconds: float) -> str:
    """A time in its two largest units: `59s`, `2m05s`, `12m`, `3h05m`, `12d03h`."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    if minutes < 10:
        return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes}m"
    return f"{hours}h{minutes:02}m" if hours < 24 else f"{hours // 24}d{hours % 24:02}h"


def per_minute(bytes_per_s: float) -> str:
    """What comes together in a minute: `390 MiB`, `0.10 MiB`, `2.5 GiB`."""
    mib = 60 * bytes_per_s / (1 << 20)
    if mib >= 1023.5:
        return f"{mib / 1024:.1f} GiB"
    if 0 < mib < 0.005:
        return "<0.01 MiB"
    return f"{mib:.{0 if mib >= 99.5 or not mib else 1 if mib >= 0.95 else 2}f} MiB"


def noun(number: float, what: str, several: str = "") -> str:
    """`device` for 1, `devices` for any other number."""
    return what if number == 1 else several or f"{what}s"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as `0-3,8`; empty for none."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def whole_number(text: str) -> int | None:
    """The number that the text is in plain decimal digits; None for any other text, and for a
    number longer than any of the kernel's: Python refuses to read very long ones.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None


def clean(text: str, most: int = 4096) -> str:
    """The text, cut to `most` characters, with a space for characters that cannot be printed.

    These are terminal escapes, line breaks, text-direction overrides, and undecodable bytes.
    """
    cut = text[:most]
    if not cut.isprintable():
        cut = re.sub("\0+", " ", "".join(c if c.isprintable() else "\0" for c in cut))
    return cut.strip()


def clean_or_none(value: object, most: int) -> str | None:
    """A text from outside, made safe; None for one that is empty then, and for any other value."""
    return (clean(value, most) or None) if isinstance(value, str) else None


def command_line(argv: Iterable[str], most: int = 1024) -> str:
    """The arguments as one line, secrets hidden, control characters removed."""
    words, left = [], most
    for word in _words(argv):
        words.append(word)
        left -= len(word) + 1
        if left < 0:
            break
    return clean(" ".join(words), most)


def without_secrets(argv: Iterable[str]) -> list[str]:
    """The arguments, with likely secrets hidden: the first WORDS_MOST of them, each up to
    WORD_MOST characters, and up to ARGV_MOST characters in all.
    """
    return [*_words(argv)]


def redacted(word: str) -> str:
    """One argument or environment value, up to WORD_MOST characters of it, with likely secrets
    hidden.
    """
    return _redacted(word[:WORD_MOST], len(word) > WORD_MOST)


def _words(argv: Iterable[str]) -> Iterator[str]:
    """The arguments one by one, cut, with likely secrets hidden."""
    hide_next = False
    for word, is_cut in _cut(argv):
        if hide_next and not word.startswith("-"):
            hide_next = False
            yield HIDDEN
        else:
            hide_next = _is_flag_of_secret(word, is_cut)
            yield _redacted(word, is_cut)


def _cut(argv: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """The beginning of each argument, and whether there was more of it."""
    left = ARGV_MOST
    for number, word in enumerate(argv):
        most = min(left, WORD_MOST)
        if number >= WORDS_MOST or most <= 0:
            return
        yield word[:most], len(word) > most
        left -= len(word) + 1


def _redacted(word: str, is_cut: bool) -> str:
    if not _may_hide(word):
        return word
    visible = re.sub(_SHAPED, HIDDEN, _without_values(word))
    return re.sub(_CUT_SHORT, HIDDEN, visible) if is_cut else visible


def _without_values(word: str) -> str:
    """The word, with a mark instead of each value that is assigned to the name of a secret."""
    parts, at = [], 0
    for name in re.finditer(_ASSIGNMENT, word):
        if name.start() < at or not _names_secret(name[1]):
            continue
        if name.start() == 0 and len(name[2]) == 1:  # the word is one assignment: hide the rest
            return word[: name.end(2)] + HIDDEN if name.end(2) < len(word) else word
        value = re.compile(_VALUE).match(word, name.end())
        if value is not None:
            parts += [word[at : name.end()], HIDDEN]
            at = value.end()
    return "".join(parts) + word[at:]


def _is_flag_of_secret(word: str, is_cut: bool) -> bool:
    """True for `--token`: the next argument is the secret. Also for any flag that was cut."""
    if not word.startswith("-") or not (is_cut or _may_hide(word)):
        return False
    name = re.fullmatch(r"([\w.-]+)\s*", word)
    return name is not None and (is_cut or _names_secret(name[1]))


def _names_secret(name: str) -> bool:
    lower = name.lower()
    last_part = lower.replace("-", "_").replace(".", "_").rpartition("_")[2]
    return lower.endswith(_ENDINGS) or last_part in _LAST_PARTS


def _may_hide(word: str) -> bool:
    lower = word.lower()
    return any(hint in lower for hint in _HINTS)
