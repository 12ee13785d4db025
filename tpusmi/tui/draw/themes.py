"""The themes: which Rich style each name on the screen has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rich.style import Style

Styles = Mapping[str, Style]

DEFAULT = "ansi"
MONO = "mono"
HEAT = tuple(f"heat{level}" for level in range(5))
"""The styles of a heat map, coldest first."""


class Theme(NamedTuple):
    """The styles of one theme, and the background that they are meant for."""

    styles: Styles
    background: str | None
    """None is the background of the terminal, whose palette decides what is readable."""


def _styles(**definitions: str) -> Styles:
    return {name: Style.parse(definition) for name, definition in definitions.items()}


# Colors of the 256-color palette only: terminals show those unchanged.
# `plain` and `bold` have the terminal's own color everywhere, on its own background.
_DARK = _styles(
    plain="none",
    dim="#949494",
    bold="bold",
    title="bold #5fd7ff",
    head="bold underline #5fd7ff",
    selected="bold #ffffff on #005f87",
    key="bold #ffffff on #005f87",
    good="#87d75f",
    warn="#ffd75f",
    bad="bold #ff8787",
    graph="#5fafff",
    graph2="#d787ff",
    graph3="#ffaf5f",
    loud="bold #ffffff on #870087",
    paused="bold #000000 on #ffd700",
    heat0="#875fd7",
    heat1="#d75faf",
    heat2="#ff875f",
    heat3="#ffaf5f",
    heat4="#ffff87",
)
_LIGHT = _styles(
    plain="none",
    dim="#626262",
    bold="bold",
    title="bold #005f87",
    head="bold underline #005f87",
    selected="bold #ffffff on #005faf",
    key="bold #ffffff on #005faf",
    good="#005f00",
    warn="#875f00",
    bad="bold #af0000",
    graph="#005faf",
    graph2="#8700af",
    graph3="#af5f00",
    loud="bold #ffffff on #870087",
    paused="bold #000000 on #ffd700",
    heat0="#878700",
    heat1="#af5f00",
    heat2="#af0000",
    heat3="#87005f",
    heat4="#5f005f",
)
# Blue is good and orange is bad. They also differ in lightness, for any kind of color blindness.
_COLORBLIND = {
    **_DARK,
    **_styles(
        good="#5fafff",
        warn="#ffffaf",
        bad="bold #ff8700",
        graph="#5fafff",
        graph2="#ffaf00",
        graph3="#d7d7ff",
        heat0="#5f87af",
        heat1="#5fafff",
        heat2="#afd7d7",
        heat3="#ffd75f",
        heat4="#ffffd7",
    ),
}
# The sixteen colors of the terminal itself: a light, dark or color-blind palette stays as chosen.
_ANSI = _styles(
    plain="none",
    dim="dim",
    bold="bold",
    title="bold cyan",
    head="bold underline cyan",
    selected="bold bright_white on blue",
    key="bold bright_white on blue",
    good="green",
    warn="yellow",
    bad="bold red",
    graph="cyan",
    graph2="magenta",
    graph3="yellow",
    loud="bold bright_white on magenta",
    paused="bold black on yellow",
    heat0="blue",
    heat1="cyan",
    heat2="green",
    heat3="yellow",
    heat4="bold red",
)
_COLORBLIND_ANSI = {
    **_ANSI,
    **_styles(
        good="bright_blue",
        warn="yellow",
        bad="bold reverse yellow",
        graph="bright_blue",
        graph2="yellow",
        graph3="white",
        heat2="white",
        heat4="bold yellow",
    ),
}
_MONO = {
    **{name: Style() for name in ("plain", "good", "graph", "graph2", "graph3", *HEAT[1:3])},
    **{name: Style(dim=True) for name in ("dim", "heat0")},
    **{name: Style(bold=True) for name in ("bold", "title", "warn", "bad", *HEAT[3:])},
    "head": Style(bold=True, underline=True),
    **{name: Style(reverse=True) for name in ("selected", "key")},
    **{name: Style(reverse=True, bold=True) for name in ("loud", "paused")},
}

THEMES = {
    "dark": Theme(_DARK, "#262626"),
    "light": Theme(_LIGHT, "#eeeeee"),
    "colorblind": Theme(_COLORBLIND, "#262626"),
    "ansi": Theme(_ANSI, None),
    MONO: Theme(_MONO, None),
}
_STAND_INS = {"dark": "ansi", "light": "ansi", "colorblind": "colorblind-ansi"}
"""Themes for terminals of 16 colors, where the color nearest to a theme's own may be unreadable."""
_ALL = {**THEMES, "colorblind-ansi": Theme(_COLORBLIND_ANSI, None)}


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


def shown_here(theme: str | None) -> str | None:
    """The theme to use for this one on this terminal: another if it has 16 colors only."""
    from rich.console import Console
    from textual.constants import COLOR_SYSTEM

    # As Textual asks Rich, and so shows it.
    console = Console(color_system=COLOR_SYSTEM, force_terminal=True)  # type: ignore[arg-type]
    few = console.color_system == "standard"
    return _STAND_INS.get(theme, theme) if few and theme else theme
