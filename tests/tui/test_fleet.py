"""The dashboard of a fleet: what its keys do, and what a bad source does to it."""

from __future__ import annotations

import math
import threading

import pytest
from support.clocks import takes_at_most
from support.dashboards import press, screen_text, settle, shown, text, until
from support.fleets import AT_S, ScriptedFleet, down, fleet, fleet_dashboard, host, throttled
from textual.pilot import Pilot

from tpusmi.fleet.fleet_figures import FleetHost, HostState
from tpusmi.fleet.fleet_source import FleetError
from tpusmi.fleet.report.group_columns import of_kind
from tpusmi.tui.feed import Reader
from tpusmi.tui.fleet import fleet_app, fleet_rows, host_page
from tpusmi.tui.fleet.fleet_page import ssh_to
from tpusmi.tui.fleet.fleet_scene import prepared


def table(pilot: Pilot[None], kind: str) -> list[str]:
    """The first words of the rows."""
    lines = text(pilot, f"table-{kind}").splitlines()[1:]
    return [line.split()[0].rstrip("!") for line in lines if line.strip()]


async def again(pilot: Pilot[None]) -> None:
    """The next answer, drawn."""
    await press(pilot, "r")


async def test_the_overview_shows_the_worst_job_first() -> None:
    async with fleet_dashboard() as pilot:
        assert table(pilot, "job") == ["gemma-ft", "vit-huge", "llama-70b", "t5-xxl"]
        assert "14 of 16 hosts live, 1 old, 1 down" in text(pilot, "totals")
        assert "t1v-00-w-2: a chip slows itself down" in text(pilot, "notices")


async def test_g_groups_by_job_slice_and_host() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "G")
        assert table(pilot, "slice")[0] == "v5e-01"
        await press(pilot, "tab")
        assert table(pilot, "host")[:2] == ["t1v-01-w-1", "t1v-01-w-3"]
        await press(pilot, "G")
        assert "by job: 4" in text(pilot, "header")


async def test_enter_goes_down_to_a_host_and_escape_back_but_never_out() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "enter")
        assert "job gemma-ft" in text(pilot, "header")
        assert table(pilot, "host")[0] == "t1v-01-w-1"
        assert "2 of 4 hosts live" in text(pilot, "totals")
        await press(pilot, "enter")
        await until(pilot, lambda: "PEAK" in text(pilot, "host"))
        assert "state down, 5m12s old" in text(pilot, "host")
        await press(pilot, "escape", "escape", "escape", "escape")
        assert "by job: 4" in text(pilot, "header")
        assert pilot.app.is_running


async def test_the_page_of_a_group_without_a_live_host_does_not_call_them_live() -> None:
    def old(h: FleetHost) -> FleetHost:
        return h._replace(state=HostState.OLD, reason="its numbers are old", age_s=900.0)

    async with fleet_dashboard(fleet(2, {0: old, 1: down}, per_slice=1)) as pilot:
        await press(pilot, "enter")
        assert text(pilot, "totals").startswith("0 of 1 host live, 1 down")
        assert "MXU" not in text(pilot, "totals")
        await press(pilot, "escape", "down", "enter")
        assert text(pilot, "totals").startswith("0 of 1 host live, 1 old")
        assert "(" in text(pilot, "table-host").splitlines()[1]


async def test_sorting_by_column_letter_and_reverse() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "o", "n")
        assert table(pilot, "job") == ["gemma-ft", "llama-70b", "t5-xxl", "vit-huge"]
        await press(pilot, "R")
        assert table(pilot, "job")[0] == "vit-huge"
        await press(pilot, "full_stop")
        assert "STATE" in text(pilot, "table-job").splitlines()[0]


async def test_a_click_on_a_title_sorts_by_it() -> None:
    async with fleet_dashboard() as pilot:
        title = text(pilot, "table-job").splitlines()[0]
        await pilot.click("#table-job", offset=(title.index("JOB") + 1, 0))
        await settle(pilot)
        assert table(pilot, "job")[0] == "gemma-ft"
        assert "JOB▴" in text(pilot, "table-job")


