"""Graphs of the machine itself on the main page: there where they have room, and only there."""

from __future__ import annotations

import pytest
from support.dashboards import dashboard, press, shown, text
from support.feeds import ScriptedFeed, two_jobs

from tpusmi.model import HOST_CPU, HOST_KEY, HOST_LOAD, HOST_MEMORY, Reading

GIB = 1 << 30
VALUES = {HOST_CPU: 40.0, HOST_LOAD: 12.0, HOST_MEMORY: 30 * GIB}


def feed(names: tuple[str, ...] = tuple(VALUES)) -> ScriptedFeed:
    told = two_jobs()
    s = told.snapshot()
    told.history.add(
        Reading(name, HOST_KEY, VALUES[name], at_s, "host", 65.0)
        for at_s in range(int(s.at_s) - 100, int(s.at_s) + 1)
        for name in names
    )
    host = s.host._replace(
        load_averages=(12.0, 11.0, 10.0),
        cpus=24,
        memory_total_bytes=64 * GIB,
        memory_available_bytes=34 * GIB,
    )
    told.change(host=host)
    return told


@pytest.mark.parametrize(
    ("size", "expected"),
    [((200, 60), True), ((120, 60), True), ((120, 35), False), ((80, 24), False)],
)
async def test_cpus_and_memory_have_graphs_on_tall_screens(
    size: tuple[int, int], expected: bool
) -> None:
    async with dashboard(feed(), size) as pilot:
        screen = shown(pilot)
        assert ("host CPU 40 %" in screen) is expected
        assert ("host RAM 30.0 GiB" in screen) is expected
        assert "mean HBM" in screen or size[1] < 35


async def test_the_load_is_a_line_over_the_cpus() -> None:
    async with dashboard(feed(), (200, 60)) as pilot:
        assert "load 12.0 of 24 CPUs, the line" in shown(pilot)


async def test_without_a_history_of_the_host_there_is_no_graph_of_it() -> None:
    async with dashboard(feed(()), (200, 60)) as pilot:
        assert "host CPU" not in shown(pilot)
        assert "mean HBM" in shown(pilot)


async def test_in_the_past_the_memory_is_that_of_then() -> None:
    async with dashboard(feed(), (200, 60)) as pilot:
        await press(pilot, "left")
        assert "AGO" in shown(pilot)
        assert "host RAM 30.0 GiB" in shown(pilot)
        assert "RAM 30.0/64.0 GiB" in text(pilot, "host")


async def test_cpus_that_are_not_known_are_a_dash_and_no_zero() -> None:
    async with dashboard(feed((HOST_LOAD, HOST_MEMORY)), (200, 60)) as pilot:
        assert "host CPU –" in shown(pilot)
