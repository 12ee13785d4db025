"""The pure parts: widths, heights, bars and graphs."""

from __future__ import annotations

from itertools import product

import pytest
from support import snapshots
from support.feeds import START_S, Job, ScriptedFeed

from tpusmi.merge.past import past
from tpusmi.model import ABSENT, OK, STALE_HOLDER, SUSPECT_HOLDER, Device, Notice
from tpusmi.report.select import Remark, Selection, selected
from tpusmi.tui import Options, chrome
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.graphs import Graphs
from tpusmi.tui.draw.look import Look, Row, width_of
from tpusmi.tui.draw.table import GAP, Column, fit
from tpusmi.tui.draw.time_axis import axis
from tpusmi.tui.feed import DeviceView
from tpusmi.tui.main.arrange import AROUND, WantedLines, arrange
from tpusmi.tui.main.device_panel import DeviceTable
from tpusmi.tui.scene import Scene


def as_views(full: int) -> dict[str, int]:
    """Lines that so many devices fill, with the title."""
    return {"full": full, "compact": -(-full // 2), "heat": -(-full // 16)}


@pytest.mark.parametrize("devices", [0, 2, 9, 257])
@pytest.mark.parametrize("processes", [0, 1, 3, 40])
@pytest.mark.parametrize("view", DeviceView)
def test_the_parts_fill_the_screen_exactly(devices: int, processes: int, view: str) -> None:
    for height in range(6, 120):
        for notices, prompt, graphs in ((0, 0, 0), (3, 1, 7)):
            want = WantedLines(as_views(devices), processes, notices, prompt, processes > 1, graphs)
            chosen, *heights = arrange(want, height, view)
            assert chosen is not DeviceView.AUTO
            assert view in ("auto", chosen)
            assert sum(heights) == height - AROUND, (height, want, heights)
            assert min(heights) >= 0


@pytest.mark.parametrize(
    ("devices", "height", "view"),
    [(8, 24, "full"), (16, 24, "compact"), (256, 24, "heat"), (256, 600, "full")],
)
def test_the_largest_way_to_show_devices_that_fits_is_taken(
    devices: int, height: int, view: str
) -> None:
    assert arrange(WantedLines(as_views(devices + 1), 3, 0, 0, True), height).view == view


def test_a_small_screen_keeps_rows_of_both_tables() -> None:
    heights = arrange(WantedLines(as_views(9), 3, 3, 0, True), 10, "full")
    assert heights.devices >= 3
    assert heights.processes >= 3


def test_columns_never_take_more_than_the_width() -> None:
    feed = ScriptedFeed((Job(1, "x", 0, 1),))
    columns = DeviceTable(Scene(Look(), Options(), feed.history)).columns()
    absent = frozenset(c.title for c in columns if c.known is not None)
    for width, hidden in product(range(22, 250), (frozenset(), absent)):
        fitted = fit(columns, [c.width for c in columns], width, hidden)
        assert not hidden & {column.title for column, _ in fitted}
        assert sum(w + GAP for _, w in fitted) - GAP <= width
        assert all(w >= column.width for column, w in fitted)


def test_shares_are_drawn_alike_with_a_bar_or_without() -> None:
    feed = ScriptedFeed((Job(1, "x", 0, 1),))
    columns = DeviceTable(Scene(Look(), Options(), feed.history)).columns()
    absent = frozenset(c.title for c in columns if c.known is not None)
    for width, hidden in product(range(22, 250), (frozenset(), absent)):
        fitted = fit(columns, [c.width for c in columns], width, hidden)
        shares = {w for column, w in fitted if column.title in ("MXU", "DUTY", "BW")}
        assert len(shares) <= 1, width


def test_every_cell_is_as_wide_as_its_column() -> None:
    feed = ScriptedFeed((Job(1, "x", 0, 1, fill=0.3),), past_s=30)
    table = DeviceTable(Scene(Look(), Options(), feed.history))
    snapshot = feed.snapshot()
    table.take(snapshot)
    device: Device = snapshot.devices[0]
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
    width, span_s = 10, 300.0
    drawn = []
    for _ in range(int(span_s / width) - int(START_S % (span_s / width))):
        now = feed.snapshot()
        drawn.append(tuple(graphs.of_device(now, device, "hbm_used_bytes", span_s, width)))
    assert len({slots[:-1] for slots in drawn}) == 1
    assert None not in drawn[0]


def test_a_graph_that_is_kept_is_the_one_that_is_read_anew() -> None:
    feed = ScriptedFeed((Job(1, "x", 0, 1, busy=True),), past_s=100, tick_s=1.7)
    kept, device = Graphs(feed.history), feed.jobs[0].devices()[0]
    for n in range(60):
        now = feed.snapshot()
        for metric, width in product(("hbm_used_bytes", "duty_cycle_percent"), (7, 40, 600)):
            again = kept.of_device(now, device, metric, 300.0, width)
            anew = Graphs(feed.history).of_device(now, device, metric, 300.0, width)
            assert again == anew, (n, metric, width)


def test_an_average_has_no_gap_after_a_look_back_or_a_pause() -> None:
    feed = ScriptedFeed((Job(1, "x", 0, 4, busy=True),), past_s=600, tick_s=1.0)
    graphs = Graphs(feed.history)
    for _ in range(3):
        now = feed.snapshot()
        assert None not in graphs.average(now, "duty_cycle_percent", 300.0, 30)
        graphs.average(past(now, feed.history, now.at_s - 90), "duty_cycle_percent", 300.0, 30)
    for _ in range(40):
        now = feed.snapshot()
    assert None not in graphs.average(now, "duty_cycle_percent", 300.0, 30)


def test_a_graph_of_what_was_never_measured_is_blank() -> None:
    feed, device = ScriptedFeed(), Job(1, "x", 0, 1).devices()[0]
    slots = Graphs(feed.history).of_device(feed.snapshot(), device, "hbm_used_bytes", 300.0, 10)
    assert slots == [None] * 10
    assert Look().spark(slots, 1.0, 10) == " " * 10
    assert plot.area(Look(), slots, 1.0, 5, 2) == [" " * 5] * 2


@pytest.mark.parametrize("ascii", [False, True])
def test_nothing_that_was_measured_is_not_blank(ascii: bool) -> None:
    look = Look(ascii=ascii)
    zero, full = [0.0] * 20, [1.0] * 20
    above, below = plot.area(look, zero, 1.0, 10, 2)
    assert above.strip() == ""
    assert " " not in below
    assert len({*"".join(plot.area(look, full, 1.0, 10, 3))}) == 1


@pytest.mark.parametrize("width", [20, 47, 130])
def test_the_time_axis_ends_with_now_and_overlaps_nothing(width: int) -> None:
    text = "".join(piece.text for piece in axis(Look(), 600.0, width))
    assert len(text) == width
    assert text.endswith("now")
    labels = text.split()
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("text", ["100.0 GiB", "366.2 GiB", "1023.9 MiB", "15.7 GiB", "100 %"])
def test_the_top_of_a_scale_is_never_cut(text: str) -> None:
    curve = plot.Curve("memory", "", [1.0], 1.0, text)
    scale = "".join(piece.text for piece in plot.graph(Look(), curve, 40, 4)[1])
    number, unit = text.split()
    assert f"{number.partition('.')[0]}" in scale
    assert f" {unit}│" in scale
    assert "…" not in scale


def test_text_is_cut_with_a_mark_and_wide_characters_count_twice() -> None:
    assert Look().fitted("abcdef", 4) == "abc…"
    assert Look(ascii=True).fitted("abcdéf", 5) == "abcd~"
    assert Look().fitted("訓練", 6) == "訓練  "
    assert Look().fitted("x", 0) == ""


# -- notices


def _noticed(*elsewhere: Notice) -> list[str]:
    s = ScriptedFeed().snapshot()._replace(warnings=(MUTE, SUSPECT, STALE))
    return [remark.text for remark in chrome.notices(s, elsewhere)]


MUTE = Notice("no_metrics", "serves no metrics", 1)
SUSPECT = Notice(SUSPECT_HOLDER, "may be stale", 2)
STALE = Notice(STALE_HOLDER, "is stale", 3)


def test_notices_of_stale_holders_come_first_and_those_that_stand_elsewhere_do_not_come() -> None:
    assert _noticed() == ["pid 3: is stale", "pid 2: may be stale", "pid 1: serves no metrics"]
    assert _noticed(STALE, MUTE) == ["pid 2: may be stale"]


LONG = Remark("libtpu failed: " + "a long story " * 8)


@pytest.mark.parametrize("width", [30, 80])
@pytest.mark.parametrize("most", [0, 1, 2, 4])
def test_how_many_more_notices_there_are_is_never_cut(width: int, most: int) -> None:
    lines = chrome.notice_lines(Look(), [LONG] * 4, width, most)
    assert len(lines) == most
    if 0 < most < 4:
        last = "".join(piece.text for piece in lines[-1])
        assert last.endswith(f" +{4 - most}" if width < 60 else f" (and {4 - most} more)")
        assert width_of(lines[-1]) <= width


def test_a_page_without_processes_says_whether_there_are_none_or_they_are_left_out() -> None:
    look = Look()
    s = snapshots.machine()
    chosen = selected(s, Selection(users=("nobody",)))
    texts = [
        "".join(segment.text for row in chrome.nothing(look, shown, "") for segment in row)
        for shown in (chosen, snapshots.nothing())
    ]
    assert texts[0] == chrome.OTHERS_ONLY
    assert "tpusmi.start()" in texts[1]


def test_a_simulated_host_that_has_ended_is_not_a_host_without_jobs() -> None:
    gone = snapshots.nothing()._replace(simulated=True)
    silent = tuple(o._replace(status=ABSENT) for o in gone.sources)
    (line,) = chrome.nothing(Look(), gone._replace(sources=silent), "")
    assert "".join(piece.text for piece in line) == chrome.HOST_ENDED
    answers = (silent[0]._replace(status=OK), *silent[1:])
    assert len(chrome.nothing(Look(), gone._replace(sources=answers), "")) > 1


def test_a_column_whose_texts_can_be_cut_leaves_room_for_others() -> None:
    def draw(item: object, width: int) -> Row:
        return ()

    name = Column[object]("NAME", draw, 10)
    words = Column[object]("WORDS", draw, 8, rank=1, most=60, sure=20, text=str)
    number = Column[object]("NUMBER", draw, 6, rank=2, most=30)
    at = {w: fit([name, words, number], [10, 40, 6], w, frozenset()) for w in (30, 38, 58, 70)}
    widths = {w: {c.title: width for c, width in chosen} for w, chosen in at.items()}
    assert widths[30] == {"NAME": 10}
    assert widths[38] == {"NAME": 10, "WORDS": 20, "NUMBER": 6}
    assert widths[58] == {"NAME": 10, "WORDS": 40, "NUMBER": 6}
    assert widths[70] == {"NAME": 10, "WORDS": 40, "NUMBER": 18}
