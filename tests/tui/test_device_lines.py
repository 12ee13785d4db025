"""The pure parts of the device page: columns of facts, links, rates, the roofline, graphs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import device_feeds
from support.feeds import START_S

from tpusmi.chips import GENERATIONS, by_name
from tpusmi.merge.roofline import Roofline
from tpusmi.model import Device, DeviceKey, Link
from tpusmi.model.several import fragmented_percent
from tpusmi.report.quantities import HBM
from tpusmi.tui import Options
from tpusmi.tui.device import chip_limits
from tpusmi.tui.device.chip_limits import rates
from tpusmi.tui.device.device_facts import health
from tpusmi.tui.device.device_graphs import DeviceGraphs
from tpusmi.tui.draw import blocks
from tpusmi.tui.draw.blocks import Fact
from tpusmi.tui.draw.look import Look, Row, width_of
from tpusmi.tui.draw.plot import SCALE_WIDTH, columns_for
from tpusmi.tui.scene import Scene

PEAK, BANDWIDTH = 197e12, 819e9
BELOW = Roofline(PEAK, BANDWIDTH, 101e12, 543e9)
ABOVE = Roofline(PEAK, BANDWIDTH, 150e12, 100e9)


def plain(rows: list[Row]) -> list[str]:
    return ["".join(piece.text for piece in row) for row in rows]


@pytest.mark.parametrize(
    ("number", "letter"), [(0, "H"), (1, "T"), (5, "T"), (6, "P"), (9, "P"), (10, "U")]
)
def test_the_health_of_a_link_is_a_letter_too(number: int, letter: str) -> None:
    assert health(number).letter == letter
    assert health(number).word[0].upper() == letter


def test_a_link_is_called_by_its_place_on_the_chip() -> None:
    assert Link(0, "tray1.chip3.ici0.int", 0).port == "ici0"
    assert Link(0, "something else", 0).port == "something else"


@pytest.mark.parametrize(
    ("used", "limit", "largest", "percent"),
    [
        (6, 10, 4, 0),
        (6, 10, 1, 75),
        (6, 10, 5, 0),
        (10, 10, 0, None),
        (None, 10, 4, None),
        (6, None, 4, None),
        (6, 10, None, None),
    ],
)
def test_fragmentation_is_the_free_memory_that_one_allocation_cannot_have(
    used: float | None, limit: float | None, largest: float | None, percent: float | None
) -> None:
    assert fragmented_percent(used, limit, largest) == percent


@given(width=st.integers(1, 220), columns=st.integers(1, 6))
def test_columns_of_facts_are_as_wide_as_they_should_be(width: int, columns: int) -> None:
    look = Look()
    facts = (Fact("largest free", "123.4 GiB", "agent 59s", "9m old"), Fact("名前", "値"))
    made = [blocks.of_facts(look, f"BLOCK {n}", facts) for n in range(5)]
    rows = blocks.drawn(look, blocks.packed(made, columns), width)
    each = max(1, (width + blocks.GAP) // columns - blocks.GAP)
    assert {width_of(row) for row in rows} == {each * columns + blocks.GAP * (columns - 1)}


def test_every_block_is_put_under_the_shortest_column() -> None:
    look = Look()
    sizes = (9, 3, 3, 2)
    made = [blocks.of_facts(look, str(n), [Fact("x", "1")] * n) for n in sizes]
    assert [[b.height for b in column] for column in blocks.packed(made, 3)] == [[9], [3, 2], [3]]


@pytest.mark.parametrize("generation", [g.name for g in GENERATIONS])
def test_rates_are_told_of_the_device_and_of_its_chip_apart(generation: str) -> None:
    g = by_name(generation)
    assert g is not None
    device = Device(DeviceKey(None, 0), 0, 0, "tpu", g.jax_kinds[0], None, 0)
    block = rates(Look(), device_feeds.chips().snapshot(), device)
    assert block is not None
    assert block.title == g.kind
    rows = [line.split() for line in plain(block.draw(blocks.LEAST_WIDTH, block.height))]
    told = {" ".join(row[:-2]): (float(row[-2]), float(row[-1])) for row in rows[1:]}
    assert told["bf16 TFLOP/s"][1] == pytest.approx(g.bf16_flops_per_s / 1e12)
    assert told["TensorCores"] == (g.cores_per_device, g.cores_per_chip)
    for name, (one, whole) in told.items():
        assert one * g.devices_per_chip == pytest.approx(whole, rel=1e-3), name


def test_nothing_is_told_of_a_chip_that_nobody_knows() -> None:
    device = Device(DeviceKey(None, 0), 0, 0, "gpu", "NVIDIA H100", None, None)
    assert rates(Look(), device_feeds.gpus().snapshot(), device) is None


def test_the_roofline_in_words() -> None:
    assert chip_limits.in_words(BELOW) == (
        "memory-bound: 186 FLOP/byte (ridge: 241), 66 % of the roof"
    )
    assert chip_limits.in_words(ABOVE).startswith("compute-bound: 1500 FLOP/byte (ridge: 241)")
    assert "step(flops=)" in chip_limits.in_words(Roofline(PEAK, BANDWIDTH, None, 5e11))
    assert "the HBM bandwidth is not measured" in chip_limits.in_words(
        Roofline(PEAK, BANDWIDTH, 1e12, None)
    )
    assert chip_limits.roofline_block(Look(), Roofline(None, None, 1e12, 5e11), roomy=True) is None


@pytest.mark.parametrize("ascii", [False, True])
def test_the_point_is_left_of_the_ridge_under_the_slope_and_right_of_it_under_the_flat_roof(
    ascii: bool,
) -> None:
    look, mark = Look(ascii=ascii), "O" if ascii else "●"
    for roofline, is_left in ((BELOW, True), (ABOVE, False)):
        *lines, axis = plain(chip_limits.plot(look, roofline, 60, 12))
        y = next(n for n, line in enumerate(lines) if mark in line)
        ridge = axis.index("^" if ascii else "↑")
        assert (lines[y].index(mark) < ridge) == is_left
        column = "".join(line[lines[y].index(mark)] for line in lines)
        assert not column[y + 1 :].strip()
        assert ascii or column[:y].strip()  # a coarse plot has both in one cell


@given(
    flops=st.floats(1.0, 1e18),
    rate=st.floats(1.0, 1e15),
    width=st.integers(1, 90),
    height=st.integers(1, 30),
    ascii=st.booleans(),
)
def test_the_plot_fits_wherever_the_point_is(
    flops: float, rate: float, width: int, height: int, ascii: bool
) -> None:
    roofline = Roofline(PEAK, BANDWIDTH, flops, rate)
    lines = plain(chip_limits.plot(Look(ascii=ascii), roofline, width, height))
    assert len(lines) == max(2, height)
    assert {len(line) for line in lines} == {max(width, chip_limits.SCALE_WIDTH + 2)}
    assert sum(line.count("O" if ascii else "●") for line in lines[:-1]) == 1


@pytest.mark.parametrize(
    ("count", "width", "height", "columns"),
    [
        *((4, 80, 9, 2), (4, 120, 18, 2), (4, 200, 36, 2), (3, 120, 18, 3), (3, 80, 24, 1)),
        *((2, 80, 11, 2), (1, 400, 9, 1), (4, 40, 30, 1), (0, 80, 24, 1), (5, 1, 1, 1)),
    ],
)
def test_graphs_are_put_in_columns_by_the_shape_of_the_page(
    count: int, width: int, height: int, columns: int
) -> None:
    assert columns_for(count, width, height) == columns


@pytest.mark.parametrize("span_s", [600, 300, 120, 60])
def test_graphs_fill_their_lines_whatever_the_size(span_s: int) -> None:
    feed = device_feeds.chips()
    scene = Scene(Look(), Options(), feed.history)
    scene.take(snapshot := feed.snapshot())
    scene.refresh()
    graphs = DeviceGraphs(scene, snapshot, snapshot.devices[0], span_s)
    assert len(graphs.drawn) == 4
    for width in range(30, 230, 7):
        for height in range(9, 60, 5):
            lines = graphs.lines(width, height)
            assert len(lines) == height
            widths = {width_of(row) for row in lines}
            assert len(widths) == 1
            assert width - len(graphs.drawn) < widths.pop() <= width


def test_the_newest_second_is_at_the_right_edge_of_every_span() -> None:
    feed = device_feeds.chips()
    key = feed.jobs[0].devices()[0].key
    scene = Scene(Look(ascii=True), Options(), feed.history)
    scene.take(snapshot := feed.snapshot())
    scene.refresh()
    newest = feed.history.at("hbm_used_bytes", key, START_S, 0.0)
    for span_s in (600, 300, 120, 60):
        graphs = DeviceGraphs(scene, snapshot, snapshot.devices[0], span_s)
        values = graphs.values(HBM, 150 + SCALE_WIDTH)
        assert len(values) == 150
        assert values[-1] == newest
