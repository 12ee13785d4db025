"""The pure parts of the job page: runs of phases, shares, rates, a line over a graph, the past."""

from __future__ import annotations

import pytest
from support.feeds import START_S
from support.job_feeds import PID, story

from tpusmi.merge.past import past
from tpusmi.model import PHASES, History, ProcessKey, Reading
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.graphs import Graphs, dominant, most, stretched
from tpusmi.tui.draw.look import Look, Row, width_of
from tpusmi.tui.job.job_graphs import per_minute, shares, time_line

KEY = ProcessKey(1, 100)
S, C, R, I, X = (float(PHASES.index(name)) for name in PHASES)  # noqa: E741  # their letters


def words(row: Row) -> str:
    return "".join(piece.text for piece in row)


def test_a_run_of_a_phase_is_its_letter_and_a_line() -> None:
    assert words(time_line(Look(), [None, S, C, C, C, R, R, I, I, X, None])) == " SC━━R━I─X "
    assert words(time_line(Look(ascii=True), [C, C, I, I])) == "C#I."


def test_numbers_that_are_no_phase_are_blank() -> None:
    assert words(time_line(Look(), [99.0, -1.0, R])) == "  R"
    assert shares([99.0, -1.0], 2) == []


def test_shares_are_of_the_time_that_is_known() -> None:
    assert shares([-1.0] * 10 + [R] * 30 + [C] * 10, 50) == [
        "running 75 %",
        "compiling 25 %",
        "of 40.0 s",
    ]
    assert shares([R] * 499 + [I], 500) == ["running 100 %", "idle 0.2 %"]
    assert shares([R] * 49 + [-1.0], 50) == ["running 100 %"]


def test_a_phase_is_the_one_that_takes_most_of_a_slot_and_no_mean() -> None:
    history = History()
    for second in range(100):
        phase = I if second % 10 < 3 else S
        history.add([Reading("phase", KEY, phase, 1000.0 + second, "agent", 5.0)])
    slots = Graphs(history).of((KEY,), "phase", 1099.0, 100.0, 10, dominant)
    assert slots == [S] * 10


@pytest.mark.parametrize("count", [7, 10, 60, 71, 142, 222])
def test_a_graph_that_is_drawn_again_is_the_same(count: int) -> None:
    history = History()
    for second in range(600):
        history.add([Reading("steps", KEY, float(second**2 % 97), 1000.0 + second, "agent", 5.0)])
    for at_s in (1599.0, 1358.4):
        graphs = Graphs(history)
        once = list(graphs.of((KEY,), "steps", at_s, 600.0, count))
        assert graphs.of((KEY,), "steps", at_s, 600.0, count) == once


def test_graphs_of_one_metric_made_in_two_ways_are_not_mixed() -> None:
    history = History()
    for second in range(20):
        history.add([Reading("steps", KEY, float(second), 1000.0 + second, "agent", 5.0)])
    graphs = Graphs(history)
    assert graphs.of((KEY,), "steps", 1019.0, 20.0, 2, most)[-1] == 19.0
    assert graphs.of((KEY,), "steps", 1019.0, 20.0, 2)[-1] == 14.5


def test_a_short_span_is_stretched_over_a_wide_graph() -> None:
    assert stretched([1.0, None], 4) == [1.0, 1.0, None, None]
    assert stretched([1.0, 2.0, 3.0], 3) == [1.0, 2.0, 3.0]
    assert stretched([], 2) == [None, None]


def test_compilations_are_counted_over_the_minute_before() -> None:
    assert per_minute([0, 0, 5, 5, 5], 30.0) == [0, 0, 5, 5, 0]
    assert per_minute([None, 7, None, 9], 30.0) == [None, 0, None, 2]
    assert per_minute([9, 1], 30.0) == [0, 0]  # another process counts from the start
    assert per_minute([None, None], 30.0) == [None, None]


@pytest.mark.parametrize(
    ("value", "top"), [(0.0, 1.0), (0.102, 0.12), (1.0, 1.0), (99.9, 100.0), (7.1, 8.0), (81, 100)]
)
def test_the_top_of_a_scale_is_round_and_not_below_the_value(value: float, top: float) -> None:
    assert plot.round_top(value) == pytest.approx(top)


@pytest.mark.parametrize(
    ("top", "drawn"),
    [
        ("100.0 GiB", "100 GiB"),
        ("15.8 GiB", "15.8 GiB"),
        ("0.02 s", "0.02 s"),
        ("1000 GiB", "1000 GiB"),
    ],
)
def test_the_top_of_a_scale_is_never_cut(top: str, drawn: str) -> None:
    rows = plot.graph(Look(), plot.Curve("x", "", [1.0] * 4, 4.0, top), 20, 5)
    assert words(rows[1])[: plot.SCALE_WIDTH - 1].strip() == drawn


def test_a_line_over_a_graph_is_its_upper_edge_alone() -> None:
    curve = plot.Curve("x", "", [1.0] * 4, 4.0, "4", line=[4.0] * 4)
    assert [words(r)[plot.SCALE_WIDTH :] for r in plot.graph(Look(), curve, 11, 5)[1:]] == [
        "⠉⠉",
        "  ",
        "  ",
        "⣿⣿",
    ]
    rows = plot.graph(Look(ascii=True), curve._replace(values=[1.0] * 2, line=[4.0] * 2), 11, 5)
    assert [words(r)[plot.SCALE_WIDTH :] for r in rows[1:]] == ["--", "  ", "  ", "##"]


@pytest.mark.parametrize("ascii", [False, True])
def test_a_graph_with_a_line_is_as_wide_as_it_should_be(ascii: bool) -> None:
    curve = plot.Curve("x", "", [1.0, None, 3.0], 4.0, "4", line=[2.0, 3.0, None])
    for width in range(plot.SCALE_WIDTH + 1, 60):
        for row in plot.graph(Look(ascii=ascii), curve, width, 4):
            assert width_of(row) == width


def test_the_past_has_the_phase_of_then() -> None:
    feed = story()
    now = feed.snapshot()

    def phase(back_s: float) -> tuple[str, str | None]:
        process = past(now, feed.history, START_S - back_s).processes[0]
        assert process.pid == PID
        return process.state, process.phase

    assert phase(500) == ("live", "compiling")
    assert phase(230) == ("live", "idle")
    assert phase(555) == ("live", "starting")


def test_a_process_that_has_ended_since_was_alive_in_the_past() -> None:
    feed = story(state="dead", phase="ended")
    now = feed.snapshot()
    assert past(now, feed.history, START_S - 300).processes[0].state == "live"
    assert past(now, History(), START_S - 300).processes[0].state == "dead"
