"""The scale of heat maps: even steps, lighter all the way, readable for anyone, on any terminal."""

from __future__ import annotations

import math

import pytest
from support.color_vision import (
    DEUTERANOPIA,
    PROTANOPIA,
    SEEING,
    Matrix,
    apart,
    contrast,
    lab,
)

from tpusmi.report import color_scale
from tpusmi.report.color_scale import LEVELS, palette_number, palette_rgb, rgb

LEVEL_RATIOS = [(n + 0.5) / LEVELS for n in range(LEVELS)]


def test_it_grows_lighter_with_every_percent() -> None:
    lightness = [lab(rgb(n / 100))[0] for n in range(101)]
    assert lightness == sorted(lightness)
    assert lightness[-1] - lightness[0] > 60


def test_equal_steps_look_equal() -> None:
    steps = [apart(rgb(n / 10), rgb((n + 1) / 10)) for n in range(10)]
    assert max(steps) < 1.5 * min(steps)


@pytest.mark.parametrize("eyes", [DEUTERANOPIA, PROTANOPIA], ids=["no green", "no red"])
def test_steps_are_told_apart_without_seeing_red_or_green(eyes: Matrix) -> None:
    steps = [apart(rgb(n / 10), rgb((n + 1) / 10), eyes) for n in range(10)]
    assert min(steps) > 5
    lightness = [lab(rgb(n / 100), eyes)[0] for n in range(101)]
    assert lightness[-1] - lightness[0] > 55


def test_numbers_are_readable_on_every_color() -> None:
    colors = [rgb(n / 100) for n in range(101)]
    colors += [palette_rgb(palette_number(ratio)) for ratio in LEVEL_RATIOS]
    assert min(contrast(color, color_scale.text_on(color)) for color in colors) >= 4.5


def test_a_terminal_of_256_colors_has_ten_of_them_lighter_and_lighter() -> None:
    colors = [palette_rgb(palette_number(ratio)) for ratio in LEVEL_RATIOS]
    lightness = [lab(color)[0] for color in colors]
    assert lightness == sorted(set(lightness))
    for eyes, least in ((SEEING, 14), (DEUTERANOPIA, 4.5)):
        assert min(map(lambda a, b: apart(a, b, eyes), colors, colors[1:])) > least
    for ratio, color in zip(LEVEL_RATIOS, colors, strict=True):
        assert apart(color, rgb(ratio)) < 40


def test_numbers_of_256_are_what_terminals_show() -> None:
    assert palette_rgb(16) == (0, 0, 0)
    assert palette_rgb(54) == (0x5F, 0, 0x87)
    assert palette_rgb(231) == (255, 255, 255)


def test_ratios_outside_of_the_scale_have_the_color_of_its_ends() -> None:
    assert rgb(-1.0) == rgb(0.0)
    assert rgb(7.0) == rgb(1.0)
    assert (color_scale.letter(-1.0), color_scale.letter(7.0)) == ("a", "j")


def test_what_is_not_a_number_is_unknown() -> None:
    assert [color_scale.real(x) for x in (None, math.nan, math.inf, 0.0)] == [None, None, None, 0.0]


@pytest.mark.parametrize(
    ("ratio", "number"),
    [
        *((0.0, "0"), (0.001, "<1"), (0.0049, "<1"), (0.005, "<1"), (0.006, "1"), (0.72, "72")),
        *((1.0, "100"), (1.2, "120"), (1e9, "999"), (-0.1, "0")),
    ],
)
def test_a_number_is_whole_percent_and_a_little_is_not_nothing(ratio: float, number: str) -> None:
    assert color_scale.percent(ratio) == number
