"""The device page: its keys, and what it says of devices of every kind."""

from __future__ import annotations

import pytest
from support import device_feeds, snapshots
from support.dashboards import dashboard, press, screen_text, settle, shown
from support.feeds import START_S, MomentFeed, ScriptedFeed
from textual.events import MouseScrollDown, MouseScrollUp
from textual.pilot import Pilot

from tpusmi.model import DENIED, Outcome, Value
from tpusmi.report import words
from tpusmi.tui.app import Dashboard
from tpusmi.tui.draw.lines import Lines

SIZE = (120, 35)


def page_text(pilot: Pilot[None]) -> str:
    return pilot.app.screen.query_one("#device", Lines).text()


def first_line(pilot: Pilot[None]) -> str:
    return page_text(pilot).splitlines()[0]


async def test_d_opens_the_first_device_and_escape_leaves_it() -> None:
    async with dashboard(device_feeds.chips(), SIZE) as pilot:
        await press(pilot, "d")
        assert first_line(pilot).startswith("tpu:0  1 of 8  TPU v5 lite · id 0 · at 0,0,0 · chip 0")
        assert "/dev/vfio/0" in first_line(pilot)
        await press(pilot, "escape")
        assert "DEVICE CHIP" in shown(pilot)


async def test_enter_opens_the_device_under_the_cursor() -> None:
    async with dashboard(device_feeds.chips(), SIZE) as pilot:
        await press(pilot, "tab", "down", "down", "enter")
        assert first_line(pilot).startswith("tpu:2  3 of 8")


@pytest.mark.parametrize(("forth", "back"), [("tab", "shift+tab"), ("down", "up")])
async def test_the_next_device_and_the_one_before_go_round(forth: str, back: str) -> None:
    async with dashboard(device_feeds.chips(), SIZE) as pilot:
        await press(pilot, "d", forth)
        assert first_line(pilot).startswith("tpu:1  2 of 8")
        await press(pilot, back, back)
        assert first_line(pilot).startswith("tpu:7  8 of 8")
        await press(pilot, forth)
        assert first_line(pilot).startswith("tpu:0  1 of 8")


@pytest.mark.parametrize("size", [(80, 24), (120, 50), (200, 60)])
async def test_the_highest_of_the_span_is_that_of_no_mean(size: tuple[int, int]) -> None:
    """Whatever the width of a column is, and never below what is measured now."""
    async with dashboard(device_feeds.chips(), size) as pilot:
        await press(pilot, "d")
        assert "MXU   55 %  mean  57 % · max  60 %" in shown(pilot)


async def test_w_draws_ten_five_two_and_one_minutes_in_turn() -> None:
    async with dashboard(device_feeds.chips(), SIZE) as pilot:
        await press(pilot, "d")
        for oldest in ("-10m", "-5m", "-2m", "-1m", "-10m"):
            axis = next(line for line in screen_text(pilot) if line.strip().endswith("now"))
            assert axis.split()[0] == oldest
            await press(pilot, "w")


async def test_page_down_and_up_scroll_the_values_that_do_not_fit() -> None:
    async with dashboard(device_feeds.chips(), (80, 24)) as pilot:
        await press(pilot, "d")
        assert "more: PgDn" in shown(pilot)
        assert "memory-bound" not in shown(pilot)
        await press(pilot, "pagedown", "pagedown", "pagedown")
        assert "memory-bound" in shown(pilot)
        assert "more: PgDn" not in shown(pilot)
        await press(pilot, "pageup", "pageup", "pageup")
        assert "memory-bound" not in shown(pilot)
        assert "used             13.0 GiB" in shown(pilot)


async def test_the_wheel_scrolls_them_too() -> None:
    async with dashboard(device_feeds.chips(), (80, 24)) as pilot:
        await press(pilot, "d")
        before = shown(pilot)
        await pilot._post_mouse_events([MouseScrollDown], "#device", offset=(5, 20))
        await settle(pilot)
        assert "▴ 3" in shown(pilot)
        await pilot._post_mouse_events([MouseScrollUp], "#device", offset=(5, 20))
        await settle(pilot)
        assert shown(pilot) == before


async def test_the_arrow_keys_show_the_values_of_then_and_n_those_of_now() -> None:
    feed = device_feeds.chips()
    async with dashboard(feed, SIZE) as pilot:
        await press(pilot, "d")
        now = screen_text(pilot)
        await press(pilot, "left")
        then = screen_text(pilot)
        assert "10s AGO" in then[0]
        used = feed.history.at("hbm_used_bytes", feed.jobs[0].devices()[0].key, START_S - 10, 1)
        assert words.size(used) in "\n".join(then)
        assert words.size(used) not in "\n".join(now)
        assert [line.split()[-1] for line in then if "-10m" in line] == ["then"]
        assert "ICI LINKS OF CHIP 0" in "\n".join(now)
        assert "ICI LINKS" not in "\n".join(then)
        await press(pilot, "n")
        assert screen_text(pilot) == now


