"""Panels and columns that the user hides, and settings saved from the screen."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from support.dashboards import dashboard, height, press, screen_text, shown, text, until
from support.feeds import two_jobs

from tpusmi.cli.config import saved
from tpusmi.settings import Settings, load
from tpusmi.tui.ending.kill_screen import KillScreen
from tpusmi.tui.main.main_page import MainPage


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("1", ["header", "host"]),
        ("2", ["devices"]),
        ("3", ["graphs"]),
        ("4", ["processes", "detail"]),
    ],
)
async def test_a_digit_hides_a_panel_and_shows_it_again(key: str, parts: list[str]) -> None:
    async with dashboard(two_jobs(), size=(120, 45)) as pilot:
        assert all(height(pilot, part) for part in parts)
        before = screen_text(pilot)[:-1]
        await press(pilot, key)
        gone = [part for part in parts if not (part == "detail" or height(pilot, part))]
        assert gone == [part for part in parts if part != "detail"]
        assert "hidden; the same key shows them again" in text(pilot, "footer")
        assert len(screen_text(pilot)) == 45
        await press(pilot, key)
        assert screen_text(pilot)[:-1] == before


async def test_all_panels_hidden_leave_a_screen_with_a_footer() -> None:
    async with dashboard(two_jobs(), size=(80, 24)) as pilot:
        await press(pilot, "1", "2", "3", "4", "k", "space", "enter")
        assert pilot.app.is_running
        await press(pilot, "escape", "slash", "a")
        assert height(pilot, "processes")  # a filter shows what it filters


async def test_details_are_hidden_with_the_processes() -> None:
    async with dashboard(two_jobs(), size=(120, 45), hidden=("processes", "graphs")) as pilot:
        assert text(pilot, "detail").strip() == ""
        assert "train.main" not in shown(pilot)


async def test_the_header_stays_while_it_has_a_warning() -> None:
    async with dashboard(two_jobs(), hidden=("header",)) as pilot:
        assert not height(pilot, "header")
        await press(pilot, "p")
        assert "PAUSED" in screen_text(pilot)[0]
        await press(pilot, "p")
        assert not height(pilot, "header")
    async with dashboard(two_jobs(changes={"simulated": True}), hidden=("header",)) as pilot:
        assert "SIMULATED" in screen_text(pilot)[0]
        assert not height(pilot, "host")


async def test_keys_that_end_do_not_act_on_processes_that_are_hidden() -> None:
    async with dashboard(two_jobs(), hidden=("processes", "devices")) as pilot:
        page = pilot.app.page
        assert isinstance(page, MainPage)
        assert page.targets == ()
        await press(pilot, "space", "4")
        assert len(page.targets) == 1
        assert not page.process_list.untag()  # nothing was tagged unseen
        await press(pilot, "k")
        assert not isinstance(pilot.app.screen, KillScreen)  # this dashboard may not end any


async def test_with_processes_hidden_the_cursor_is_in_the_devices() -> None:
    async with dashboard(two_jobs()) as pilot:
        page = pilot.app.page
        assert isinstance(page, MainPage)
        await press(pilot, "4")
        assert page.panel == "devices"
        await press(pilot, "tab", "escape")
        assert page.panel == "devices"
        await press(pilot, "2", "4")
        assert page.panel == "processes"


async def test_columns_are_hidden_in_the_dialog_and_come_back_in_their_place() -> None:
    async with dashboard(two_jobs(), size=(160, 45)) as pilot:
        before = text(pilot, "devices").splitlines()[0]
        assert "MEMORY" in before
        await press(pilot, "l")
        assert "[x] CHIP" in shown(pilot)
        names = [line.split("[x] ")[1].split()[0] for line in screen_text(pilot) if "[x] " in line]
        await press(pilot, *["down"] * (names.index("MEMORY") - names.index("CHIP")), "space")
        assert "[ ] MEMORY" in shown(pilot)
        await press(pilot, "escape")
        assert "MEMORY" not in text(pilot, "devices").splitlines()[0]
        assert "MEMORY" in text(pilot, "processes").splitlines()[0]
        await press(pilot, "l", *["down"] * (names.index("MEMORY") - names.index("CHIP")), "space")
        await press(pilot, "escape")
        assert text(pilot, "devices").splitlines()[0] == before


async def test_only_the_columns_of_the_settings_are_shown() -> None:
    columns = {"devices": ("MEMORY",), "processes": ()}
    async with dashboard(two_jobs(), columns=columns) as pilot:
        assert text(pilot, "devices").splitlines()[0].split() == ["DEVICE", "MEMORY"]
        head = text(pilot, "processes").splitlines()[0].split()
        assert head[:2] == ["S", "PID"]
        assert "by DEVICES▴" in text(pilot, "processes").splitlines()[0]


async def test_a_click_on_a_choice_changes_it_and_the_theme_is_one_of_them() -> None:
    async with dashboard(two_jobs(), size=(100, 50)) as pilot:
        await press(pilot, "f2")
        y = next(n for n, line in enumerate(screen_text(pilot)) if "[x] graphs" in line)
        await pilot.click(offset=(30, y))
        await press(pilot)
        assert "[ ] graphs" in shown(pilot)
        style = pilot.app.page.look.style["title"]
        await press(pilot, "end", "space")
        assert "mono theme" in shown(pilot)
        assert pilot.app.page.look.style["title"] != style
        await press(pilot, "q")
        assert "[ ] graphs" not in shown(pilot)


async def test_the_dialog_scrolls_on_a_small_screen() -> None:
    async with dashboard(two_jobs(), size=(60, 12)) as pilot:
        await press(pilot, "f2", "end")
        assert "ansi theme" in shown(pilot)
        await press(pilot, "home")
        assert "Panels" in shown(pilot)
        assert "more" in shown(pilot)


async def test_f12_writes_what_is_shown_and_the_file_starts_the_same_dashboard(
    tmp_path: Path,
) -> None:
    path = tmp_path / "config.toml"
    path.write_text('# mine\nview = "auto" # as it fits\n[keys]\npause = "z"\n')
    async with dashboard(two_jobs(), save=partial(saved, str(path))) as pilot:
        await press(pilot, "c", "3", "o", "G", "w", "l", "space", "f12")
        await until(pilot, lambda: f"Saved in {path}" in text(pilot, "footer"))
    assert load(str(path)) == Settings(
        view="compact",
        hidden=("graphs",),
        sort="MEMORY",
        reverse=True,
        window=5,
        columns={"devices": load(str(path)).columns["devices"]},
        keys={"pause": "z"},
    )
    assert "CHIP" not in load(str(path)).columns["devices"]
    assert path.read_text().startswith('# mine\nview = "compact" # as it fits\n')
    found = load(str(path))
    options = {"view": found.view, "hidden": found.hidden, "sort": found.sort}
    async with dashboard(two_jobs(), **options, reverse=found.reverse) as pilot:
        assert "HBM" in text(pilot, "tiles").splitlines()[0]
        assert "MEMORY▴" in text(pilot, "processes").splitlines()[0]


async def test_defaults_are_not_written_to_a_file_that_does_not_have_them(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    async with dashboard(two_jobs(), save=partial(saved, str(path))) as pilot:
        await press(pilot, "f12")
        await until(pilot, lambda: "save: these are the defaults" in text(pilot, "footer"))
    assert not path.exists()


async def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    path = tmp_path / "file" / "config.toml"
    (tmp_path / "file").write_text("not a directory")
    async with dashboard(two_jobs(), save=partial(saved, str(path))) as pilot:
        await press(pilot, "3", "f12")
        await until(pilot, lambda: "Not saved:" in text(pilot, "footer"))
        assert str(path)[:30] in text(pilot, "footer")
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "f12")
        assert "Settings cannot be saved from here" in text(pilot, "footer")
