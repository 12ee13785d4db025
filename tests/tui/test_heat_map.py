"""The heat map: what a cell shows, how thousands of them fit, and where its cursor goes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorType
from support.clocks import takes_at_most

from tpusmi.tui.draw.heat_cells import HeatCell
from tpusmi.tui.draw.heat_layout import Group, HeatLayout, fitted
from tpusmi.tui.draw.heat_map import (
    LETTER_WIDTHS,
    WIDTHS,
    HeatStyle,
    Label,
    groups_of,
    line_of,
)
from tpusmi.tui.draw.look import Look, Row, width_of

LOOKS = {
    "true colors": Look(theme="dark"),
    "256 colors": Look(theme="light", terminal_colors=256),
    "16 colors": Look(terminal_colors=16),
    "no colors": Look(color=False),
    "ascii": Look(color=False, ascii=True),
}
CELLS = st.builds(
    HeatCell,
    key=st.just("x"),
    name=st.just("tpu:0"),
    ratio=st.none() | st.floats(),
    mark=st.sampled_from(("", "!", "*", "x", "訓", "two")),
    is_old=st.booleans(),
)


def plain(row: Row) -> str:
    return "".join(piece.text for piece in row)


def drawn(look: Look, ratio: float | None, width: int, **more: object) -> str:
    return plain(HeatStyle(look).cell(HeatCell("k", "tpu:0", ratio, **more), width))  # type: ignore[arg-type]


def rows(look: Look, cells: list[HeatCell], label: Label | None = None) -> list[Row]:
    """A heat map of 80 columns and at most 48 lines."""
    style = HeatStyle(look)
    layout = fitted(groups_of(cells, label), [c.name for c in cells], 80, 48, style.widths)
    lines = (line_of(look, style, layout, cells, n, None) for n in range(layout.line_count))
    return [style.legend(["HBM"], 80, cell_width=layout.cell_width), *lines]


def slice_of(hosts: int, each: int = 4) -> list[HeatCell]:
    return [
        HeatCell((host, chip), f"h{host}:{chip}", (37 * host + chip) % 101 / 100)
        for host in range(hosts)
        for chip in range(each)
    ]


def host_of(cell: HeatCell) -> str:
    assert isinstance(cell.key, tuple)
    return f"host-{cell.key[0]:04}"


def layout_of(
    cells: list[HeatCell], width: int, height: int, look: Look | None = None
) -> HeatLayout:
    names = [cell.name for cell in cells]
    widths = HeatStyle(look or LOOKS["true colors"]).widths
    return fitted(groups_of(cells, host_of), names, width, height, widths)


@given(CELLS, st.sampled_from(WIDTHS), st.sampled_from([*LOOKS.values()]), st.booleans())
def test_a_cell_has_exactly_its_width(
    cell: HeatCell, width: int, look: Look, selected: bool
) -> None:
    row = HeatStyle(look).cell(cell, width, selected=selected)
    assert width_of(row) == width
    assert not look.only_ascii or plain(row).isascii()


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("width", WIDTHS)
def test_unknown_is_a_dash_on_no_color_and_never_the_color_of_0(look: Look, width: int) -> None:
    style = HeatStyle(look)
    for ratio in (None, math.nan, math.inf):
        (piece,) = style.cell(HeatCell("k", "tpu:0", ratio), width)
        assert piece.text.strip() == look.fitted("–", 1)
        assert piece.style is not None
        assert piece.style.bgcolor is None
    (zero,) = style.cell(HeatCell("k", "tpu:0", 0.0), width)
    assert (zero.text, zero.style) != (piece.text, piece.style)


def test_an_old_value_is_gray_whatever_it_is() -> None:
    style = HeatStyle(LOOKS["true colors"])
    for width in WIDTHS:
        (piece,) = style.cell(HeatCell("k", "tpu:0", 0.97, is_old=True), width)
        assert piece.style == LOOKS["true colors"].style["dim"]
    assert drawn(LOOKS["true colors"], 0.97, 4, is_old=True) == "(97)"
    assert drawn(LOOKS["true colors"], 0.97, 1, is_old=True) == "o"
    assert drawn(LOOKS["true colors"], 0.97, 4, is_old=True, mark="x") == "x97 "


@pytest.mark.parametrize(
    ("ratio", "mark", "four", "three", "two", "one"),
    [
        (0.72, "", " 72 ", " 72", "  ", " "),
        (0.05, "", "  5 ", "  5", "  ", " "),
        (1.0, "", " 100", "100", "  ", " "),
        (0.001, "", " <1 ", " <1", "  ", " "),
        (0.72, "!", "!72 ", "!72", " !", "!"),
        (1.0, "*", "*100", " * ", " *", "*"),
        (None, "x", "x – ", "x –", "–x", "x"),
    ],
)
def test_the_number_is_inside_where_there_is_room(  # a column each
    ratio: float | None, mark: str, four: str, three: str, two: str, one: str
) -> None:
    look = LOOKS["true colors"]
    assert [drawn(look, ratio, w, mark=mark) for w in WIDTHS] == [four, three, two, one]


@pytest.mark.parametrize("name", ["16 colors", "no colors", "ascii"])
def test_letters_stand_for_colors_where_there_are_none(name: str) -> None:
    look = LOOKS[name]
    assert HeatStyle(look).widths == LETTER_WIDTHS
    assert [drawn(look, n / 10, 1) for n in range(11)] == [*"abcdefghijj"]
    assert drawn(look, 0.72, 2) == "h "
    assert drawn(look, 0.72, 2, mark="!") == "h!"
    assert drawn(look, 0.72, 4) == " 72 "


def test_each_terminal_gets_colors_that_it_has() -> None:
    kinds = {
        "true colors": {ColorType.TRUECOLOR},
        "256 colors": {ColorType.EIGHT_BIT},
        "16 colors": {ColorType.STANDARD},
        "no colors": set(),
    }
    for name, expected in kinds.items():
        styles = [HeatStyle(LOOKS[name]).swatch(n / 10) for n in range(11)]
        colors = {c.type for s in styles for c in (s.color, s.bgcolor) if c and not c.is_default}
        assert colors == expected, name


def test_another_theme_is_drawn_anew() -> None:
    look = Look(theme="dark")
    style, cell = HeatStyle(look), HeatCell("k", "tpu:0", 0.7)
    assert plain(style.cell(cell, 1)) == " "
    look.take_theme("mono")
    assert plain(style.cell(cell, 1)) == "h"


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("width", [10, 40, 80, 120, 200])
def test_the_legend_has_the_quantity_first_and_is_as_wide_as_the_map(
    look: Look, width: int
) -> None:
    for cell_width in HeatStyle(look).widths:
        row = HeatStyle(look).legend(["HBM, %"], width, cell_width=cell_width)
        assert width_of(row) == width
        assert plain(row).startswith("HBM, %")
        if width >= 80:
            assert "100 %" in plain(row)
            assert f"{look.fitted('–', 1)} unknown" in plain(row)
            assert "old" in plain(row)


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_the_title_is_shortened_before_a_mark_goes_without_its_meaning(look: Look) -> None:
    titles = ["HBM in use, % of the limit (g: next)", "HBM (g: next)", "HBM"]
    notes = ["t1v-n-7b8e-w-0:0 72 %", "! warning", "x down", "* slow"]
    for width in (76, 100, 140):
        name, *marks = notes
        row = plain(HeatStyle(look).legend(titles, width, notes=[name], marks=marks, cell_width=1))
        assert all(note in row for note in notes), width
        assert "100 %" in row
        assert row.startswith(titles[0]) == (width == 140)


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_marks_are_explained_before_a_long_name_takes_the_room(look: Look) -> None:
    name = "a-host-with-a-rather-long-name-0 tpu:13 72 %"
    marks = ["! warning", "x silent", "* slow"]
    row = plain(HeatStyle(look).legend(["HBM"], 80, notes=[name], marks=marks, cell_width=1))
    assert all(mark in row for mark in marks)
    assert name not in row


@pytest.mark.parametrize(
    ("hosts", "size", "cell_width", "labeled"),
    [
        (2, (80, 20), 4, True),
        (64, (120, 22), 4, True),
        (64, (80, 16), 4, False),
        (256, (120, 30), 3, False),
        (1024, (200, 55), 2, False),
        (1024, (200, 30), 1, False),
        (1024, (120, 35), 1, False),
    ],
)
def test_cells_shrink_until_all_of_them_fit(
    hosts: int, size: tuple[int, int], cell_width: int, labeled: bool
) -> None:
    layout = layout_of(slice_of(hosts), *size)
    assert layout.line_count <= size[1]
    assert layout.cell_width == cell_width
    assert bool(layout.label_width) is labeled


def test_groups_of_many_sizes_stay_apart() -> None:
    sizes = [2000, 1000, 500, *[4] * 125]
    groups = [Group(f"job-{n}", size) for n, size in enumerate(sizes)]
    layout = fitted(groups, ["x"] * 4000, 200, 55, WIDTHS)
    assert layout.line_count <= 55
    assert layout.gap == 1
    assert {2000, 3000, 3500, 3504} <= {*layout.starts}


def test_more_than_fit_are_the_smallest_cells() -> None:
    layout = layout_of(slice_of(4096), 80, 20)
    assert (layout.cell_width, layout.gap, layout.across) == (1, 0, 80)
    assert layout.line_count == -(-4 * 4096 // 80)


def test_a_label_is_its_host_and_one_host_has_the_name_of_the_first_cell_of_a_line() -> None:
    look = LOOKS["no colors"]
    grouped = rows(look, slice_of(3), host_of)
    assert plain(grouped[1]).split("host-")[1].split() == ["0000", "0", "1", "2", "3"]
    assert "host-0002" in plain(grouped[1]) + plain(grouped[2])
    single = rows(look, slice_of(1, 40))
    assert [plain(row).split()[0] for row in single[1:]] == ["h0:0", "h0:16", "h0:32"]


def places(layout: HeatLayout) -> Iterator[tuple[int, int]]:
    return (layout.place(index) for index in range(layout.total))


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=30),
    st.integers(1, 120),
    st.integers(1, 20),
    st.sampled_from([WIDTHS, LETTER_WIDTHS]),
)
def test_every_cell_has_a_place_of_its_own_where_a_click_finds_it(
    counts: list[int], width: int, height: int, widths: tuple[int, ...]
) -> None:
    groups = [Group(f"host-{n}", count) for n, count in enumerate(counts) if count]
    names = [f"{g.label}:{n}" for g in groups for n in range(g.cells)]
    layout = fitted(groups, names, width, height, widths)
    taken = [*places(layout)]
    assert len({*taken}) == len(names) == layout.total
    for index, (line, x) in enumerate(taken):
        assert 0 <= line < layout.line_count
        assert layout.index_at(line, x) == index
        assert layout.index_at(line, x + layout.cell_width - 1) == index
        assert layout.nearest(line, x) == index
    drawn_cells = [i for n in range(layout.line_count) for _, b in layout.blocks(n) for i in b]
    assert drawn_cells == [*range(len(names))]


def test_a_line_is_as_wide_as_its_places_say() -> None:
    look, cells = LOOKS["true colors"], slice_of(37, 3)
    layout = layout_of(cells, 90, 12)
    style = HeatStyle(look)
    for line in range(layout.line_count):
        assert width_of(line_of(look, style, layout, cells, line)) <= 90


def test_no_cells_are_a_legend_alone() -> None:
    assert len(rows(LOOKS["true colors"], [])) == 1


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_four_thousand_cells_are_drawn_in_milliseconds(look: Look) -> None:
    cells, style = slice_of(1024), HeatStyle(look)

    def draw() -> None:
        layout = layout_of(cells, 200, 55, look)
        for line in range(layout.line_count):
            line_of(look, style, layout, cells, line, (512, 2))

    with takes_at_most(1.0):
        for _ in range(10):
            draw()
