"""The themes: which Rich style each name on the screen has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rich.color import Color
from rich.style import Style

Styles = Mapping[str, Style]

DEFAULT = "ansi"
MONO = "mono"
FEW_COLORS, TRUE_COLORS = 16, 1 << 24
MIDDLE = 128
"""Between dark and light grays."""


class Theme(NamedTuple):
    """The styles of one theme, and the background that they are meant for."""

    styles: Styles
    background: str | None
    """None is the background of the terminal, whose palette decides what is readable."""


# Colors of the 256-color palette only: terminals show those unchanged.
# `plain` and `bold` have the terminal's own color everywhere, on its own background.
_DARK_LIGHT = {
    "plain": ("none", "none"),
    "dim": ("#949494", "#626262"),
    "bold": ("bold", "bold"),
    "title": ("bold #5fd7ff", "bold #005f87"),
    "head": ("bold underline #5fd7ff", "bold underline #005f87"),
    "selected": ("bold #ffffff on #005f87", "bold #ffffff on #005faf"),
    "key": ("bold #ffffff on #005f87", "bold #ffffff on #005faf"),
    "good": ("#87d75f", "#005f00"),
    "warn": ("#ffd75f", "#875f00"),
    "bad": ("bold #ff8787", "bold #af0000"),
    "graph": ("#5fafff", "#005faf"),
    "graph2": ("#d787ff", "#8700af"),
    "graph3": ("#ffaf5f", "#af5f00"),
    "loud": ("bold #ffffff on #870087", "bold #ffffff on #870087"),
    "paused": ("bold #000000 on #ffd700", "bold #000000 on #ffd700"),
    "heat0": ("#875fd7", "#878700"),
    "heat1": ("#d75faf", "#af5f00"),
    "heat2": ("#ff875f", "#af0000"),
    "heat3": ("#ffaf5f", "#87005f"),
    "heat4": ("#ffff87", "#5f005f"),
}
# The sixteen colors of the terminal itself: a light, dark or color-blind palette stays as chosen.
_ANSI_MONO = {
    "plain": ("none", "none"),
    "dim": ("dim", "dim"),
    "bold": ("bold", "bold"),
    "title": ("bold cyan", "bold"),
    "head": ("bold underline cyan", "bold underline"),
    "selected": ("bold bright_white on blue", "reverse"),
    "key": ("bold bright_white on blue", "reverse"),
    "good": ("green", "none"),
    "warn": ("yellow", "bold"),
    "bad": ("bold red", "bold"),
    "graph": ("cyan", "none"),
    "graph2": ("magenta", "none"),
    "graph3": ("yellow", "none"),
    "loud": ("bold bright_white on magenta", "bold reverse"),
    "paused": ("bold black on yellow", "bold reverse"),
    "heat0": ("bright_blue", "dim"),
    "heat1": ("cyan", "none"),
    "heat2": ("green", "none"),
    "heat3": ("yellow", "bold"),
    "heat4": ("bold red", "bold"),
}
# On top of dark, and of ansi. Blue is good and orange is bad. They also differ in lightness, for
# any kind of color blindness.
_COLORBLIND = {
    "good": ("#5fafff", "bright_blue"),
    "warn": ("#ffffaf", "yellow"),
    "bad": ("bold #ff8700", "bold reverse yellow"),
    "graph": ("#5fafff", "bright_blue"),
    "graph2": ("#ffaf00", "yellow"),
    "graph3": ("#d7d7ff", "white"),
    "heat0": ("#5f87af", "bright_blue"),
    "heat1": ("#5fafff", "cyan"),
    "heat2": ("#afd7d7", "white"),
    "heat3": ("#ffd75f", "yellow"),
    "heat4": ("#ffffd7", "bold yellow"),
}


def _column(table: Mapping[str, tuple[str, str]], number: int) -> Styles:
    return {name: Style.parse(row[number]) for name, row in table.items()}


THEMES = {
    "dark": Theme(_column(_DARK_LIGHT, 0), "#262626"),
    "light": Theme(_column(_DARK_LIGHT, 1), "#eeeeee"),
    "colorblind": Theme(_column({**_DARK_LIGHT, **_COLORBLIND}, 0), "#262626"),
    "ansi": Theme(_column(_ANSI_MONO, 0), None),
    MONO: Theme(_column(_ANSI_MONO, 1), None),
}
_STAND_INS = {"dark": "ansi", "light": "ansi", "colorblind": "colorblind-ansi"}
"""Themes for terminals of 16 colors, where the color nearest to a theme's own may be unreadable."""
_ALL = {
    **THEMES,
    "colorblind-ansi": Theme({**THEMES["ansi"].styles, **_column(_COLORBLIND, 1)}, None),
}


def styles(theme: str | None, colors: Mapping[str, str]) -> Styles:
    """The styles of a theme, None is the default, with the user's own colors on top.

    Without color, bold, underline and the like are left of the user's own styles. Raises KeyError
    for an unknown theme.
    """
    base = _ALL[theme or DEFAULT].styles
    own = {style: base[style] + Style.parse(text) for style, text in colors.items()}
    if theme == MONO:
        own = {style: mixed.without_color for style, mixed in own.items()}
    return {**base, **own}


def default_colors(theme: str | None) -> str:
    """What sets the text and the background of a terminal without colors of its own, as that in a
    browser, to what a theme is meant for (OSC 10 and 11), or back to what they were (110 and 111).
    """
    background = _ALL[theme or DEFAULT].background
    if background is None:
        return "\x1b]110\a\x1b]111\a"
    text = "#000000" if Color.parse(background).get_truecolor().red > MIDDLE else "#ffffff"
    return f"\x1b]10;{text}\a\x1b]11;{background}\a"


def shown_here(theme: str | None) -> str | None:
    """The theme to use for this one on this terminal: another if it has 16 colors only."""
    return _STAND_INS.get(theme, theme) if theme and colors_here() <= FEW_COLORS else theme


def colors_here() -> int:
    """How many colors this terminal has: 16, 256, or all of them."""
    from rich.console import Console
    from textual.constants import COLOR_SYSTEM

    # As Textual asks Rich, and so shows it.
    console = Console(color_system=COLOR_SYSTEM, force_terminal=True)  # type: ignore[arg-type]
    counts = {"standard": FEW_COLORS, "256": 256}
    return counts.get(console.color_system or "standard", TRUE_COLORS)