async def test_a_look_back_to_before_anything_was_measured_moves_no_graph() -> None:
    async with dashboard(device_feeds.chips(past_s=30, tick_s=1.0), SIZE) as pilot:
        await press(pilot, "d")
        now = page_text(pilot)
        await press(pilot, *["left"] * 4)
        then = page_text(pilot)
        for title in ("HBM  ", "MXU  ", "duty cycle  ", "HBM bandwidth  "):
            assert title in now
            assert title in then
        assert "not measured" not in then


async def test_the_job_page_and_the_end_are_for_the_owner_of_the_device() -> None:
    async with dashboard(device_feeds.chips(), SIZE) as pilot:
        await press(pilot, "d", "up")
        assert isinstance(pilot.app, Dashboard)
        assert [p.pid for p in pilot.app.page.targets] == [52870]
        process = pilot.app.scene.process
        assert process is not None
        assert process.pid == 52870


async def test_a_device_of_no_chip_has_no_links_rates_or_complaints() -> None:
    async with dashboard(device_feeds.cpus(), SIZE) as pilot:
        await press(pilot, "d")
        page = page_text(pilot)
        assert page.startswith("cpu:0  1 of 4  cpu · id 0")
        assert "live arrays   " in page
        assert "step p95" in page
        for absent in ("ICI", "ROOFLINE", "not measured", "HBM", "used", "–"):
            assert absent not in page


async def test_a_gpu_has_its_memory() -> None:
    async with dashboard(device_feeds.gpus(), SIZE) as pilot:
        await press(pilot, "d")
        page = page_text(pilot)
        assert "NVIDIA H100 80GB HBM3" in page.splitlines()[0]
        assert "% of 15.8 GiB · peak 12.1 GiB" in page
        assert "unattributed" in page
        assert "not measured" not in page


async def test_what_nobody_measures_is_no_empty_graph_but_told_once_with_the_reason() -> None:
    async with dashboard(device_feeds.without_sdk(), SIZE) as pilot:
        await press(pilot, "d")
        page = page_text(pilot)
        assert "no data for MXU, duty cycle" in page
        assert "libtpu_sdk absent: this Python has no libtpu" in " ".join(page.split())
        assert page.count("100 %│") == 0
        assert page.count("now\n") == 1


async def test_a_value_of_the_whole_chip_has_a_ditto_mark() -> None:
    async with dashboard(MomentFeed(snapshots.machine()), SIZE) as pilot:
        await press(pilot, "d", "tab")
        page = page_text(pilot)
        assert "core 1" in page.splitlines()[0]
        assert 'duty cycle   98 %  " of the chip' in page
        assert any(line.find('duty cycle "') >= 0 for line in page.splitlines())
        assert "61.5    123" in page


async def test_an_error_and_a_bad_link_are_told_under_the_name() -> None:
    feed = device_feeds.chips()
    broken = tuple(
        d._replace(error="device lost") if d.index == 1 and d.id == 1 else d
        for d in feed.snapshot().devices
    )
    feed.change(devices=broken)
    async with dashboard(feed, SIZE) as pilot:
        await press(pilot, "d", "tab")
        lines = page_text(pilot).splitlines()
        assert lines[2].rstrip() == "! device lost"
        assert lines[3].startswith("! ICI link tray1.chip1.ici2.int of chip 1 has a lasting fault")
        assert "→ restart the job on another host, and report this host" in lines[3] + lines[4]


async def test_an_old_value_says_how_old_it_is() -> None:
    feed = device_feeds.chips()
    now = feed.snapshot()
    feed.change(values={key: Value(v.value, v.source, 70.0, True) for key, v in now.values.items()})
    async with dashboard(feed, SIZE) as pilot:
        await press(pilot, "d")
        page = page_text(pilot)
        assert "used 1m10s old      13.0 GiB" in page
        assert "1m10s old · " in page
        assert "memory-bound" not in page


async def test_text_from_outside_is_text() -> None:
    feed = device_feeds.cpus()
    evil = tuple(d._replace(kind="[red]cpu[/red]") for d in feed.snapshot().devices)
    feed.change(devices=evil)
    async with dashboard(feed, SIZE) as pilot:
        await press(pilot, "d")
        assert "[red]cpu[/red]" in first_line(pilot)


async def test_a_host_without_devices_says_so() -> None:
    nothing = ScriptedFeed(changes={"sources": (Outcome("agent", DENIED, "may not"),)})
    async with dashboard(nothing, SIZE) as pilot:
        await press(pilot, "d", "tab", "w", "pagedown")
        assert page_text(pilot) == "No device on this host"


@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (5, 3), (20, 6), (40, 10), (33, 50), (400, 100)])
async def test_every_size_is_filled_and_never_exceeded(size: tuple[int, int], ascii: bool) -> None:
    async with dashboard(device_feeds.chips(), SIZE, ascii=ascii) as pilot:
        await press(pilot, "d")
        await pilot.resize_terminal(*size)
        await settle(pilot)
        await press(pilot, "tab", "w", "pagedown", "left")
        lines = page_text(pilot).splitlines()
        assert len(lines) <= max(0, size[1] - 2)
        if size[1] > 9:
            assert lines[0].startswith("tpu:1")
        if ascii:
            assert page_text(pilot).isascii()
