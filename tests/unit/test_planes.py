"""Planes of a torus as lines: each chip is drawn once, in every width and for every terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tori import torus

from tpusmi.model.torus import Torus
from tpusmi.tui.draw.look import Look, Row, width_of
from tpusmi.tui.topology import planes
from tpusmi.tui.topology.chip_moves import nearest, step_to

Size = tuple[int, int, int]
SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4))
HOSTS = st.sampled_from([(1, 1, 1), (2, 2, 1), (2, 4, 1)])


def lines(rows: Iterable[Row]) -> list[str]:
    return ["".join(piece.text for piece in row) for row in rows]


def drawn(of: Torus, width: int = 200, height: int = 24) -> list[str]:
    return lines(planes.drawn(Look(), of, width, height).rows)


@settings(max_examples=40, deadline=None)
@given(SIZES, HOSTS, st.integers(1, 2), st.integers(60, 220), st.sampled_from([1, 10, 40]))
def test_no_chip_is_lost_or_drawn_twice(
    size: Size, host: Size, devices: int, width: int, height: int
) -> None:
    of = torus(size, host, devices)
    drawing = planes.drawn(Look(color=False), of, width, height)
    assert drawing.spots.keys() == {chip.key for chip in of.chips}
    text = lines(drawing.rows)
    places = set()
    for chip in of.chips:
        line, column = drawing.spots[chip.key]
        cell = text[line][column : column + drawing.chip_width]
        places.add((line, column))
        if drawing.chip_width > 2:
            assert chip.ratio is not None
            assert cell.strip(" ") == f"{100 * chip.ratio:.0f}", (chip, cell)
        assert nearest(drawing.spots, (line, column), drawing.chip_width) == chip.key
    assert len(places) == len(of.chips)
    assert max(map(width_of, drawing.rows)) <= width


@settings(max_examples=30, deadline=None)
@given(SIZES, st.data())
def test_a_step_there_and_back_is_no_step_within_a_row(size: Size, data: st.DataObject) -> None:
    of = torus(size)
    spots = planes.drawn(Look(), of, 200, 24).spots
    key = data.draw(st.sampled_from([chip.key for chip in of.chips]))
    other = step_to(spots, key, 1, 0)
    if other is not None:
        assert step_to(spots, other, -1, 0) == key


@settings(max_examples=30, deadline=None)
@given(SIZES, HOSTS, st.integers(1, 2))
def test_ascii_is_ascii(size: Size, host: Size, devices: int) -> None:
    of = torus(size, host, devices, wraps=(True, True, True))
    look = Look(ascii=True)
    planes_of_it = planes.drawn(look, of, 120, 24, of.chips[0].key).rows
    rows = [*planes_of_it, *planes.legend(look, of, 120), *planes.notes(look, of, 120)]
    assert "\n".join(lines(rows)).isascii()


def test_hosts_are_outlined_and_links_cross_the_outlines() -> None:
    assert drawn(torus((4, 2, 1)), 24) == [
        "     0    1    2    3  ",
        "  ╭─────────┬─────────╮",
        "0 │  0 ━  1 ┿  2 ━  3 │",
        "  │  ┃    ┃ │  ┃    ┃ │",
        "1 │  4 ━  5 ┿  6 ━  7 │",
        "  ╰─────────┴─────────╯",
    ]


def test_joined_ends_leave_at_the_edges() -> None:
    text = drawn(torus((4, 4, 1), wraps=(True, True, False)), 30)
    assert text[1].count("╂") == text[-1].count("╂") == 4
    assert text[2].count("┿") == 3


def test_a_bad_link_shows_its_number_and_its_neighbors_stay_healthy() -> None:
    of = torus((2, 2, 1), worst={(0, 0, 0): 7, (1, 0, 0): 9, (0, 1, 0): 0, (1, 1, 0): 0})
    text = "\n".join(drawn(of, 30, height=7))
    assert text.count("7") == 1
    assert text.count("━") >= 1


def test_a_chip_that_is_missing_leaves_a_gap_without_links_or_outline() -> None:
    whole = torus((4, 2, 1), (1, 1, 1))
    gone = (1, 0, 0)
    part = whole._replace(
        chips=tuple(c for c in whole.chips if c.coords != gone),
        links=tuple(k for k in whole.links if gone not in (k.a, k.b)),
    )
    text = drawn(part, 24)
    assert text[2] == "0 │  0 │    │  2 ┿  3 │"


@pytest.mark.parametrize(
    ("size", "width", "across"),
    [((4, 4, 8), 80, 3), ((4, 4, 8), 120, 4), ((4, 4, 8), 200, 8), ((8, 8, 16), 120, 2)],
)
def test_planes_are_side_by_side_as_far_as_they_fit(size: Size, width: int, across: int) -> None:
    labels = next(line for line in drawn(torus(size), width, height=20) if "z=0" in line)
    assert labels.count("z=") == across


@pytest.mark.parametrize("width", [1, 5, 20, 40, 79])
@pytest.mark.parametrize("size", [(2, 2, 1), (16, 16, 1), (32, 32, 1), (4, 4, 8)])
def test_a_narrow_screen_shows_a_part_and_says_so(size: Size, width: int) -> None:
    of = torus(size, devices=2)
    last = of.chips[-1].key
    drawing = planes.drawn(Look(), of, width, 24, last)
    assert drawing.spots.keys() == {chip.key for chip in of.chips}
    if width >= 20:
        line, column = drawing.spots[last]
        assert column + drawing.chip_width <= width
        assert line < len(drawing.rows)


def test_scattered_and_crowded_places_are_no_picture() -> None:
    far = torus((2, 1, 1))
    chips = (far.chips[0], far.chips[1]._replace(coords=(200, 200, 3)))
    text = drawn(far._replace(chips=chips, links=()))
    assert "too far apart" in text[0]
    same = far._replace(chips=tuple(far.chips[0]._replace(key=n) for n in range(9)), links=())
    assert "same place" in drawn(same)[0]


def test_without_chips_there_are_only_notes() -> None:
    empty = Torus(size=None, wraps=None, chips=(), links=(), notes=("Nothing is known.",))
    assert drawn(empty, 40) == []
    assert planes.legend(Look(), empty, 40) == []
    assert lines(planes.notes(Look(), empty, 40)) == ["Nothing is known."]


@pytest.mark.parametrize(
    "look", [lambda: Look(color=False), lambda: Look(theme="mono"), lambda: Look(theme="dark")]
)
def test_marks_are_beside_the_numbers(look: Callable[[], Look]) -> None:
    of = torus((2, 1, 1))
    chips = (of.chips[0]._replace(mark="x", ratio=None), of.chips[1]._replace(mark="*"))
    text = "\n".join(lines(planes.drawn(look(), of._replace(chips=chips), 40, 24).rows))
    assert "x" in text
    assert "*" in text


def test_links_to_the_next_plane_are_explained_as_they_are_drawn() -> None:
    healthy = torus((4, 4, 4))
    unknown = torus((4, 4, 4), worst={})
    some = torus((4, 4, 4), worst={(0, 0, 0): 0})
    for of, is_healthy, is_unknown in ((healthy, 1, 0), (unknown, 0, 1), (some, 1, 1)):
        text = " ".join(lines(planes.legend(Look(color=False), of, 200)))
        assert ("╱ to the next plane" in text) == bool(is_healthy)
        assert ("· to the next plane, unknown" in text) == bool(is_unknown)
    flat = " ".join(lines(planes.legend(Look(color=False), torus((4, 4, 1)), 200)))
    assert "next plane" not in flat
