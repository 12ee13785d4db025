"""What the device page says of running programs and of the network, and when it asks for them."""

from __future__ import annotations

import pytest
from support import device_feeds
from support.dashboards import dashboard, press, settle, shown
from support.feeds import ScriptedFeed

from tpusmi.collect import Collector
from tpusmi.model import LIBTPU, OK, Core, Host, Latency, Outcome, Percentiles, Snapshot
from tpusmi.tui.app import Dashboard
from tpusmi.tui.device.device_programs import cores_of, operation
from tpusmi.tui.feed import Options

SIZE = (120, 60)
PORT = "127.0.0.1:8431"
DCN = "buffer_transfer_latency_us"


def core(number: int, **fields: object) -> Core:
    plain = Core(
        server=PORT,
        id=number,
        chip_id=number,
        type="TENSOR_CORE",
        index=0,
        hlo_location=f"HLO: fusion.{number}; HLO computation: main.579",
        program_fingerprint="6d61",
        queued_programs=2,
        error=None,
    )
    return plain._replace(**fields)  # type: ignore[arg-type]


def latency(name: str, label: str, median: float | None, count: int | None = 9) -> Latency:
    numbers = Percentiles(
        count, median, median, median, median, None if median is None else 2 * median
    )
    return Latency(name, label, numbers, 1000.0, LIBTPU, None, PORT)


LATENCIES = (
    latency(DCN, "8MB+", 44_100.0),
    latency("collective_e2e_latency_us", "2MB+-ALL_REDUCE", 31_000.0),
    latency("tcp_delivery_rate_mbps", "", 12_300.0),
    latency("host_compute_latency_us", "4MB+", None, 0),
)


def feed(**changes: object) -> ScriptedFeed:
    told = device_feeds.chips()
    told.change(**changes)
    return told


async def test_the_device_page_says_what_the_devices_cores_run() -> None:
    cores = tuple(core(n) for n in range(8))
    async with dashboard(feed(cores=cores), SIZE) as pilot:
        await press(pilot, "d")
        assert "core 0" in shown(pilot)
        assert "2 queued" in shown(pilot)
        assert "fusion.0 in main.579" in shown(pilot)
        await press(pilot, "tab")
        assert "fusion.1 in main.579" in shown(pilot)
        assert "fusion.0 in" not in shown(pilot)


async def test_without_an_answer_about_programs_there_is_no_block_of_them() -> None:
    async with dashboard(feed(), SIZE) as pilot:
        await press(pilot, "d")
        assert "PROGRAMS" not in shown(pilot)
        assert "NETWORK" not in shown(pilot)


async def test_the_device_page_has_the_network_of_the_host_without_what_was_not_measured() -> None:
    async with dashboard(feed(latencies=LATENCIES), SIZE) as pilot:
        await press(pilot, "d")
        lines = [" ".join(line.split()) for line in shown(pilot).splitlines()]
        for row in ("send 8MB+ 44.1 ms", "ALL_REDUCE 2MB+ 31.0 ms", "TCP Gbit/s 12.3"):
            assert any(row in line for line in lines), row
        assert "on host" not in shown(pilot)


def test_a_core_is_that_of_the_device_with_its_number_and_of_no_other_kind() -> None:
    s = snapshot()
    cores = (core(1), core(0, type="SPARSE_CORE"), core(0, hlo_location=None), core(9))
    device = s.devices[0]
    assert cores_of(s._replace(cores=cores), device) == [cores[2]]
    assert cores_of(s._replace(cores=cores), device._replace(id=None)) == []
    assert cores_of(s._replace(cores=cores), device._replace(kind=None, chip=None)) == []


def snapshot() -> Snapshot:
    return device_feeds.chips().snapshot()


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("HLO: fusion.5; HLO computation: main.1", "fusion.5 in main.1"),
        ("at line 3", "at line 3"),
        (None, ""),
        ("x" * 10_000, "x" * 10_000),
    ],
)
def test_an_operation_is_named_briefly_or_as_libtpu_has_it(location: str | None, text: str) -> None:
    assert operation(core(0, hlo_location=location)) == text


async def test_programs_are_asked_for_only_while_the_device_page_is_open() -> None:
    asked: list[bool] = []
    app = Dashboard(device_feeds.chips(), Options(watch_programs=asked.append))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert asked == []
        await press(pilot, "d")
        assert asked == [True]
        await press(pilot, "j")
        assert asked == [True, False]
        await press(pilot, "d", "escape")
        assert asked == [True, False, True, False]


class Counted:
    """A source that can be asked for programs."""

    name, period_s, with_programs = LIBTPU, 60.0, False

    def read(self, now_s: float) -> Outcome:
        return Outcome(LIBTPU, OK)

    def close(self) -> None:
        pass


def test_the_collector_passes_it_on_to_the_source_that_can_tell() -> None:
    source = Counted()
    collector = Collector(Host(), [source])
    collector.watch_programs(True)
    assert source.with_programs
    collector.watch_programs(False)
    assert not source.with_programs
