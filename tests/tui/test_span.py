"""How far back graphs go: by itself, by a key, on every page, and in the past."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.dashboards import dashboard, press, screen_text, shown, text
from support.device_feeds import chips
from support.feeds import START_S, Job, ScriptedFeed, many_devices
from support.memory_feeds import MemoryJob
from textual.pilot import Pilot

from tpusmi.model import History, ProcessKey, Reading, Value
from tpusmi.tui.draw.graphs import held
from tpusmi.tui.draw.look import Look
from tpusmi.tui.draw.time_axis import axis
from tpusmi.tui.keys import key_names
from tpusmi.tui.page import SPANS_S, Fit, in_words, next_choice, shortest
from tpusmi.tui.pages import keys_by_page

KEY, NAME = ProcessKey(1, 1), "steps"
TALL = (120, 50)
PAGES = {"main": (), "device": ("d",), "memory": ("m",), "job": ("j",)}


def history(*seconds: int, fresh_s: float = 0.0) -> History:
    found = History()
    found.add([Reading(NAME, KEY, 1.0, s, "agent", fresh_s) for s in seconds])
    return found


def axes(pilot: Pilot[None]) -> set[str]:
    """The oldest label of every time axis on the screen."""
    lines = (line.strip() for line in screen_text(pilot))
    return {line.split()[0] for line in lines if line.endswith(("now", "then"))}


# -- which span


@pytest.mark.parametrize(
    ("seconds", "span_s"),
    [
        *((-5, 60), (0, 60), (1, 60), (60, 60), (61, 120), (120, 120), (121, 300), (300, 300)),
        *((301, 600), (600, 600), (601, 600), (86_400, 600)),
    ],
)
def test_the_shortest_span_that_has_all_there_is_is_taken(seconds: int, span_s: int) -> None:
    assert shortest(seconds) == span_s


@given(lengths=st.lists(st.integers(0, 700), min_size=1, max_size=20))
def test_all_that_fits_in_any_span_is_drawn_and_no_shorter_span_would_do(
    lengths: list[int],
) -> None:
    for seconds in lengths:
        span_s = shortest(seconds)
        assert seconds <= span_s or span_s == SPANS_S[-1]
        assert all(seconds > shorter for shorter in SPANS_S if shorter < span_s)


def test_the_span_grows_when_the_data_outgrow_it_and_at_no_other_moment() -> None:
    fit, first_s = Fit(), 1000
    spans = [fit.span_s("job", first_s, first_s + n + 0.9) for n in range(700)]
    changes = [n for n in range(1, 700) if spans[n] != spans[n - 1]]
    assert changes == [60, 120, 300]
    assert [spans[n] for n in (0, 59, 60, 119, 120, 299, 300, 699)] == [
        *(60, 60, 120, 120, 300, 300, 600, 600)
    ]


def test_a_look_back_changes_no_span() -> None:
    fit = Fit()
    assert fit.span_s("job", 1000, 1400.0) == 600
    assert [fit.span_s("job", 1000, 1400.0 - back) for back in (100, 290, 350, 399)] == [600] * 4
    assert fit.span_s("job", 1000, 1400.0) == 600


def test_a_page_that_is_opened_in_the_past_has_what_there_was_then() -> None:
    assert Fit().span_s("job", 1000, 1050.0) == 60
    assert Fit().span_s("job", 1000, 1300.0) == 600


def test_another_thing_has_a_span_of_its_own() -> None:
    fit = Fit()
    assert fit.span_s("old", 1000, 1500.0) == 600
    assert fit.span_s("young", 1480, 1500.0) == 60
    assert fit.span_s("unknown", None, 1501.0) == 60


def test_what_comes_when_nothing_is_left_of_the_old_begins_anew() -> None:
    fit = Fit()
    assert fit.span_s(None, 1000, 1500.0) == 600
    assert fit.span_s(None, None, 1502.0) == 600  # gone for a moment: nothing moves
    assert fit.span_s(None, 1000, 1503.0) == 600
    assert fit.span_s(None, 1510, 1511.0) == 60  # the next job


def test_what_passes_out_of_the_history_does_not_make_the_span_shorter() -> None:
    """After a hole: first the seconds before it are gone, then there are only those after it."""
    found, fit, spans = history(*range(1000, 1100)), Fit(), set()
    for at_s in range(1400, 2100):
        found.add([Reading(NAME, KEY, 1.0, at_s, "agent", 0.0)])
        spans.add(fit.span_s(None, found.first_s(NAME, KEY, at_s), at_s))
    assert spans == {600}


@pytest.mark.parametrize("shown_s", SPANS_S)
def test_the_key_goes_round_and_shows_another_span_at_every_press_but_the_last(
    shown_s: int,
) -> None:
    seen: list[int | None] = [None]
    spans = [shown_s]
    while (choice := next_choice(seen[-1], spans[-1])) is not None:
        seen.append(choice)
        spans.append(choice)
    longest_first = [*reversed(SPANS_S)]
    assert seen[1:] == (longest_first[1:] if shown_s == SPANS_S[-1] else longest_first)
    assert all(a != b for a, b in pairwise(spans))


def test_the_choices_are_told_in_words() -> None:
    assert [in_words(s) for s in SPANS_S] == ["1 minute", "2 minutes", "5 minutes", "10 minutes"]
    assert in_words(None) == "all data, up to 10 minutes"


# -- what there is


def test_the_first_second_is_the_oldest_one_that_is_kept() -> None:
    found = history(*range(1000, 1010))
    assert found.first_s(NAME, KEY, 1009) == 1000
    assert found.first_s(NAME, KEY, 1500) == 1000
    assert found.first_s(NAME, KEY, 1605) == 1006
    assert found.first_s(NAME, KEY, 1609) is None
    assert found.first_s(NAME, KEY, 999) is None
    assert found.first_s("compilations", KEY, 1009) is None


def test_a_hole_before_the_first_second_is_passed_over() -> None:
    found = history(1000, 1001, 1500, 1501)
    assert found.first_s(NAME, KEY, 1501) == 1000
    found.add([Reading(NAME, KEY, 1.0, 1650, "agent", 0.0)])
    assert found.first_s(NAME, KEY, 1650) == 1500
    found.add([Reading(NAME, KEY, 1.0, 5000, "agent", 0.0)])
    assert found.first_s(NAME, KEY, 5000) == 5000


@given(gaps=st.lists(st.integers(1, 30), min_size=1, max_size=40), until=st.integers(-30, 200))
def test_the_first_second_is_the_first_of_a_window_of_all(gaps: list[int], until: int) -> None:
    found, at_s = History(span_s=50), 1000
    for gap in gaps:
        at_s += gap
        found.add([Reading(NAME, KEY, 1.0, at_s, "agent", 0.0)])
    until += 1000
    window = found.window(NAME, KEY, until, 50)
    known = [] if window is None else [n for n, v in enumerate(window) if v >= 0]
    assert found.first_s(NAME, KEY, until) == (until - 49 + known[0] if known else None)


def test_the_newest_reading_stands_until_the_next_and_no_longer_than_it_may() -> None:
    now = Value(7.0, "agent", 0.4, False)
    assert held([1.0, 2.0, None, None], now, 1.0) == [1.0, 2.0, 7.0, 7.0]
    assert held([1.0, *[None] * 9], now, 1.0) == [1.0, *[None] * 4, *[7.0] * 5]
    assert held([1.0, None], now, 60.0) == [1.0, 7.0]
    assert held([1.0, None], now._replace(stale=True), 1.0) == [1.0, None]
    assert held([1.0, None], None, 1.0) == [1.0, None]
    assert held([1.0, 2.0], now, 1.0) == [1.0, 2.0]


@pytest.mark.parametrize("span_s", SPANS_S)
@pytest.mark.parametrize("width", [40, 80, 120, 200, 250])
def test_the_labels_of_an_axis_stand_where_their_time_is(span_s: int, width: int) -> None:
    line = "".join(piece.text for piece in axis(Look(), span_s, width))
    room = width - 9
    for label in line.split():
        if label == "now":
            assert line.endswith("now")
            continue
        back_s = int(label[1:-1]) * (60 if label.endswith("m") else 1)
        end = line.index(label) + len(label) - 9
        assert back_s <= span_s
        assert end == max(room - round(back_s * room / span_s), len(label)), label


# -- on the screen


def test_the_key_is_on_every_page_and_means_nothing_else() -> None:
    for name, bindings in keys_by_page().items():
        assert [b.id for b in bindings if "w" in key_names(b)] == ["span"], name


@pytest.mark.parametrize(
    ("past_s", "oldest"), [(5, "-1m"), (70, "-2m"), (130, "-5m"), (400, "-10m")]
)
@pytest.mark.parametrize("page", PAGES)
async def test_every_page_shows_all_there_is(page: str, past_s: int, oldest: str) -> None:
    feed = ScriptedFeed((MemoryJob(41234, 0, 4),), past_s=past_s)
    async with dashboard(feed, (250, 60)) as pilot:
        await press(pilot, *PAGES[page])
        assert axes(pilot) == {oldest}


@pytest.mark.parametrize("page", PAGES)
async def test_w_changes_the_span_of_every_page(page: str) -> None:
    feed = ScriptedFeed((MemoryJob(41234, 0, 4),), past_s=130)
    async with dashboard(feed, (250, 60)) as pilot:
        await press(pilot, *PAGES[page])
        for oldest, said in (
            ("-10m", "10 minutes"),
            ("-5m", "5 minutes"),
            ("-2m", "2 minutes"),
            ("-1m", "1 minute"),
            ("-5m", "all data"),
        ):
            await press(pilot, "w")
            assert axes(pilot) == {oldest}
            assert f"Graphs show {said}" in shown(pilot)


async def test_the_choice_is_remembered_over_pages() -> None:
    feed = ScriptedFeed((MemoryJob(41234, 0, 4),), past_s=590)
    async with dashboard(feed, (250, 60)) as pilot:
        await press(pilot, "w", "w")
        for keys in ("d", "m", "j", "escape"):
            await press(pilot, keys)
            assert axes(pilot) == {"-2m"}, keys
        await press(pilot, "j", "w", "w", "escape")
        assert axes(pilot) == {"-10m"}


@pytest.mark.parametrize(
    ("past_s", "title"),
    [(0, "1 MIN"), (59, "1 MIN"), (60, "2 MIN"), (200, "5 MIN"), (500, "5 MIN")],
)
async def test_the_column_of_graphs_tells_its_span(past_s: int, title: str) -> None:
    async with dashboard(many_devices(4, past_s=past_s), TALL) as pilot:
        assert text(pilot, "devices").splitlines()[0].split()[-2:] == title.split()


async def test_the_column_follows_the_key_up_to_five_minutes() -> None:
    async with dashboard(many_devices(4, past_s=20), TALL) as pilot:
        seen = []
        for _ in range(5):
            seen.append(" ".join(text(pilot, "devices").splitlines()[0].split()[-2:]))
            await press(pilot, "w")
        assert seen == ["1 MIN", "5 MIN", "5 MIN", "2 MIN", "1 MIN"]


async def test_the_first_minutes_of_a_dashboard_fill_its_graphs() -> None:
    """The span changes when it is full, and at no other moment."""
    feed = ScriptedFeed((Job(1, "x", 0, 2, busy=True),), tick_s=5.0)
    async with dashboard(feed, (100, 40), interval_s=3600.0) as pilot:
        spans = {}
        while feed.at_s < START_S + 620:
            await press(pilot, "r")
            spans[feed.at_s - START_S] = axes(pilot)
        changes = [b for a, b in pairwise(spans) if spans[a] != spans[b]]
        assert changes == [60, 120, 300]


async def test_looking_back_moves_no_scale_and_says_then() -> None:
    feed = chips(past_s=400, tick_s=1.0)
    async with dashboard(feed, (120, 50)) as pilot:
        for keys in ((), ("d",), ("j",)):
            await press(pilot, *keys)
            assert axes(pilot) == {"-10m"}
            await press(pilot, *["shift+left"] * 5, *["left"] * 4)
            assert axes(pilot) == {"-10m"}
            assert {r.split()[-1] for r in screen_text(pilot) if "-10m" in r} == {"then"}
            await press(pilot, "n")
            assert axes(pilot) == {"-10m"}


async def test_the_past_that_a_job_has_kept_itself_is_there_at_once() -> None:
    """A dashboard that was opened this moment, beside a job whose agent has kept ten minutes."""
    feed = ScriptedFeed((MemoryJob(41234, 0, 4),))
    feed.remember(599)
    async with dashboard(feed, (120, 50)) as pilot:
        assert axes(pilot) == {"-10m"}


async def test_a_job_that_begins_after_the_last_has_ended_begins_a_new_graph() -> None:
    old, new = Job(1, "old", 0, 4, busy=True), Job(2, "new", 0, 4, busy=True)
    feed = ScriptedFeed((old,), past_s=590, tick_s=1.0)
    async with dashboard(feed, (120, 50)) as pilot:
        assert axes(pilot) == {"-10m"}
        feed.jobs = ()
        await press(pilot, "r")
        feed.jobs = (new,)
        await press(pilot, *["r"] * 3)
        assert axes(pilot) == {"-1m"}


async def test_a_second_job_that_begins_does_not_shorten_the_graphs_of_the_first() -> None:
    old, new = Job(1, "old", 0, 2, busy=True), Job(2, "new", 2, 2, busy=True)
    feed = ScriptedFeed((old,), past_s=590, tick_s=1.0)
    async with dashboard(feed, (120, 50)) as pilot:
        feed.jobs = (old, new)
        await press(pilot, *["r"] * 3)
        assert axes(pilot) == {"-10m"}
        await press(pilot, "down", "j")
        assert axes(pilot) == {"-1m"}


class LateFeed(ScriptedFeed):
    """Its readings are a second and more old when they come."""

    def _remember(self, at_s: float) -> None:
        super()._remember(at_s - 1.3)


async def test_no_graph_has_a_gap_while_readings_come_in() -> None:
    feed = LateFeed((Job(1, "x", 0, 2, busy=True),), tick_s=1.0)
    async with dashboard(feed, (100, 40), ascii=True) as pilot:
        for _ in range(40):
            await press(pilot, "r")
        for line in text(pilot, "graphs").splitlines():
            if line.startswith("       0|"):
                for drawn in line.split("0|")[1:]:
                    assert len(drawn.split()) == 1, line
                    assert len(drawn.strip()) > 10
