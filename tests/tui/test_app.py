"""What the keys do, by what is on the screen after them."""

from __future__ import annotations

import time

import pytest
from support.dashboards import (
    dashboard,
    height,
    order,
    press,
    screen_text,
    selected,
    settle,
    text,
    until,
)
from support.feeds import Inline, Job, ScriptedFeed, many_devices, two_jobs

from tpusmi.model import History, Notice, Snapshot
from tpusmi.tui import Options
from tpusmi.tui.app import Dashboard
from tpusmi.tui.help import HelpScreen
from tpusmi.tui.keymap import clash
from tpusmi.tui.keys import EVERYWHERE, key_names, offered
from tpusmi.tui.main.main_page import MainPage
from tpusmi.tui.pages import NAMES, _page, every_key, keys_by_page


async def test_every_device_and_process_has_a_row() -> None:
    async with dashboard(two_jobs()) as pilot:
        assert [f"tpu:{i} " in text(pilot, "devices") for i in range(8)] == [True] * 8
        assert order(pilot) == ["41234", "52870"]


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_quit_keys_end_with_zero(key: str) -> None:
    async with dashboard(two_jobs()) as pilot:
        await pilot.press(key)
    assert pilot.app.return_code == 0
    assert not pilot.app.is_running


async def test_escape_never_quits() -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "escape", "escape")
        assert pilot.app.is_running


@pytest.mark.parametrize("key", ["question_mark", "h", "f1"])
async def test_help_lists_every_binding_and_closes_again(key: str) -> None:
    async with dashboard(two_jobs(), size=(100, 40)) as pilot:
        await press(pilot, key)
        assert isinstance(pilot.app.screen, HelpScreen)
        shown = "\n".join(screen_text(pilot)).split()
        names = {name for b in offered(EVERYWHERE, False) for name in key_names(b)}
        assert names <= {*shown}
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, HelpScreen)


async def test_help_scrolls_on_a_small_screen() -> None:
    async with dashboard(two_jobs(), size=(40, 10)) as pilot:
        await press(pilot, "question_mark")
        first = screen_text(pilot)
        await press(pilot, *["down"] * 3)
        assert screen_text(pilot)[1] == first[4]
        await press(pilot, *["down"] * 300)
        assert "COMMAND" in "\n".join(screen_text(pilot))  # its last lines


def test_every_binding_has_an_id_a_tooltip_and_an_action() -> None:
    assert all(b.id and b.tooltip and b.description for b in every_key())
    owners = {"main": MainPage, **{name: _page(name) for name in NAMES}}
    for name, bindings in keys_by_page().items():
        assert len({b.id for b in bindings}) == len(bindings)
        assert clash(bindings, {b.id: b.key for b in bindings if b.id}) is None, name
        for b in bindings:
            is_of_app = b in EVERYWHERE or b.action.startswith("app.")
            action = f"action_{b.action.removeprefix('app.').partition('(')[0]}"
            assert hasattr(Dashboard if is_of_app else owners[name], action), b


async def test_a_narrow_header_leaves_out_the_interval_before_it_cuts_the_time() -> None:
    async with dashboard(ScriptedFeed(), size=(200, 24)) as pilot:
        wide = text(pilot, "header")
        left, _, clock = wide.partition(" every 1s")
        width = len(left.rstrip()) + len(clock.strip()) + 4
        await pilot.resize_terminal(width, 24)
        await settle(pilot)
        assert text(pilot, "header").split() == wide.replace("every 1s", "").split()


async def test_the_footer_names_the_keys_whole_and_the_first_ones_on_a_narrow_screen() -> None:
    async with dashboard(two_jobs(), size=(140, 30)) as pilot:
        for words in ("q Quit", "? Help", "m Memory", "/ Filter", "p Pause", "+/- Interval"):
            assert words in text(pilot, "footer")
        await pilot.resize_terminal(30, 20)
        await settle(pilot)
        assert text(pilot, "footer") == "q Quit ? Help d Device "


