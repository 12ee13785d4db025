"""The ways to show devices, what graphs show, and copying."""

from __future__ import annotations

import base64

import pytest
from support.dashboards import dashboard, height, press, screen_text, settle, shown, text
from support.feeds import Job, ScriptedFeed, many_devices, two_jobs

from tpusmi.tui.draw.heat_list import HeatMap


def showing(pilot: object) -> str:
    """Which way the devices are shown."""
    if height(pilot, "devices"):  # type: ignore[arg-type]
        return "full"
    return "heat" if height(pilot, "heat") else "compact"  # type: ignore[arg-type]


@pytest.mark.parametrize(("key", "view"), [("f", "full"), ("c", "compact"), ("H", "heat")])
async def test_a_key_chooses_the_way_and_another_the_size_again(key: str, view: str) -> None:
    async with dashboard(two_jobs(), size=(100, 30)) as pilot:
        assert showing(pilot) == "full"
        await press(pilot, key)
        assert showing(pilot) == view
        await pilot.resize_terminal(200, 60)
        await press(pilot)
        assert showing(pilot) == view
        await press(pilot, "a")
        assert showing(pilot) == "full"


async def test_v_goes_through_all_of_them() -> None:
    async with dashboard(two_jobs(), size=(100, 30)) as pilot:
        seen = []
        for _ in range(4):
            await press(pilot, "v")
            seen.append(showing(pilot))
        assert seen == ["full", "compact", "heat", "full"]


@pytest.mark.parametrize("view", ["full", "compact", "heat"])
async def test_a_view_of_the_settings_is_there_from_the_start(view: str) -> None:
    async with dashboard(two_jobs(), size=(100, 30), view=view) as pilot:
        assert showing(pilot) == view


@pytest.mark.parametrize(
    ("devices", "size", "view"),
    [
        (1, (80, 24), "full"),
        (8, (80, 24), "full"),
        (16, (80, 24), "compact"),
        (256, (80, 24), "heat"),
        (256, (400, 100), "compact"),
    ],
)
async def test_the_size_chooses(devices: int, size: tuple[int, int], view: str) -> None:
    async with dashboard(many_devices(devices, busy=True), size=size) as pilot:
        assert showing(pilot) == view


async def test_g_goes_through_what_is_drawn() -> None:
    async with dashboard(many_devices(64, busy=True), size=(100, 30), view="heat") as pilot:
        titles = []
        for _ in range(5):
            titles.append(text(pilot, "heat").split(",")[0].removeprefix("DEVICES  "))
            await press(pilot, "g")
        assert titles == ["HBM in use", "MXU", "duty cycle", "HBM bandwidth", "HBM in use"]


async def test_a_cell_of_what_nobody_measured_is_a_dash_and_of_nothing_a_zero() -> None:
    job = Job(1, "x", 0, 2, busy=True)
    feed = ScriptedFeed((job,))
    one, two = job.devices()
    values = {k: v for k, v in feed.snapshot().values.items() if k[0] not in (one.key, two.key)}
    known = feed.snapshot().values[one.key, "duty_cycle_percent"]._replace(value=0)
    feed.change(values={**values, (one.key, "duty_cycle_percent"): known})
    async with dashboard(feed, view="heat") as pilot:
        await press(pilot, "g", "g")
        assert text(pilot, "heat").splitlines()[1].split()[1:] == ["0", "–"]


async def test_the_cursor_moves_over_tiles_and_a_click_puts_it_there() -> None:
    async with dashboard(many_devices(64, busy=True), size=(100, 30), view="compact") as pilot:
        await press(pilot, "tab", "down", "down")
        assert pilot.app.scene.device.name == "tpu:2"
        await press(pilot, "end")
        assert pilot.app.scene.device.name == "tpu:63"
        await press(pilot, "home")
        await pilot.click("#tiles", offset=(40, 1))
        await press(pilot)
        assert pilot.app.scene.device.name == "tpu:1"


async def test_the_cursor_of_a_heat_map_moves_in_two_dimensions() -> None:
    async with dashboard(many_devices(64, busy=True), size=(100, 30), view="heat") as pilot:
        await press(pilot, "tab", "right", "right", "down")
        assert pilot.app.scene.device.name == "tpu:18"
        assert "tpu:18 " in text(pilot, "heat").splitlines()[0]
        await press(pilot, "left", "up", "up")
        assert pilot.app.scene.device.name == "tpu:1"
        assert pilot.app.scene.back_s == 0
        await press(pilot, "end", "right", "down")
        assert pilot.app.scene.device.name == "tpu:63"
        await pilot.click("#heat", offset=(len("tpu:48 ") + 4 * 3 + 1, 1))
        await press(pilot)
        assert pilot.app.scene.device.name == "tpu:3"
        await press(pilot, "enter")
        assert pilot.app.page.NAME == "device"
        assert "tpu:3" in shown(pilot)


async def test_what_is_selected_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.delenv("STY", raising=False)
    written: list[str] = []
    async with dashboard(two_jobs(), size=(100, 40)) as pilot:
        monkeypatch.setattr(pilot.app._driver, "write", written.append)
        await press(pilot, "y")
        assert text(pilot, "footer").startswith("pid 41234 sent to the terminal's clipboard")
        await press(pilot, "tab", "down", "y")
        assert text(pilot, "footer").startswith("tpu:1 sent to the terminal's clipboard")
        await press(pilot, "tab", "m", "y")
    sent = [base64.b64decode(found[7:-1]) for found in written if found.startswith("\x1b]52;c;")]
    assert sent == [b"41234", b"tpu:1", b"train/optimizer.py:48"]


async def test_a_long_time_is_told_in_days_and_hours() -> None:
    feed = two_jobs()
    host = feed.snapshot().host._replace(uptime_s=273_600.0, memory_total_bytes=2**35)
    feed.change(host=host._replace(load_averages=(0.0, 1.25, 12.0), cpus=112))
    async with dashboard(feed, size=(120, 30)) as pilot:
        line = text(pilot, "host")
        assert line.startswith("load 0.0 1.2 12.0 of 112 CPUs · RAM –/32.0 GiB · up 3d04h · jax")


async def test_a_double_click_opens_a_tile_as_it_opens_a_row() -> None:
    async with dashboard(many_devices(64), size=(100, 30)) as pilot:
        await press(pilot, "H")
        await pilot.click("#heat", offset=(len("tpu:48 ") + 4 * 2, 1), times=2)
        await settle(pilot)
        assert screen_text(pilot)[1].startswith("tpu:2 ")


async def test_a_heat_map_keeps_its_cursor_in_sight_when_the_terminal_shrinks() -> None:
    async with dashboard(many_devices(256), size=(100, 40)) as pilot:
        await press(pilot, "H", "tab", "end")
        await pilot.resize_terminal(60, 16)
        await settle(pilot)
        heat = pilot.app.page.query_one("#heat", HeatMap)
        assert heat.index == 255
        assert heat.placed.place(255)[0] == heat.placed.line_count - 1
        assert heat._is_visible(255)


async def test_arrows_go_back_in_time_where_no_heat_map_has_the_cursor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with dashboard(many_devices(64, busy=True), size=(100, 30), view="heat") as pilot:
        went: list[int] = []
        monkeypatch.setattr(pilot.app, "action_travel", went.append)
        await press(pilot, "left", "right")
        assert went == [10, -10]
        await press(pilot, "tab", "right", "c", "left")
        assert went == [10, -10, 10]
        assert pilot.app.scene.device.name == "tpu:1"