async def test_a_double_click_opens_a_row() -> None:
    async with fleet_dashboard() as pilot:
        await pilot.click("#table-job", offset=(3, 2), times=2)
        await settle(pilot)
        assert "job vit-huge" in text(pilot, "header")


async def test_a_filter_takes_effect_while_it_is_typed_and_escape_drops_it() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "slash", *"job=t5")
        assert table(pilot, "job") == ["t5-xxl"]
        await press(pilot, "enter")
        assert "Filter: job=t5" in shown(pilot)
        await press(pilot, "escape")
        assert len(table(pilot, "job")) == 4


async def test_a_wrong_filter_says_why_and_one_that_matches_nothing_says_so() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "slash", *"zzz", "enter")
        assert "no host matches the filter" in text(pilot, "table-job")
        await press(pilot, "slash", *" mxu<x")
        assert "! " in text(pilot, "prompt")


async def test_the_cursor_stays_on_its_row_when_the_order_changes() -> None:
    better, worse = fleet(troubles={}), fleet(troubles={12: down}, at_s=AT_S + 5)
    async with fleet_dashboard(ScriptedFleet(better, worse)) as pilot:
        await press(pilot, "o", "n", "down")
        assert pilot.app.page.host_name == ""
        assert pilot.app.page.copied() == "llama-70b"
        await press(pilot, "o", "o")
        await again(pilot)
        assert table(pilot, "job")[0] == "t5-xxl"
        assert pilot.app.page.copied() == "llama-70b"


async def test_the_columns_stay_where_they_are_when_values_come_and_go() -> None:
    answers = fleet(), fleet(troubles={}, at_s=AT_S + 5), fleet(at_s=AT_S + 10)
    async with fleet_dashboard(ScriptedFleet(*answers)) as pilot:
        titles = []
        for _ in range(3):
            titles.append(text(pilot, "table-job").splitlines()[0])
            await again(pilot)
        assert len(set(titles)) == 1


async def test_the_heat_map_has_a_cell_for_each_chip_and_enter_opens_its_host() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "v")
        assert text(pilot, "heat").startswith("HBM  0 ")
        assert "x83" in text(pilot, "heat")
        await press(pilot, "g")
        assert text(pilot, "heat").startswith("MXU  0 ")
        await press(pilot, "down", "right")
        assert pilot.app.page.copied() == "t1v-02-w-0"
        await press(pilot, "enter")
        assert "host t1v-02-w-0" in text(pilot, "header")
        await press(pilot, "escape", "escape")
        assert table(pilot, "job")


async def test_one_long_name_does_not_hide_that_of_the_selected_chip() -> None:
    long = "a-node-with-a-long-name-0123456789.us-central2-b.c.my-project-of-tpus.internal"
    s = fleet(4, {3: lambda h: h._replace(name=long)})
    async with fleet_dashboard(s, (80, 24)) as pilot:
        await press(pilot, "H")
        assert "t1v-00-w-0 tpu:0 " in text(pilot, "heat").splitlines()[0]
        await press(pilot, *["right"] * 13)
        legend = text(pilot, "heat").splitlines()[0]
        assert "a-node-with-a-lo" in legend
        assert "… tpu:1 " in legend
        assert "unknown" in legend


async def test_a_fleet_whose_sum_of_memory_is_unknown_has_the_percentage_alone() -> None:
    def without_a_limit(h: FleetHost) -> FleetHost:
        first, *others = h.devices
        values = {n: v for n, v in first.values.items() if n != "hbm_limit_bytes"}
        return h._replace(devices=(first._replace(values=values), *others))

    async with fleet_dashboard(fleet(1, {0: without_a_limit})) as pilot:
        percent = text(pilot, "totals").partition("HBM ")[2].partition(" %")[0]
        assert percent.isdecimal()


