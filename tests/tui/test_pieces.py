"""The pure parts: widths, heights, bars and graphs."""

from __future__ import annotations

from itertools import product

import pytest
from scripted import START_S, Job, ScriptedFeed

from tpusmi.model import Device
from tpusmi.tui.arrange import AROUND, Wanted, arrange
from tpusmi.tui.cells import age
from tpusmi.tui.columns import GAP, fit
from tpusmi.tui.devices import DeviceTable
from tpusmi.tui.graphs import SPAN_S, Graphs
from tpusmi.tui.look import Look, width_of


@pytest.mark.parametrize("devices", [0, 2, 9, 257])
@pytest.mark.parametrize("processes", [0, 1, 3, 40])
@pytest.mark.parametrize("expanded", [False, True])
def test_the_parts_fill_the_screen_exactly(devices: int, processes: int, expanded: bool) -> None:
    for height in range(6, 120):
        for notices, prompt in ((0, 0), (3, 1)):
            want = Wanted(devices, processes, notices, prompt, processes > 1, expanded)
            heights = arrange(want, height)
            assert sum(heights) == height - AROUND, (height, want, heights)
            assert min(heights) >= 0


def test_a_small_screen_keeps_rows_of_both_tables() -> None:
    heights = arrange(Wanted(9, 3, 3, 0, True, False), 10)
    assert heights.devices >= 3
    assert heights.processes >= 3


def test_columns_never_take_more_than_the_width() -> None:
    feed = ScriptedFeed((Job(1, "x", 0, 1),))
    columns = DeviceTable(Look(), feed.history).columns()
    absent = frozenset(c.title for c in columns if c.known is not None)
    for width, hidden in product(range(22, 250), (frozenset(), absent)):
        fitted = fit(columns, [c.width for c in columns], width, hidden)
        assert not hidden & {column.title for column, _ in fitted}
        assert sum(w + GAP for _, w in fitted) - GAP <= width
        assert all(w >= column.width for column, w in fitted)


def test_every_cell_is_as_wide_as_its_column() -> None:
    feed = ScriptedFeed((Job(1, "x", 0, 1, fill=0.3),), past_s=30)
    table = DeviceTable(Look(), feed.history)
    table.snapshot = feed.snapshot()
    device: Device = table.snapshot.devices[0]
    for column in table.columns():
        for width in range(column.width, column.width + 30):
            assert width_of(column.draw(device, width)) == width, column.title


@pytest.mark.parametrize("ascii", [False, True])
def test_a_bar_is_as_wide_as_it_should_be(ascii: bool) -> None:
    look = Look(ascii=ascii)
    for width in range(1, 40):
        for percent in range(-10, 130, 3):
            for peak in (None, 0.0, 0.5, 1.0, 1.7):
                assert width_of(look.bar(percent / 100, peak, width, "good")) == width


def test_a_graph_stands_still_within_a_time_slot() -> None:
    feed = ScriptedFeed((Job(1, "x", 0, 1),), past_s=400, tick_s=1.0)
    graphs, device = Graphs(feed.history), feed.jobs[0].devices()[0]
    width = 10
    drawn = []
    for _ in range(int(SPAN_S / width) - int(START_S % (SPAN_S / width))):
        drawn.append(tuple(graphs.values(device, feed.snapshot(), width)[0]))
    assert len({slots[:-1] for slots in drawn}) == 1
    assert None not in drawn[0]


def test_a_graph_of_what_was_never_measured_is_blank() -> None:
    feed = ScriptedFeed((Job(1, "x", 0, 1),), changes={"values": {}})
    graphs, device = Graphs(ScriptedFeed().history), feed.jobs[0].devices()[0]
    slots, top = graphs.values(device, feed.snapshot(), 10)
    assert Look().spark(slots, top, 10) == " " * 10


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0s"), (59.9, "59s"), (60, "1m"), (7200, "2h"), (200_000, "2d")]
)
def test_an_age_is_in_its_largest_unit(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_text_is_cut_with_a_mark_and_wide_characters_count_twice() -> None:
    assert Look().fitted("abcdef", 4) == "abc…"
    assert Look(ascii=True).fitted("abcdéf", 5) == "abcd~"
    assert Look().fitted("訓練", 6) == "訓練  "
    assert Look().fitted("x", 0) == ""
