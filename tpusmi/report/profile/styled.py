"""Lines of text with a style for each piece, and how wide they are in a terminal. Pure."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence

from tpusmi.report.text_grid import BOLD, CYAN, DIM, GREEN, PLAIN, RED, YELLOW, ascii_signs

Line = tuple[tuple[str, str], ...]
"""Pieces of (text, style). The styles are names of the dashboard's themes."""

MAGENTA = "\x1b[35m"
ANSI = {
    "plain": "",
    "dim": DIM,
    "bold": BOLD,
    "title": f"{BOLD}{CYAN}",
    "head": f"{BOLD}\x1b[4m{CYAN}",
    "good": GREEN,
    "warn": YELLOW,
    "bad": RED,
    "graph": CYAN,
    "graph2": MAGENTA,
    "graph3": YELLOW,
    "loud": "\x1b[1;97;45m",
}
"""Every style that a page has, in the sixteen colors of the terminal, as in the theme `ansi`."""

CUT, DOT = "…", " · "
LEAST_WIDTH = 20


def as_text(lines: Iterable[Line], color: bool, ascii_only: bool) -> str:
    """The lines as one text that ends in a newline, for a terminal or a pipe."""
    return "".join(f"{_joined(line, color, ascii_only)}\n" for line in lines)


def _joined(line: Line, color: bool, ascii_only: bool) -> str:
    pieces = [(in_ascii_cells(t) if ascii_only else t, ANSI[style]) for t, style in line]
    while pieces and not pieces[-1][0].strip():
        pieces.pop()
    if not color:
        return "".join(t for t, _ in pieces).rstrip()
    return "".join(f"{code}{t}{PLAIN}" if code and t.strip() else t for t, code in pieces)


def in_ascii_cells(text: str) -> str:
    """The text for a terminal that shows ASCII only, in as many columns."""
    if text.isascii():
        return text
    signs = ascii_signs(text)
    return signs if signs.isascii() else "".join(c if c < "\x80" else "?" * _of(c) for c in signs)


def width_of(text: str) -> int:
    """Columns of the terminal that the text takes."""
    return len(text) if text.isascii() else sum(map(_of, text))


def _of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def width_of_line(line: Line) -> int:
    """Columns of the terminal that the line takes."""
    return sum(width_of(t) for t, _ in line)


def beginning(text: str, most: int) -> str:
    """As much of the beginning as fits into so many columns."""
    if text.isascii():
        return text[: max(0, most)]
    used = 0
    for at, character in enumerate(text):
        used += _of(character)
        if used > most:
            return text[:at]
    return text


def cut(text: str, most: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if width_of(text) <= most else beginning(text, most - 1) + CUT * (most > 0)


def cut_middle(text: str, most: int) -> str:
    """The text, or its two ends with an ellipsis between them: names differ at the end."""
    if width_of(text) <= most:
        return text
    if most < 6:
        return cut(text, most)
    end = beginning(text[::-1], most // 2)[::-1]
    return beginning(text, most - 1 - width_of(end)) + CUT + end


def padded(text: str, width: int, right: bool = False) -> str:
    """The text with blanks up to that many columns."""
    blanks = " " * (width - width_of(text))
    return blanks + text if right else text + blanks


def fitted(line: Line, width: int) -> Line:
    """The line, cut to so many columns."""
    if width_of_line(line) <= width:
        return line
    pieces, left = [], width - 1
    for t, style in line:
        part = beginning(t, left)
        pieces.append((part, style))
        left -= width_of(part)
        if part != t:
            break
    return (*pieces, (CUT, "dim")) if width > 0 else ()


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of that width, split between words."""
    width = max(width, LEAST_WIDTH)
    lines = textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    return [part for line in lines for part in _chopped(line, width)]


def _chopped(line: str, width: int) -> list[str]:
    """A line that is too wide, because characters are, in several."""
    parts = []
    while width_of(line) > width:
        part = beginning(line, width)
        parts.append(part)
        line = line[len(part) :]
    return [*parts, line]


def bar(ratio: float, width: int) -> str:
    """A bar that is filled to that ratio, 0 to 1, and blank behind it."""
    return ("━" * round(min(max(ratio, 0.0), 1.0) * width)).ljust(width)


def tracked(ratio: float, width: int, style: str) -> Line:
    """The same in its style, with a dim track behind it."""
    filled = bar(ratio, width).rstrip()
    return ((filled, style), ("─" * (width - len(filled)), "dim"))


def paragraph(text: str, width: int, style: str, first: str = "", rest: str = "") -> list[Line]:
    """The text in lines, the first with a mark before it, the others with blanks."""
    indent = rest or " " * width_of(first)
    lines = wrapped(text, width - max(width_of(first), width_of(indent)))
    return [((first if n == 0 else indent, style), (t, style)) for n, t in enumerate(lines)]


def facts(parts: Iterable[str], width: int, style: str, first: str = "") -> list[Line]:
    """The parts with dots between them, in as many lines as they need, none split."""
    lines: list[str] = []
    room = width - width_of(first)
    for part in parts:
        longer = f"{lines[-1]}{DOT}{part}" if lines else part
        if lines and width_of(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(part)
    indent = " " * width_of(first)
    return [
        ((indent if n else first, "plain"), (cut_middle(line, room), style))
        for n, line in enumerate(lines)
    ]


def heading(title: str, *more: str) -> Line:
    """The title of a section, and quiet remarks after it."""
    return ((title, "title"), *((f"  {remark}", "dim") for remark in more if remark))


def joined(sections: Sequence[Sequence[Line]], width: int) -> list[Line]:
    """The sections that have lines, a blank line between two of them, nothing too wide."""
    lines: list[Line] = []
    for section in filter(None, sections):
        lines += [()] if lines else []
        lines += [fitted(line, width) for line in section]
    return lines
