"""The tables on the page of a host of a fleet."""

from __future__ import annotations

from typing import Any

import pytest
from support.fleet_hosts import device, host, process

from tpusmi.fleet.fleet_figures import FleetHost, HostState
from tpusmi.fleet.report.group_columns import COLUMNS
from tpusmi.tui.draw.look import Look
from tpusmi.tui.fleet import host_lines


def lines(table: Any, h: FleetHost) -> str:
    rows = table(Look(color=False), h, 300)
    return "\n".join("".join(piece.text for piece in row) for row in rows)


@pytest.mark.parametrize(
    ("verdict", "mark"), [("stale", "stale"), ("maybe", "maybe"), ("unknown", "?")]
)
def test_a_verdict_has_the_words_of_the_other_screens(verdict: str, mark: str) -> None:
    two = process(7, verdict="not_stale"), process(8, verdict=verdict)
    text = lines(host_lines.processes, host("a", processes=two))
    assert "VERDICT" in text
    assert text.count(f" {mark} ") == 1
    assert " no " in text
    assert "not_stale" not in text


def test_a_verdict_that_says_nothing_has_no_column() -> None:
    text = lines(host_lines.processes, host("a", processes=(process(7, verdict="not_stale"),)))
    assert "VERDICT" not in text


def test_words_about_the_past_are_in_parentheses_as_numbers_are() -> None:
    down = host("a", state=HostState.DOWN, processes=(process(7, steps=5.0),))
    text = lines(host_lines.processes, down)
    assert "(live)" in text
    assert "(running)" in text
    assert "(5)" in text


@pytest.mark.parametrize("percent", [0.0, 30.0])
def test_a_chip_that_slows_itself_down_is_in_the_table_of_devices(percent: float) -> None:
    devices = (device(0, throttle_percent=0.0), device(1, throttle_percent=percent))
    text = lines(host_lines.devices, host("a", devices=devices))
    assert ("THROTTLE" in text) == (" 30 %" in text) == (percent > 0)
    assert "tpu:1" in text


def test_the_longest_sum_of_memory_has_room() -> None:
    (column,) = (c for c in COLUMNS if c.title == "MEMORY")
    assert column.most == len("(1023.9/1023.9 GiB)")
