"""One scale of colors for shares, from 0 to 1: for heat maps and topologies, here and in HTML.

It is viridis without its darkest part, which a dark terminal swallows. Equal steps look equal, it
grows lighter all the way, and it reads the same without seeing red and green. Numbers on it are
black or white, whichever reads better: that contrast is never below 4.5. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

Rgb = tuple[int, int, int]

_COLORS = (
    "453781 404788 39568c 33638d 2d708e 287d8e 238a8d 1f968b 20a387 "
    "29af7f 3cbb75 55c667 73d055 95d840 b8de29 dce319 fde725"
)
_ANCHORS = tuple((red, green, blue) for red, green, blue in map(bytes.fromhex, _COLORS.split(" ")))
LETTERS = "abcdefghij"
"""A letter for each level, the lowest first, where there are no such colors."""
LEVELS = len(LETTERS)
_PALETTE = (54, 61, 31, 37, 43, 78, 113, 149, 191, 227)
"""A color of the 256 for each level: near the scale, lighter with each, in the cube of colors."""
_CUBE = (0, 95, 135, 175, 215, 255)
DARK = 0.179
"""White reads better than black on a color of less luminance."""
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
MOST = 9.99
"""Larger shares are shown as this one."""


def within(share: float) -> float:
    """The share, not less than 0 nor more than 1."""
    return min(max(share, 0.0), 1.0)


def real(ratio: float | None) -> float | None:
    """The ratio; None where it is unknown or not a number."""
    return ratio if ratio is not None and isfinite(ratio) else None


def rgb(ratio: float) -> Rgb:
    """The color of a ratio, 0 to 1; outside of that the color of the nearer end."""
    place = within(ratio) * (len(_ANCHORS) - 1)
    at = min(int(place), len(_ANCHORS) - 2)
    low, high = _ANCHORS[at], _ANCHORS[at + 1]
    red, green, blue = (round(a + (b - a) * (place - at)) for a, b in zip(low, high, strict=True))
    return red, green, blue


def level(ratio: float) -> int:
    """Which tenth of the scale a ratio is in, 0 to 9."""
    return min(int(within(ratio) * LEVELS), LEVELS - 1)


def letter(ratio: float) -> str:
    """`a` below 10 percent to `j` from 90 percent on."""
    return LETTERS[level(ratio)]


def palette_number(ratio: float) -> int:
    """The number of its color on a terminal of 256, one of ten."""
    return _PALETTE[level(ratio)]


def palette_rgb(number: int) -> Rgb:
    """What the terminal shows for a number in the cube of its 256 colors, 16 to 231."""
    cube = number - 16
    return _CUBE[cube // 36], _CUBE[cube // 6 % 6], _CUBE[cube % 6]


def text_on(color: Rgb) -> Rgb:
    """Black or white, whichever reads better on that color."""
    return BLACK if luminance(color) > DARK else WHITE


def hexadecimal(color: Rgb) -> str:
    """`#21918c`"""
    return f"#{bytes(color).hex()}"


def luminance(color: Sequence[float]) -> float:
    """Relative luminance of a color of red, green and blue up to 255, as WCAG 2 defines it."""
    parts = (c / 255 for c in color)
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def percent(ratio: float) -> str:
    """The number in a cell: `72`. A little is not nothing: `<1`."""
    hundred = 100 * min(max(ratio, 0.0), MOST)
    return "<1" if 0 < hundred <= 0.5 else f"{hundred:.0f}"