async def test_arrows_home_and_end_move_the_selection() -> None:
    jobs = tuple(Job(1000 + i, f"python job{i}.py", i, 1) for i in range(30))
    async with dashboard(ScriptedFeed(jobs)) as pilot:
        assert selected(pilot) == "1000"
        await press(pilot, "down", "down", "up")
        assert selected(pilot) == "1001"
        await press(pilot, "end")
        assert selected(pilot) == "1029"
        assert "1029" in text(pilot, "processes")
        await press(pilot, "pageup")
        assert 1000 < int(selected(pilot)) < 1029
        await press(pilot, "home")
        assert selected(pilot) == "1000"
        await press(pilot, "pagedown")
        assert int(selected(pilot)) > 1000


async def test_the_selection_stays_on_its_process_when_rows_move() -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "down")
        assert selected(pilot) == "52870"
        await press(pilot, "R")
        assert order(pilot) == ["52870", "41234"]
        assert selected(pilot) == "52870"


async def test_a_click_selects_a_process() -> None:
    async with dashboard(two_jobs()) as pilot:
        await pilot.click("#processes", offset=(3, 2))
        await settle(pilot)
        assert selected(pilot) == "52870"


async def test_the_selection_moves_on_when_its_process_is_gone() -> None:
    feed = two_jobs()
    async with dashboard(feed) as pilot:
        feed.jobs = feed.jobs[1:]
        await press(pilot, "r")
        assert selected(pilot) == "52870"


async def test_sorting_goes_through_the_columns_and_marks_the_one() -> None:
    async with dashboard(two_jobs()) as pilot:
        assert "DEVICES▴" in text(pilot, "processes")
        await press(pilot, "full_stop")
        assert "MEMORY▾" in text(pilot, "processes")
        assert order(pilot) == ["41234", "52870"]
        await press(pilot, "comma")
        assert "DEVICES▴" in text(pilot, "processes")
        await press(pilot, "R")
        assert "DEVICES▾" in text(pilot, "processes")


async def test_a_filter_takes_effect_while_it_is_typed() -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "slash", *"GRACE")
        assert order(pilot) == ["52870"]
        assert "Filter: GRACE" in text(pilot, "prompt")
        await press(pilot, "backspace", "enter", "p")
        assert "PAUSED" in text(pilot, "header")
        assert order(pilot) == ["52870"]
        await press(pilot, "escape")
        assert order(pilot) == ["41234", "52870"]
        assert height(pilot, "prompt") == 0


async def test_a_filter_is_edited_where_its_cursor_is() -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "slash", *"user=ce", "left", "left", *"gra", "home", "delete", "u")
        assert "Filter: user=grace" in text(pilot, "prompt")
        assert order(pilot) == ["52870"]
        await press(pilot, "end", *" stale", "ctrl+w", "left", "ctrl+k")
        assert text(pilot, "prompt").rstrip() == "Filter: user=grace"
        await press(pilot, "ctrl+left", "ctrl+right", "end", *" 41", "ctrl+u", "enter")
        assert order(pilot) == ["41234", "52870"]


async def test_the_cursor_of_a_long_filter_stays_in_sight() -> None:
    async with dashboard(two_jobs(), size=(60, 20)) as pilot:
        await press(pilot, "slash", *("x" * 70), "y")
        assert text(pilot, "prompt").rstrip().endswith("xy")
        assert len(text(pilot, "prompt")) <= 60


async def test_escape_while_typing_drops_the_filter() -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "slash", *"41", "escape")
        assert order(pilot) == ["41234", "52870"]
        assert height(pilot, "prompt") == 0


async def test_a_filter_without_a_match_says_so() -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "slash", *"nobody", "enter")
        assert "no process matches" in text(pilot, "detail").lower()
        await press(pilot, "down", "end", "enter")
        assert pilot.app.is_running


