"""A notice as lines: what is wrong, at the right since when, then what to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tpusmi.model import Notice
from tpusmi.report import concerns
from tpusmi.tui.draw.look import Look, Row, split, width_of

ANY = 1000
"""More lines than any notice has."""
AGE_ROOM = len(" for 12d03h")
"""Columns that are kept for the age, known or not: nothing moves as it ticks."""
AGES_FROM = 60
"""Narrower screens have no ages."""
LEAST_WHAT = 16
"""The least columns of what is wrong beside its advice, on one line."""
BREAK = 6
"""Columns that a line loses, on average, where it ends with a word."""
_MARK, _INDENT, _ARROW = f"{concerns.MARK} ", "  ", "→ "


def notice_rows(
    look: Look,
    n: Notice,
    width: int,
    most: int = ANY,
    *,
    with_pid: bool = False,
    with_age: bool = True,
) -> list[Row]:
    """The notice in at most that many lines. Where they are too few, what is wrong is shortened
    first; the advice is not. `with_pid` names the process, where the page does not.
    """
    if most <= 0:
        return []
    text = concerns.what(n) if with_pid else n.message
    age = concerns.age(n) if with_age and width >= AGES_FROM else ""
    room = (room_beside_age(width) if with_age else width) - len(_MARK)
    advice = f" {_ARROW}{n.advice}" if n.advice else ""
    if cell_len(text + advice) <= room:
        return [_first(look, text, advice, age, width)]
    below = advice_rows(look, n, width)
    if len(below) >= most:
        return _run_on(look, text, advice, age, (width, room, most))
    first, *more = _cut(look, split(text, room), most - len(below), room)
    rest = (look.line((_INDENT, "plain"), (line, "warn")) for line in more)
    return [_first(look, first, "", age, width), *rest, *below]


def fits_a_line(n: Notice, width: int) -> bool:
    """Whether its advice fits a line of that width, without an age, beside what is wrong."""
    room = width - len(_MARK) - len(" " + _ARROW) - cell_len(n.advice)
    return not n.advice or room >= LEAST_WHAT


def advice_rows(look: Look, n: Notice, width: int) -> list[Row]:
    """What to do, in lines of their own; none without advice."""
    if not n.advice:
        return []
    lines = split(n.advice, width - len(_INDENT + _ARROW))
    marks = (_INDENT + _ARROW, *[_INDENT * 2] * len(lines))
    return [look.line((m, "dim"), (line, "plain")) for m, line in zip(marks, lines, strict=False)]


def below_verdict(look: Look, n: Notice, width: int) -> list[Row]:
    """What to do about a holder, and since when, below the verdict on it, which says why."""
    rows = advice_rows(look, n, room_beside_age(width))
    return aged(look, rows, n, width)


def room_beside_age(width: int) -> int:
    """The columns that a first line has beside an age."""
    return width - AGE_ROOM if width >= AGES_FROM else width


def aged(look: Look, rows: Sequence[Row], n: Notice, width: int) -> list[Row]:
    """The lines, with the age of the notice at the right of the first one."""
    age = concerns.age(n) if width >= AGES_FROM else ""
    if not rows or not age:
        return [*rows]
    blank = " " * (width - width_of(rows[0]) - cell_len(age))
    return [(*rows[0], *look.line((blank + age, "dim"))), *rows[1:]]


def _run_on(look: Look, text: str, advice: str, age: str, size: tuple[int, int, int]) -> list[Row]:
    """One after the other, where the advice needs nearly all lines."""
    width, room, most = size
    left = most * room - cell_len(advice) - (most - 1) * BREAK
    text = look.fitted(text, min(cell_len(text), max(LEAST_WHAT, left)))
    first, *more = _cut(look, split(text + advice, room), most, room)
    what, arrow, rest = first.partition(_ARROW)
    rows = (look.line((_INDENT, "plain"), (line, "plain")) for line in more)
    return [_first(look, what, arrow + rest, age, width), *rows]


def _first(look: Look, text: str, advice: str, age: str, width: int) -> Row:
    """The first line: the age is at the right edge."""
    blank = width - len(_MARK) - cell_len(text + advice) - cell_len(age)
    return look.line(
        (_MARK, "bad"),
        (text, "warn"),
        (advice, "plain"),
        (" " * blank if age else "", "plain"),
        (age, "dim"),
    )


def _cut(look: Look, lines: Sequence[str], most: int, width: int) -> Sequence[str]:
    """At most that many of the lines, the last one cut where there are more."""
    if len(lines) <= most:
        return lines
    rest = " ".join(lines[most - 1 :])
    return [*lines[: most - 1], look.fitted(rest, min(width, cell_len(rest)))]
