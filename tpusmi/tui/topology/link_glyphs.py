"""The characters of borders and links on the topology page."""

from __future__ import annotations

from typing import NamedTuple

from tpusmi.model.servers import PASSING_MOST, UNUSABLE

UP, RIGHT, DOWN, LEFT = 1, 2, 4, 8
"""The arms of a corner of two borders."""


class LinkGlyph(NamedTuple):
    """A link on each axis, and where it crosses the outline of a host."""

    across: str
    down: str
    behind: str
    across_border: str
    down_border: str
    style: str


class LinkGlyphs(NamedTuple):
    """All characters for one kind of terminal."""

    corners: str
    """By the sum of their arms."""
    healthy: LinkGlyph
    unknown: LinkGlyph

    def link(self, health: int | None) -> LinkGlyph:
        """The characters of a link with that health: a fault shows its number."""
        if health is None:
            return self.unknown
        if health <= 0:
            return self.healthy
        text = str(health) if health < UNUSABLE else "X"
        style = "warn" if health <= PASSING_MOST else "bad"
        return LinkGlyph(
            across=text, down=text, behind=text, across_border=text, down_border=text, style=style
        )


UNICODE = LinkGlyphs(
    corners=" │─╰││╭├─╯─┴╮┤┬┼",
    healthy=LinkGlyph(
        across="━", down="┃", behind="╱", across_border="┿", down_border="╂", style="good"
    ),
    unknown=LinkGlyph(
        across="┄", down="┆", behind="·", across_border="┄", down_border="┆", style="dim"
    ),
)
ASCII = LinkGlyphs(
    corners=" |-+||++-+-++++++",
    healthy=LinkGlyph(
        across="-", down="|", behind="/", across_border="-", down_border="|", style="good"
    ),
    unknown=LinkGlyph(
        across=".", down=":", behind=",", across_border=".", down_border=":", style="dim"
    ),
)


def glyphs(only_ascii: bool) -> LinkGlyphs:
    """The characters for this terminal."""
    return ASCII if only_ascii else UNICODE