@pytest.mark.parametrize(
    ("keys", "page"),
    [
        (("enter",), "job"),
        (("j",), "job"),
        (("tab", "enter"), "device"),
        (("d",), "device"),
        (("m",), "memory"),
        (("m", "d"), "device"),
    ],
)
async def test_a_page_opens_over_the_tables_and_escape_leaves_it(
    keys: tuple[str, ...], page: str
) -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, *keys)
        assert page == pilot.app.page.NAME
        assert f"  {page}" in text(pilot, "header")
        await press(pilot, "escape")
        assert pilot.app.page.NAME == ""
        assert order(pilot) == ["41234", "52870"]


async def test_what_is_under_the_cursor_is_what_the_pages_show() -> None:
    async with dashboard(two_jobs(on_chips=True), size=(100, 40)) as pilot:
        await press(pilot, "down")
        assert pilot.app.scene.process.pid == 52870
        await press(pilot, "tab", "down", "down")
        assert pilot.app.scene.device.name == "tpu:2"
        await press(pilot, "tab", "up")
        assert pilot.app.scene.process.pid == 41234


async def test_pause_stops_asking_and_refresh_asks_once() -> None:
    feed = two_jobs(tick_s=1.0)
    async with dashboard(feed, interval_s=0.05) as pilot:
        await press(pilot, "p")
        assert "PAUSED" in text(pilot, "header")
        asked = feed.asked
        await pilot.pause(0.3)
        assert feed.asked == asked
        await press(pilot, "r")
        assert feed.asked == asked + 1
        await press(pilot, "p")
        assert "PAUSED" not in text(pilot, "header")
        await until(pilot, lambda: feed.asked > asked + 2)


async def test_plus_and_minus_change_the_interval() -> None:
    async with dashboard(two_jobs()) as pilot:
        assert "every 1s" in text(pilot, "header")
        await press(pilot, "plus")
        assert "every 2s" in text(pilot, "header")
        await press(pilot, "minus", "minus")
        assert "every 0.5s" in text(pilot, "header")


async def test_a_long_device_table_scrolls() -> None:
    async with dashboard(many_devices(256)) as pilot:
        await press(pilot, "f")
        assert "tpu:0 " in text(pilot, "devices")
        await press(pilot, "right_square_bracket")
        assert "tpu:0 " not in text(pilot, "devices")
        assert "/256" in text(pilot, "devices")
        await press(pilot, "left_square_bracket")
        assert "tpu:0 " in text(pilot, "devices")


async def test_unknown_is_a_dash_and_never_zero() -> None:
    async with dashboard(two_jobs(changes={"values": {}})) as pilot:
        row = text(pilot, "devices").splitlines()[1]
        assert "0" not in row.replace("tpu:0", "").replace("52870", "").replace("41234", "")
        assert row.count("–") >= 4


async def test_live_arrays_are_called_so_where_memory_is_unknown() -> None:
    feed = two_jobs()
    values = {k: v for k, v in feed.snapshot().values.items() if not k[1].startswith("hbm")}
    feed.change(values=values)
    async with dashboard(feed) as pilot:
        assert "GiB live" in text(pilot, "devices")
        assert "GiB live" in text(pilot, "processes")


async def test_markup_in_a_command_is_plain_text() -> None:
    job = Job(7, "python [red]x[/red] [/] [bold", 0, 1, warnings=(Notice("n", "[/b] look", 7),))
    async with dashboard(ScriptedFeed((job,)), size=(160, 30)) as pilot:
        assert "[red]x[/red] [/] [bold" in text(pilot, "processes")
        assert "[/b] look" in text(pilot, "detail")


async def test_wide_characters_keep_the_columns() -> None:
    jobs = (Job(7, "python 訓練.py " * 20, 0, 1, user="数据科学家们好吗"), Job(8, "plain", 1, 1))
    async with dashboard(ScriptedFeed(jobs), size=(120, 30)) as pilot:
        strips = pilot.app.screen._compositor.render_strips()
        assert {strip.cell_length for strip in strips} == {120}


@pytest.mark.parametrize("size", [(40, 10), (20, 5), (1, 1), (300, 90)])
async def test_any_size_is_clipped_and_never_wrapped(size: tuple[int, int]) -> None:
    async with dashboard(two_jobs(), size=size) as pilot:
        lines = screen_text(pilot)
        assert len(lines) == size[1]
        assert {len(line) for line in lines} == {size[0]}


