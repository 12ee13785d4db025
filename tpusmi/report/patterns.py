"""Patterns in a filter, such as `~train.*v2`: a part of regular expressions that is never slow.

Python's `re` tries one way to match after the other, which can take forever on a text that another
user has chosen. So a pattern has no groups, and is cut into pieces at each `.*`: a piece is found
by its first end, and the next piece after that. A piece has few repetitions, of few characters.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import zip_longest

PATTERN_MOST, TEXT_MOST = 80, 600
"""Characters of a pattern, and of a text: what is longer is cut."""
REPEATED_MOST = (1, 200, 20)
"""How often characters with `*` or `+` may be repeated, by how many of those a piece has."""
OPTIONAL_MOST = 2
"""Characters with `?` in a piece."""
TEXTS_MOST = 1000
"""Texts whose result is kept: a table asks again at each tick."""
_LETTERS = "dwsDWS"
_QUANTIFIERS = {"*": "{0,N}?", "+": "{1,N}?", "?": "??"}
_CLASS = re.compile(r"\[\^?(?:[^\[\]\\]|\\[dws.\-]){1,40}\]")


class PatternError(ValueError):
    """What is wrong with a pattern, in a few words."""


@lru_cache(maxsize=32)
def searcher(pattern: str) -> Callable[[str], bool]:
    """A test that is true of texts in which the pattern is found, in upper or lower case. Raises
    PatternError.
    """
    if len(pattern) > PATTERN_MOST:
        raise PatternError(f"a pattern has at most {PATTERN_MOST} characters")
    ways = [_way(way) for way in _alternatives(pattern)]

    @lru_cache(maxsize=TEXTS_MOST)
    def matches(text: str) -> bool:
        return any(way(text) for way in ways)

    return matches


def _way(tokens: list[str]) -> Callable[[str], bool]:
    """The test of one alternative. Of a long text it looks at the end that it is anchored at."""
    at_start, at_end = tokens[:1] == ["^"], tokens[-1:] == ["$"]
    pieces = [*_pieces(tokens[at_start : len(tokens) - at_end])]
    if at_end:
        pieces[-1] += r"\Z"
    compiled = [_compiled(piece) for piece in pieces]

    def matches(text: str) -> bool:
        if len(text) > TEXT_MOST and at_start and at_end:
            return False
        text = text[-TEXT_MOST:] if at_end else text[:TEXT_MOST]
        place = 0
        for n, piece in enumerate(compiled):
            end = _first_end(piece, text, place, at_start and n == 0)
            if end is None:
                return False
            place = end
        return True

    return matches


def _first_end(piece: re.Pattern[str], text: str, start: int, is_fixed: bool) -> int | None:
    """Where the match that ends first ends; None without one."""
    match = piece.match(text, start) if is_fixed else piece.search(text, start)
    if match is None or is_fixed:
        return None if match is None else match.end()
    end = match.end()
    for later in range(match.start() + 1, end):
        if (other := piece.match(text, later)) is not None:
            end = min(end, other.end())
    return end


def _compiled(piece: str) -> re.Pattern[str]:
    try:
        return re.compile(piece, re.IGNORECASE | re.DOTALL)
    except re.error as error:
        raise PatternError(str(error)[:40]) from None


def _pieces(tokens: list[str]) -> Iterator[str]:
    """The tokens between `.*`, as regular expressions. `.+` is `.` and `.*`."""
    piece: list[str] = []
    for token, after in zip_longest(tokens, tokens[1:], fillvalue=""):
        if token == "." and after in ("*", "+"):
            yield _piece([*piece, "."] if after == "+" else piece)
            piece = []
        elif token not in _QUANTIFIERS:
            piece.append(token + _QUANTIFIERS.get(after, ""))
    yield _piece(piece)


def _piece(parts: list[str]) -> str:
    repeats = sum(part.endswith("N}?") for part in parts)
    if repeats >= len(REPEATED_MOST):
        raise PatternError(f"at most {len(REPEATED_MOST) - 1} of * and + between two .*")
    if sum(part.endswith("??") for part in parts) > OPTIONAL_MOST:
        raise PatternError(f"at most {OPTIONAL_MOST} ? between two .*")
    most = str(REPEATED_MOST[repeats])
    return "".join(part[:-3] + most + part[-2:] if part.endswith("N}?") else part for part in parts)


def _alternatives(pattern: str) -> list[list[str]]:
    """The tokens of each alternative: characters, classes, quantifiers, `^` first and `$` last."""
    ways: list[list[str]] = [[]]
    place = 0
    while place < len(pattern):
        token, place = _token(pattern, place)
        if token == "|":
            ways.append([])
        else:
            _check(ways[-1], token)
            ways[-1].append(token)
    return ways


def _check(before: list[str], token: str) -> None:
    """Raises PatternError for a token that cannot follow those."""
    if before[-1:] == ["$"] or (token == "^" and before):
        raise PatternError(r"^ begins and $ ends a pattern; \^ and \$ are the characters")
    if token in _QUANTIFIERS and (not before or before[-1] in (*_QUANTIFIERS, "^")):
        raise PatternError(f"{token} needs one character before it")


def _token(pattern: str, place: int) -> tuple[str, int]:
    """The token there, and where the next one is."""
    character = pattern[place]
    if character == "\\":
        escaped = pattern[place + 1 : place + 2]
        if not escaped or (escaped.isalnum() and escaped not in _LETTERS):
            raise PatternError(r"after \ only d, w, s or a sign")
        return (f"\\{escaped}" if escaped in _LETTERS else re.escape(escaped)), place + 2
    if character == "[":
        match = _CLASS.match(pattern, place)
        if match is None:
            raise PatternError("[ needs characters and a ]")
        return match[0], match.end()
    if character in "(){}":
        raise PatternError(f"{character} is not supported; \\{character} is the character")
    if character in ".^$|" or character in _QUANTIFIERS:
        return character, place + 1
    return re.escape(character), place + 1
