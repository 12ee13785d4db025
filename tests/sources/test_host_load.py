"""How busy the machine itself is, from two looks at it, and that unknown is never 0."""

from __future__ import annotations

import pytest

from tpusmi.cli.dashboard import _Feed
from tpusmi.collect import Collector
from tpusmi.model import HOST_CPU, HOST_KEY, HOST_LOAD, HOST_MEMORY, Host, HostFacts
from tpusmi.report.select import Selection
from tpusmi.sources.host_load import HostLoad

GIB = 1 << 30
FACTS = HostFacts(
    "vm",
    "2026-01-01T00:00:00.000Z",
    None,
    None,
    load_averages=(6.0, 5.0, 4.0),
    cpus=8,
    memory_total_bytes=64 * GIB,
    memory_available_bytes=48 * GIB,
    uptime_s=1000.0,
    idle_s=7000.0,
)


def later(elapsed_s: float, idle_s: float | None) -> HostFacts:
    idle = None if idle_s is None else 7000.0 + idle_s
    return FACTS._replace(uptime_s=1000.0 + elapsed_s, idle_s=idle)


def cpu(*looks: HostFacts) -> list[float | None]:
    load = HostLoad()
    return [
        next((float(r.value) for r in load.readings(f, 50.0 + n) if r.metric == HOST_CPU), None)
        for n, f in enumerate(looks)
    ]


def test_load_and_memory_are_known_at_once_and_the_cpus_at_the_second_look() -> None:
    load = HostLoad()
    assert {r.metric: r.value for r in load.readings(FACTS, 50.0)} == {
        HOST_LOAD: 6.0,
        HOST_MEMORY: 16 * GIB,
    }
    second = load.readings(later(2.0, 4.0), 52.0)
    assert {r.subject for r in second} == {HOST_KEY}
    assert {r.metric: r.value for r in second}[HOST_CPU] == 75.0


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param(later(2.0, 16.0), 0.0, id="all were idle"),
        pytest.param(later(2.0, 16.2), 0.0, id="a little more than all, by rounding"),
        pytest.param(later(2.0, 0.0), 100.0, id="none was idle"),
        pytest.param(later(2.0, None), None, id="the idle time cannot be read"),
        pytest.param(later(2.0, 4.0)._replace(cpus=None), None, id="the number is not known"),
        pytest.param(later(0.1, 0.4), None, id="too soon"),
        pytest.param(later(-900.0, 4.0), None, id="the machine was restored from a snapshot"),
    ],
)
def test_the_share_of_the_cpus(second: HostFacts, expected: float | None) -> None:
    assert cpu(FACTS, second) == [None, expected]


def test_a_look_that_came_too_soon_is_part_of_the_next() -> None:
    assert cpu(FACTS, later(0.1, 0.8), later(2.0, 8.0)) == [None, None, 50.0]


def test_what_cannot_be_read_is_left_out() -> None:
    assert HostLoad().readings(HostFacts("vm", "", None, None), 50.0) == []


def test_every_look_of_the_dashboard_is_in_its_history() -> None:
    collector = Collector(Host(), [])
    s = _Feed(collector, collector.history, Selection(), HostLoad()).snapshot()
    assert collector.history.at(HOST_LOAD, HOST_KEY, s.at_s, 5.0) == pytest.approx(
        s.host.load_averages[0] if s.host.load_averages else None, rel=1e-4
    )
    assert collector.history.at(HOST_CPU, HOST_KEY, s.at_s, 5.0) is None