async def test_a_small_screen_shows_devices_and_processes() -> None:
    async with dashboard(two_jobs(), size=(40, 10)) as pilot:
        shown = "\n".join(screen_text(pilot))
        assert "HBM  0" in shown
        assert " 83  85  64  61 " in shown
        assert "41234" in shown
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert "step time" in "\n".join(screen_text(pilot))


async def test_a_simulated_host_says_so_on_every_screen() -> None:
    async with dashboard(two_jobs(changes={"simulated": True}), size=(40, 10)) as pilot:
        assert "SIMULATED" in "\n".join(screen_text(pilot))
        await press(pilot, "enter")
        assert "SIMULATED" in "\n".join(screen_text(pilot))
        await press(pilot, "question_mark")
        assert "SIMULATED" in "\n".join(screen_text(pilot))


async def test_ascii_uses_nothing_else() -> None:
    async with dashboard(two_jobs(), size=(160, 45), ascii=True) as pilot:
        assert "\n".join(screen_text(pilot)).isascii()
        await press(pilot, "question_mark")
        assert "\n".join(screen_text(pilot)).isascii()


async def test_without_color_no_cell_has_one() -> None:
    async with dashboard(two_jobs(changes={"simulated": True}), color=False) as pilot:
        await press(pilot, "p", "slash", "a")
        for strip in pilot.app.screen._compositor.render_strips():
            for segment in strip:
                style = segment.style
                assert style is None or (_none(style.color) and _none(style.bgcolor)), segment


def _none(color: object) -> bool:
    """No color, or the terminal's own."""
    return color is None or getattr(color, "is_default", False)


async def test_columns_stand_still_while_numbers_change() -> None:
    feed = two_jobs(tick_s=1.0)
    async with dashboard(feed) as pilot:
        titles = {text(pilot, part).splitlines()[0] for part in ("devices", "processes")}
        for _ in range(20):
            await press(pilot, "r")
        assert titles == {text(pilot, part).splitlines()[0] for part in ("devices", "processes")}


async def test_without_jobs_the_screen_says_what_to_do() -> None:
    async with dashboard(ScriptedFeed(), size=(80, 24)) as pilot:
        shown = "\n".join(screen_text(pilot))
        assert "import tpusmi; tpusmi.start()" in shown
        assert "tpusmi demo" in shown
        assert "segments" in shown


class Deaf(Inline):
    def ask(self) -> None:
        """Never answers."""


async def test_a_feed_that_does_not_answer_is_named_and_freezes_nothing() -> None:
    app = Dashboard(two_jobs(), Options(interval_s=0.02), reader=Deaf)  # type: ignore[arg-type]
    async with app.run_test() as pilot:
        await until(pilot, lambda: "NO ANSWER" in text(pilot, "header"))
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)


async def test_a_pause_of_this_machine_is_no_answer_that_is_late() -> None:
    app = Dashboard(two_jobs(), Options(interval_s=60.0), reader=Deaf)  # type: ignore[arg-type]
    async with app.run_test() as pilot:
        app.scene.interval_s = 0.02
        time.sleep(0.2)  # of ten ticks
        app._draw_header()
        assert "NO ANSWER" not in text(pilot, "header")
        app.scene.interval_s = 2.0
        for _ in range(3):
            app._tick()
        assert "NO ANSWER FOR 6s" in text(pilot, "header")


async def test_a_broken_feed_ends_the_dashboard_with_its_error() -> None:
    class Broken:
        history = History()

        def snapshot(self) -> Snapshot:
            raise RuntimeError("broken feed")

    app = Dashboard(Broken(), Options())
    with pytest.raises(RuntimeError, match="broken feed"):
        async with app.run_test() as pilot:
            await until(pilot, lambda: not app.is_running)


async def test_the_cursor_follows_what_was_chosen_on_another_page() -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "j", "tab", "escape")
        assert selected(pilot) == "52870"
