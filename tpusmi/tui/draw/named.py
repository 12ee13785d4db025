"""A line of a name and what is said, in as many lines as that needs. Pure."""

from __future__ import annotations

from tpusmi.tui.draw.look import Look, Row, split

NAME_WIDTH = 11


def named(look: Look, name: str, text: str, width: int, style: str = "plain") -> list[Row]:
    """The text behind its name, continued under its beginning."""
    first, *more = split(text, width - NAME_WIDTH)
    blank = " " * NAME_WIDTH
    return [
        look.line((name.ljust(NAME_WIDTH), "title"), (first, style)),
        *(look.line((blank, "plain"), (line, style)) for line in more),
    ]
