"""Everything in a notebook's panel can be read, on every light and dark notebook there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from support import snapshots
from support.color_vision import contrast

from tpusmi.report import markup
from tpusmi.report.html import fragment

LEAST = 4.5
"""WCAG 2.1, level AA."""
Color = tuple[float, float, float]
WHITE, BLACK = (255.0, 255.0, 255.0), (0.0, 0.0, 0.0)


class Theme(NamedTuple):
    """Text and background of the output of a cell."""

    text: Color
    background: Color


THEMES = {
    "JupyterLab light": Theme((33, 33, 33), (255, 255, 255)),
    "JupyterLab dark": Theme((224, 224, 224), (17, 17, 17)),
    "VS Code light": Theme((59, 59, 59), (255, 255, 255)),
    "VS Code dark": Theme((204, 204, 204), (31, 31, 31)),
    "Colab light": Theme((33, 33, 33), (255, 255, 255)),
    "Colab dark": Theme((213, 213, 213), (56, 56, 56)),
}


def over(color: Color, share: float, below: Color) -> Color:
    """A color that covers that share of what is below it."""
    mixed = (share * c + (1 - share) * b for c, b in zip(color, below, strict=True))
    return tuple(mixed)  # type: ignore[return-value]


def gray(color: Color) -> Color:
    """As the filter of an ended panel has it."""
    value = 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2]
    return value, value, value


def hexadecimal(text: str) -> Color:
    digits = text.removeprefix("#")
    digits = digits if len(digits) == 6 else "".join(2 * d for d in digits)
    return tuple(bytes.fromhex(digits))  # type: ignore[return-value]


def pairs(theme: Theme) -> Iterator[tuple[str, Color, Color]]:
    """Every text of the panel with what is behind it."""
    track = over(markup.GRAY, markup.TRACK_SHARE, theme.background)
    backs = {"nothing": theme.background, "track": track}
    for look, color in markup.COLORS.items():
        backs[f"bar {look}"] = over(color, markup.BAR_SHARE, theme.background)
    for name, back in backs.items():
        yield f"text on {name}", theme.text, back
        yield f"ended: text on {name}", gray(theme.text), gray(back)
    for name in ("nothing", "track"):  # an old value has no bar
        yield f"old on {name}", over(theme.text, markup.OLD_SHARE, backs[name]), backs[name]
    for name, back in (("tag", markup.TAG), ("simulated", markup.SIMULATED)):
        yield name, WHITE, hexadecimal(back)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_every_text_is_readable_on_what_is_behind_it(theme: Theme) -> None:
    ratios = {name: contrast(text, back) for name, text, back in pairs(theme)}
    assert {name: ratio for name, ratio in ratios.items() if ratio < LEAST} == {}


def test_a_number_of_the_heat_map_is_readable_however_full_its_cell_is() -> None:
    for percent in range(101):
        style = markup.heat(percent / 100)
        back, text = re.findall(r"#[0-9a-f]+", style)
        assert contrast(hexadecimal(back), hexadecimal(text)) >= LEAST, style


def test_the_panel_has_no_other_colors_than_those() -> None:
    """A color that is added to the style has to be added to the pairs above."""
    style = markup.STYLE
    known = {markup.TAG, markup.SIMULATED, "#fff", "#0000", "#f9ab00", "#ea4335"}
    assert set(re.findall(r"#[0-9a-f]{3,8}\b", style)) == known
    triples = {",".join(map(str, c)) for c in (*markup.COLORS.values(), markup.GRAY)}
    assert set(re.findall(r"\d+,\d+,\d+", style)) == triples
    assert set(re.findall(r"opacity:([\d.]+)", style)) == {str(markup.OLD_SHARE), "1"}
    inline = re.findall(r'style="([^"]+)"', fragment(snapshots.many(40)))
    assert all(re.fullmatch(r"background:#\w{6};color:#(000|fff)", s) for s in inline)


def test_without_the_rule_the_old_style_would_fail() -> None:
    """The check itself can fail: what an ended panel was like, text at 55 % on half of a blue."""
    theme = THEMES["JupyterLab light"]
    bar = over(over((66, 133, 244), 0.5, theme.background), 0.55, theme.background)
    assert contrast(over(theme.text, 0.55, bar), bar) < LEAST