async def test_t_shows_the_slice_as_a_torus_and_enter_opens_the_host_of_a_chip() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "T")
        assert "slice v5e-01" in text(pilot, "topology")
        await press(pilot, "tab")
        assert "slice v5e-02" in text(pilot, "topology")
        await press(pilot, "g")
        assert "MXU" in text(pilot, "topology").splitlines()[-1]
        await press(pilot, "enter")
        assert "host t1v-02-w-0" in text(pilot, "header")


async def test_k_says_where_processes_are_ended() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "k")
        assert "`tpusmi kill PID` there" in shown(pilot)


async def test_the_help_and_the_palette_open_and_close() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "question_mark")
        assert "Help of the fleet page" in shown(pilot)
        await press(pilot, "escape", "colon", *"heat")
        assert "Heat map" in shown(pilot)
        await press(pilot, "enter")
        assert pilot.app.page.is_heat


async def test_a_partial_first_answer_does_not_stay_for_a_long_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet_app, "WHOLE_WITHIN_S", 0.001)
    source = ScriptedFleet(fleet(1)._replace(is_partial=True), fleet(1))
    async with fleet_dashboard(source, interval_s=3600.0) as pilot:
        await until(pilot, lambda: source.asked == 2)


async def test_hosts_that_are_pending_at_first_do_not_stay_so_for_a_long_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pending(h: FleetHost) -> FleetHost:
        return h._replace(state=HostState.PENDING)

    monkeypatch.setattr(fleet_app, "WHOLE_WITHIN_S", 0.001)
    source = ScriptedFleet(fleet(2, {1: pending}), fleet(2))
    async with fleet_dashboard(source, interval_s=3600.0) as pilot:
        await until(pilot, lambda: source.asked == 2)
        await settle(pilot)
        assert pilot.app._rest is None  # type: ignore[attr-defined]


async def test_the_rest_of_a_partial_answer_is_not_read_during_a_pause() -> None:
    source = ScriptedFleet(fleet(1)._replace(is_partial=True), fleet(1))
    async with fleet_dashboard(source, interval_s=3600.0) as pilot:
        app = pilot.app
        assert isinstance(app, fleet_app.FleetDashboard)
        await press(pilot, "p")
        app._ask_for_the_rest()  # as its timer does
        assert source.asked == 1
        await press(pilot, "p")
        await until(pilot, lambda: source.asked == 2)


async def test_a_narrow_header_leaves_out_the_interval_before_the_time() -> None:
    async with fleet_dashboard(size=(120, 24)) as pilot:
        wide = text(pilot, "header")
        left, _, clock = wide.partition(" every 5s")
        room = len(left.rstrip()) + len(clock.strip()) + 4
        for width in (room, room + 6):
            await pilot.resize_terminal(width, 24)
            await settle(pilot)
            assert text(pilot, "header").split() == wide.replace("every 5s", "").split()


async def test_pause_stops_reading() -> None:
    source = ScriptedFleet()
    async with fleet_dashboard(source, interval_s=0.05) as pilot:
        await press(pilot, "p")
        assert "PAUSED" in text(pilot, "header")
        asked = source.asked
        await pilot.pause(0.2)
        assert source.asked == asked


# -- a source that fails, hangs or forgets


async def test_a_failed_read_is_said_and_the_last_answer_stays() -> None:
    source = ScriptedFleet(fleet(), FleetError("prometheus.example:9090 refuses the connection"))
    async with fleet_dashboard(source, passed_s=3.0) as pilot:
        await again(pilot)
        assert "FAILED 3s OLD" in text(pilot, "header")
        assert "refuses the connection" in text(pilot, "notices")
        assert len(table(pilot, "job")) == 4


@pytest.mark.parametrize("wrong_s", [-7200.0, 7200.0])
async def test_how_old_a_failed_answer_is_does_not_depend_on_our_clock(wrong_s: float) -> None:
    source = ScriptedFleet(fleet(at_s=AT_S + wrong_s), FleetError("no route to host"))
    async with fleet_dashboard(source, passed_s=3.0) as pilot:
        await again(pilot)
        assert "FAILED 3s OLD" in text(pilot, "header")


