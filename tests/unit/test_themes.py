"""Themes: what can be read, by whom, and on which terminals."""

from __future__ import annotations

import pytest
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from rich.style import Style
from support.color_vision import DEUTERANOPIA, apart, contrast

from tpusmi.tui.draw.look import Look
from tpusmi.tui.draw.themes import MONO, THEMES, shown_here, styles

HEAT = tuple(f"heat{level}" for level in range(5))
"""The styles of a heat map, coldest first."""
OF_A_BACKGROUND = [name for name, theme in THEMES.items() if theme.background]
GRAPHS = {"graph", "graph2", "graph3", *HEAT}
WITH_BACKGROUND = {"selected", "key", "loud", "paused"}
TEXT = set(THEMES["dark"].styles) - GRAPHS - WITH_BACKGROUND


def rgb(color: Color) -> ColorTriplet:
    return color.get_truecolor()


def color_of(theme: str, name: str) -> ColorTriplet:
    color = THEMES[theme].styles[name].color
    assert color is not None
    return rgb(color)


def test_every_theme_has_every_style() -> None:
    names = {frozenset(theme.styles) for theme in THEMES.values()}
    assert len(names) == 1
    assert names == {frozenset(styles("colorblind-ansi", {}))}


@pytest.mark.parametrize("theme", OF_A_BACKGROUND)
def test_text_and_graphs_stand_out_from_the_background(theme: str) -> None:
    background = rgb(Color.parse(THEMES[theme].background or ""))
    found = THEMES[theme].styles
    for names, least in ((TEXT, 4.5), (GRAPHS, 3.0)):
        for name in names - {"plain", "bold"}:
            assert contrast(color_of(theme, name), background) >= least, name
    for name in WITH_BACKGROUND:
        own = found[name].bgcolor
        assert own is not None
        assert contrast(color_of(theme, name), rgb(own)) >= 4.5, name
    for name in ("plain", "bold"):
        assert found[name].color is None


@pytest.mark.parametrize("theme", OF_A_BACKGROUND)
def test_terminals_of_256_colors_show_a_theme_as_it_is(theme: str) -> None:
    for style in THEMES[theme].styles.values():
        for color in filter(None, (style.color, style.bgcolor)):
            near = color.downgrade(ColorSystem.EIGHT_BIT)
            assert near.get_truecolor() == color.get_truecolor(), color


@pytest.mark.parametrize("theme", OF_A_BACKGROUND)
def test_a_heat_map_gets_away_from_the_background_with_every_level(theme: str) -> None:
    background = rgb(Color.parse(THEMES[theme].background or ""))
    found = [contrast(color_of(theme, name), background) for name in HEAT]
    assert found == sorted(set(found))


def test_states_and_graphs_are_told_apart_without_seeing_red_and_green() -> None:
    for names in (("good", "warn", "bad"), ("graph", "graph2", "graph3"), HEAT):
        for i, one in enumerate(names):
            for other in names[i + 1 :]:
                colors = (color_of("colorblind", name) for name in (one, other))
                assert apart(*colors, DEUTERANOPIA) > 20, (one, other)
    assert apart((0xAF, 0x87, 0), (0x87, 0xAF, 0), DEUTERANOPIA) < 20


def test_mono_has_no_color_whatever_a_person_likes() -> None:
    found = styles(MONO, {"good": "bold red on blue", "graph": "underline"})
    assert all(s.color is None and s.bgcolor is None for s in found.values())
    assert found["good"] == Style(bold=True)
    assert found["graph"] == Style(underline=True)
    assert Look(color=False, theme="dark", colors={"good": "red"}).style["good"] == Style()


def test_own_colors_are_on_top_of_the_theme() -> None:
    found = styles("dark", {"bad": "#ff8700"})
    assert found["bad"] == Style(bold=True, color="#ff8700")
    assert found["good"] == THEMES["dark"].styles["good"]


def test_without_a_wish_it_is_the_terminals_own_colors() -> None:
    assert Look().style == THEMES["ansi"].styles
    of_16 = [c for s in Look().style.values() for c in (s.color, s.bgcolor) if c is not None]
    assert all(color.number is not None and color.number < 16 for color in of_16)


@pytest.mark.parametrize(
    ("term", "colorterm", "expected"),
    [
        ("xterm", "", "ansi"),
        ("linux", "", "ansi"),
        ("screen-256color", "", "dark"),
        ("xterm-256color", "truecolor", "dark"),
        ("linux", "24bit", "dark"),
    ],
)
def test_a_terminal_of_16_colors_gets_a_theme_made_of_them(
    monkeypatch: pytest.MonkeyPatch, term: str, colorterm: str, expected: str
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLORTERM", colorterm)
    assert shown_here("dark") == expected
    assert shown_here("colorblind") == expected.replace("dark", "colorblind").replace(
        "ansi", "colorblind-ansi"
    )
    assert shown_here(MONO) == MONO
    assert shown_here(None) is None


def test_contrast_is_that_of_wcag() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((0x76, 0x76, 0x76), (255, 255, 255)) == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize(
    ("theme", "text"),
    [
        ("light", "\x1b]10;#000000\a\x1b]11;#eeeeee\a"),
        ("dark", "\x1b]10;#ffffff\a\x1b]11;#262626\a"),
        (None, "\x1b]110\a\x1b]111\a"),
    ],
)
def test_a_browser_gets_the_background_of_the_theme(theme: str | None, text: str) -> None:
    assert Look(theme=theme).default_colors == text