async def test_a_first_read_that_fails_is_said() -> None:
    async with fleet_dashboard(ScriptedFleet(FleetError("no route to host"))) as pilot:
        assert "no route to host" in text(pilot, "notices")
        assert "FAILED" in text(pilot, "header")


class HangingFleet(ScriptedFleet):
    """Says nothing until the test ends."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def snapshot(self, at_s=None):  # type: ignore[no-untyped-def]
        self.free.wait(100)
        return super().snapshot(at_s)


async def test_a_source_that_hangs_delays_neither_the_screen_nor_a_key() -> None:
    source = HangingFleet()
    try:
        async with fleet_dashboard(source, reader=Reader, interval_s=0.05) as pilot:
            assert "reading prometheus.example:9090" in shown(pilot)
            await press(pilot, "question_mark")
            assert "Help of the fleet page" in shown(pilot)
            await press(pilot, "escape", "v", "G", "enter", "T", "o", "escape")
            await until(pilot, lambda: "NO ANSWER FOR" in text(pilot, "header"))
            source.free.set()
            await until(pilot, lambda: "hosts live" in shown(pilot))
    finally:
        source.free.set()


async def test_details_that_hang_leave_the_page_and_its_keys_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_page, "LATE_S", 0.0)
    source = ScriptedFleet()
    source.hangs = threading.Event()
    try:
        async with fleet_dashboard(source) as pilot:
            await press(pilot, "enter", "enter")
            assert "DEVICES (4)" in text(pilot, "host")
            assert "reading its past" in text(pilot, "host")
            await again(pilot)
            assert "no answer about it for" in text(pilot, "host")
            for _ in range(20):  # a hanging source gets no more threads than a few
                await press(pilot, "tab")
            threads = [t for t in threading.enumerate() if t.name == "tpusmi-host"]
            assert len(threads) <= 4
            await press(pilot, "escape")
            assert table(pilot, "host")
    finally:
        source.hangs.set()


async def test_details_that_fail_are_said_and_what_is_there_stays() -> None:
    source = ScriptedFleet()
    source.details_error, source.history_error = "it answers 500", "too many samples"
    async with fleet_dashboard(source) as pilot:
        await press(pilot, "enter", "enter")
        for error in ("past: too many samples", "details: it answers 500"):
            await until(pilot, lambda error=error: error in text(pilot, "host"))
        assert "DEVICES (4)" in text(pilot, "host")


async def test_graphs_that_are_not_read_again_say_so() -> None:
    source = ScriptedFleet()
    async with fleet_dashboard(source) as pilot:
        await press(pilot, "enter", "enter")
        await until(pilot, lambda: "-1h" in text(pilot, "host"))
        for error in ("too many samples", ""):
            source.history_error = error
            pilot.app.page._past_at_s = -math.inf
            await again(pilot)
            is_said = f"past: {error}" if error else "past:"
            await until(pilot, lambda: (is_said in text(pilot, "host")) == bool(error))  # noqa: B023
            assert "-1h" in text(pilot, "host")


async def test_w_asks_for_another_span() -> None:
    source = ScriptedFleet()
    async with fleet_dashboard(source) as pilot:
        await press(pilot, "enter", "enter")
        await until(pilot, lambda: "-1h" in text(pilot, "host"))
        await press(pilot, "w")
        await until(pilot, lambda: "-6h" in text(pilot, "host"))
        asked = [span_s for _, span_s in source.history_asked]
        assert [*dict.fromkeys(asked)] == [3600, 21_600]  # one may be due again by now


async def test_a_host_that_leaves_the_answer_keeps_its_last_numbers() -> None:
    without = fleet(at_s=AT_S + 5)
    without = without._replace(hosts=without.hosts[:4])
    async with fleet_dashboard(ScriptedFleet(fleet(), without)) as pilot:
        await press(pilot, "enter", "enter")
        await again(pilot)
        assert "no longer in the answer" in text(pilot, "host")
        assert "DEVICES (4)" in text(pilot, "host")
        await press(pilot, "escape")
        assert "none of its hosts is in the answer now" in text(pilot, "table-host")


async def test_a_fleet_without_hosts_says_so() -> None:
    async with fleet_dashboard(fleet(0)) as pilot:
        assert "no host" in text(pilot, "table-job")
        await press(pilot, "enter", "T", "v", "enter", "G", "down", "y")
        assert pilot.app.is_running


async def test_notices_have_their_meaning_and_their_advice_on_the_page_of_the_host() -> None:
    async with fleet_dashboard(fleet(4, {0: throttled}), (100, 40)) as pilot:
        await press(pilot, "enter", "enter")
        page = text(pilot, "host")
        assert "chip 1: a chip slows itself down" in page
        assert "restart the job on another host" in page
        assert "chip 1, link x+: a lasting fault (7 of 10)" in page


# -- texts from outside


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("t1v-0-w-3", "ssh t1v-0-w-3"),
        ("a;reboot", "ssh 'a;reboot'"),
        ("$(reboot)", "ssh '$(reboot)'"),
        ("-oProxyCommand=reboot", ""),
        ("a\nreboot", ""),
        ("", ""),
    ],
)
def test_the_copied_command_is_harmless_whatever_the_host_is_called(
    name: str, command: str
) -> None:
    assert ssh_to(name) == command


async def test_names_from_outside_draw_nothing_but_text() -> None:
    evil = "\x1b[31mred\x07" * 3
    strange = host(0, name=evil, slice=evil, reason=evil, address=evil)
    strange = strange._replace(
        processes=tuple(p._replace(job=evil, user=evil, command=evil) for p in strange.processes),
        devices=tuple(d._replace(job=evil, kind=evil, name=evil) for d in strange.devices),
    )
    answer = fleet(4)._replace(hosts=(strange,), problems=(evil,))
    async with fleet_dashboard(answer) as pilot:
        for keys in ("G", "G", "v", "v", "T", "escape", "enter"):
            await press(pilot, keys)
            assert "\x1b" not in "".join(screen_text(pilot))
            assert "\x07" not in "".join(screen_text(pilot))


# -- size and speed


@pytest.mark.parametrize("size", [(40, 10), (60, 16), (80, 24), (200, 60)])
async def test_every_page_fits_every_size(size: tuple[int, int]) -> None:
    async with fleet_dashboard(fleet(40), size) as pilot:
        for key in ("v", "v", "G", "G", "enter", "T", "escape", "escape", "question_mark"):
            await press(pilot, key)
            lines = screen_text(pilot)
            assert len(lines) == size[1]
            assert lines[0].strip()


async def test_a_large_fleet_is_drawn_as_far_as_it_is_visible() -> None:
    async with fleet_dashboard(fleet(400, per_slice=16), (120, 30)) as pilot:
        pilot.app.scene.by = "host"
        drawn: list[object] = []
        page = pilot.app.page
        page.draw()
        real = page.grid._item_line

        def counted(items: object) -> object:
            drawn.append(items)
            return real(items)

        page.grid._item_line = counted
        pilot.app.scene.take(prepared(fleet(400, per_slice=16, at_s=AT_S + 5), "", "host"))
        with takes_at_most(1.0):  # 20 ms on an idle machine
            page.draw()
        assert 0 < len(drawn) <= 30


def test_rows_with_numbers_in_their_names_are_in_their_order() -> None:
    names = ["w-10", "w-2", "w-1"]
    assert sorted(names, key=fleet_rows.natural) == ["w-1", "w-2", "w-10"]


async def test_a_down_host_is_called_so_below_the_scale_and_beside_its_chip() -> None:
    async with fleet_dashboard(size=(100, 40)) as pilot:
        await press(pilot, "T", "right", "right")
        lines = text(pilot, "topology").splitlines()
        assert "  x down" in lines[-1]
        assert any(line.endswith("t1v-01-w-1  x is down") for line in map(str.rstrip, lines))


async def test_a_click_on_a_chip_of_the_torus_selects_it_and_two_open_its_host() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "T")
        lines = text(pilot, "topology").splitlines()
        row = next(n for n, line in enumerate(lines) if line.startswith("0 "))
        await pilot.click("#topology", offset=(lines[row].index(" 90 ") + 1, row))
        await settle(pilot)
        assert "1 (1,0,0)  t1v-01-w-0" in text(pilot, "topology")
        await pilot.click("#topology", offset=(lines[row].index(" 90 ") + 1, row), times=2)
        await settle(pilot)
        assert "host t1v-01-w-0" in text(pilot, "header")


async def test_a_click_in_the_heat_map_selects_a_chip_and_two_open_its_host() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "v")
        line = text(pilot, "heat").splitlines()[2]
        at = line.index("*83") + 1, 2
        await pilot.click("#heat", offset=at)
        await settle(pilot)
        assert pilot.app.page.copied() == "t1v-02-w-1"
        await pilot.click("#heat", offset=at, times=2)
        await settle(pilot)
        assert "host t1v-02-w-1" in text(pilot, "header")


async def test_jobs_of_one_name_are_told_apart() -> None:
    async with fleet_dashboard(fleet(32), (120, 35)) as pilot:
        rows = text(pilot, "table-job").splitlines()[1:]
        assert len({line[:24] for line in rows if line.strip()}) == 8


async def test_details_that_fail_later_give_way_to_the_numbers_of_the_answer() -> None:
    source = ScriptedFleet(fleet(4, {}), fleet(4, {}, at_s=AT_S + 5))
    async with fleet_dashboard(source, (120, 40)) as pilot:
        await press(pilot, "enter", "enter")
        await until(pilot, lambda: "PEAK" in text(pilot, "host"))
        source.details_error = "it answers 500"
        await again(pilot)
        await until(pilot, lambda: "details: it answers 500" in text(pilot, "host"))
        assert "PEAK" not in text(pilot, "host")
        assert "DEVICES (4)" in text(pilot, "host")


async def test_details_that_are_too_old_give_way_to_the_numbers_of_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_page, "DETAILS_MOST_S", 0.0)
    monkeypatch.setattr(host_page, "DETAILS_TICKS", 0)
    source = ScriptedFleet(fleet(4, {}))
    async with fleet_dashboard(source, (120, 40)) as pilot:
        await press(pilot, "enter", "enter")
        await until(pilot, lambda: source.details_asked and "now" in text(pilot, "host"))
        await settle(pilot)
        pilot.app.page.draw()
        assert "PEAK" not in text(pilot, "host")


@pytest.mark.parametrize("size", [(40, 14), (80, 24), (200, 60)])
async def test_the_question_for_an_order_names_all_columns(size: tuple[int, int]) -> None:
    async with fleet_dashboard(size=size) as pilot:
        await press(pilot, "o")
        asked = text(pilot, "prompt")
        assert "Esc: cancel" in asked
        assert all(f"{c.letter} {c.title}" in asked for c in of_kind("job"))
        assert max(len(line.rstrip()) for line in asked.splitlines()) <= size[0]
        prompt = pilot.app.screen.query_one("#prompt")
        assert prompt.size.height == len(asked.splitlines())
        await press(pilot, "escape")
        assert not prompt.display


async def test_a_filter_that_matches_nothing_leaves_an_empty_heat_map() -> None:
    async with fleet_dashboard() as pilot:
        await press(pilot, "H", "end", "slash", "z", "z")
        assert text(pilot, "heat").startswith("HBM")
        assert "x83" not in text(pilot, "heat")
        await press(pilot, "escape")
        assert "x83" in text(pilot, "heat")
