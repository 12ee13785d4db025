"""A real Prometheus scrapes real exporters, and the fleet has the numbers that were put in."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import bcrypt
import pytest
from support.certificates import certificate
from support.commands import tpusmi
from support.requirements import needs
from support.scrapers import LIMIT_S, Exporting, Prometheus, exporting, get, job, prometheus
from support.waits import until

from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot, HostHistory, HostState
from tpusmi.fleet.fleet_series import SHOWN_METRICS
from tpusmi.fleet.fleet_source import FleetError
from tpusmi.fleet.prometheus.prometheus_fleet import PrometheusFleet
from tpusmi.model import DEVICE_METRICS, PROCESS_METRICS, Host, Metric

pytestmark = needs("prometheus", "openssl")

CLOCKS = ("since_last_step_s",)
"""Metrics that a host whose numbers do not change still has to count on."""
UNREACHABLE = "127.0.0.1:9"


def wait_for_steps(one: Exporting) -> None:
    one.wait_until_ready()
    until(lambda: "tpusmi_process_steps_total" in get(one.url).text, LIMIT_S, "steps")


@pytest.fixture(scope="module")
def exporters(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Exporting]]:
    """Two for that host under the names of two, in one slice."""
    words = ("--simulate", host.root, "--slice", "pod-7", "--host-name")
    with (
        exporting(tmp_path_factory.mktemp("a"), *words, "vm-0") as first,
        exporting(tmp_path_factory.mktemp("b"), *words, "vm-1") as second,
    ):
        wait_for_steps(first)
        wait_for_steps(second)
        yield [first, second]


def targets(exporters: list[Exporting]) -> list[str]:
    return [f"127.0.0.1:{one.port}" for one in exporters]


@pytest.fixture(scope="module")
def ending(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporting]:
    """One more, which a test ends."""
    words = ("--simulate", host.root, "--host-name", "vm-2")
    with exporting(tmp_path_factory.mktemp("c"), *words) as found:
        found.wait_until_ready()
        yield found


class Guarded(NamedTuple):
    """A server with a certificate, a password and a path."""

    url: str
    folder: Path
    """Of its certificate."""


@pytest.fixture(scope="module")
def guarded(
    exporters: list[Exporting], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    certificate(folder)
    hashed = bcrypt.hashpw(b"hunter2", bcrypt.gensalt(4)).decode().replace("$2b$", "$2y$")
    web = folder / "web.yml"
    web.write_text(
        "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"
        f"basic_auth_users: {{ann: {hashed}}}\n"
    )
    flags = [f"--web.config.file={web}", "--web.route-prefix=/prometheus"]
    seldom = job(*targets(exporters), scrape_interval="2s")
    with prometheus(folder / "prometheus", [seldom], flags=flags) as server:
        yield Guarded(f"{server.base.replace('http:', 'https:')}/prometheus/", folder)


@pytest.fixture(scope="module")
def server(
    exporters: list[Exporting],
    ending: Exporting,
    guarded: Guarded,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Prometheus]:
    """It cannot reach a further one. A server scrapes nothing in its first 5 s: the guarded one
    waits for that at the same time.
    """
    jobs = [
        job(*targets(exporters), UNREACHABLE),
        job(UNREACHABLE, job_name="other"),
        job(f"127.0.0.1:{ending.port}", job_name="ending"),
    ]
    with prometheus(tmp_path_factory.mktemp("prometheus"), jobs) as found:
        found.wait_until("count(tpusmi_process_steps_total) >= 2")
        found.wait_until("count(up == 0) == 2")
        found.wait_until('tpusmi_device_info{job="ending"}')
        yield found


def by_name(found: FleetSnapshot) -> dict[str, FleetHost]:
    return {one.name: one for one in found.hosts}


def with_live(count: int, found: FleetSnapshot) -> FleetSnapshot | None:
    """It, if so many hosts are live: on a busy machine a scrape of half a second may fail."""
    live = sum(one.state is HostState.LIVE for one in found.hosts)
    return found if live == count else None


def values(item: dict[str, Any], metrics: list[Metric]) -> dict[str, Any]:
    """Those of the JSON that are known and not old."""
    found = {}
    for m in metrics:
        name, _, part = m.name.partition(".")
        value = item[name][part] if part else item[name]
        if value is not None and not item["provenance"][name]["stale"] and name not in CLOCKS:
            found[m.name] = value
    return found


def expected(tmp_path: Path, host: Host, which: Callable[[str], bool]) -> dict[str, Any]:
    """Values by device and by PID, as `tpusmi --json` has them."""
    whole = json.loads(tpusmi(tmp_path, "--json", "--simulate", host.root).stdout)
    of_devices = [m for m in DEVICE_METRICS if which(m.name)]
    of_processes = [m for m in PROCESS_METRICS if which(m.name)]
    devices = {str(one["index"]): values(one, of_devices) for one in whole["devices"]}
    processes = {one["pid"]: values(one, of_processes) for one in whole["processes"]}
    return {**devices, **processes}


def lacking(one: FleetHost, all_values: dict[str, Any]) -> list[str]:
    """What the host lacks of them: on a busy machine an exporter may lack some for a moment. Those
    that it has are the same.
    """
    items = {device.name: device for device in one.devices}
    found = {**items, **{process.pid: process for process in one.processes}}
    expected = [(key, name) for key, some in all_values.items() for name in some]
    assert len(expected) > 10
    absent = [(k, n) for k, n in expected if k not in found or n not in found[k].values]
    for key, name in {*expected} - {*absent}:
        value = pytest.approx(all_values[key][name], rel=1e-6)
        assert found[key].values[name] == value, (key, name)
    return [f"{name} of {key}" for key, name in absent]


def complete(one: FleetHost, all_values: dict[str, Any]) -> FleetHost | None:
    """The host, once it lacks none of them."""
    return None if lacking(one, all_values) else one


def test_the_fleet_has_the_numbers_that_were_put_in(
    server: Prometheus, exporters: list[Exporting], host: Host, tmp_path: Path
) -> None:
    source = PrometheusFleet(server.base, ['job!="ending"'])
    shown = expected(tmp_path, host, SHOWN_METRICS.__contains__)
    all_of_them = expected(tmp_path, host, lambda name: True)

    def whole() -> FleetSnapshot | None:
        found = with_live(2, source.snapshot())
        live = [one for one in found.hosts if one.name != UNREACHABLE] if found else []
        is_whole = found and not found.problems and not any(lacking(one, shown) for one in live)
        return found if is_whole else None

    found = until(whole, LIMIT_S, "both hosts")
    hosts = by_name(found)
    assert sorted(hosts) == [UNREACHABLE, "vm-0", "vm-1"]
    for name, address in zip(("vm-0", "vm-1"), targets(exporters), strict=True):
        one = hosts[name]
        assert (one.state, one.reason, one.slice) == (HostState.LIVE, "", "pod-7")
        assert (one.address, one.simulated) == (address, True)
        assert (one.chips, one.held_chips) == (4, 4)
        assert one.age_s is not None
        assert one.age_s < 30
        assert [device.coords for device in one.devices] == [
            (0, 0, 0),
            (1, 0, 0),
            (0, 1, 0),
            (1, 1, 0),
        ]
        details = until(lambda one=one: complete(source.details(one), all_of_them))
        assert details.key == one.key
    down = hosts[UNREACHABLE]
    assert (down.state, down.reason) == (HostState.DOWN, "Prometheus cannot scrape its exporter")


def test_history_has_the_values_of_the_host(server: Prometheus, host: Host, tmp_path: Path) -> None:
    source = PrometheusFleet(server.base, ["host=vm-1"])
    (one,) = until(lambda: source.snapshot().hosts, LIMIT_S, "the host")
    metrics = ["hbm_used_bytes", "tensorcore_utilization_percent", "hbm_peak_bytes", "nonsense"]

    def history() -> Mapping[str, HostHistory]:
        read = source.history(one, metrics, 60, 60)
        return read if sorted(read) == sorted(metrics[:3]) else {}

    def means() -> dict[str, float]:
        """Those of the four devices, once all have a value."""
        whole = expected(tmp_path, host, metrics.__contains__)
        columns = {m: [whole[index].get(m) for index in "0123"] for m in metrics[:3]}
        is_whole = all(None not in values for values in columns.values())
        return {m: sum(values) / 4 for m, values in columns.items()} if is_whole else {}

    found = until(history, LIMIT_S, "two points")
    now_s = time.time()
    for metric, mean in until(means, LIMIT_S, "a value of each device").items():
        known = [value for value in found[metric].values if value is not None]
        assert pytest.approx(mean, rel=1e-6) in known  # at times an exporter lacks a device
        assert len(found[metric].values) == 60
        assert found[metric].first_s + 59 == pytest.approx(now_s, abs=30)


def test_matchers_select_hosts(server: Prometheus, exporters: list[Exporting]) -> None:
    def names(*match: str) -> list[str]:
        return sorted(by_name(PrometheusFleet(server.base, match).snapshot()))

    for match, expected in (
        ("slice=pod-7", ["vm-0", "vm-1"]),
        (f'instance="{targets(exporters)[0]}"', ["vm-0"]),
        ('{host!="vm-0",slice=~"pod-."}', ["vm-1"]),
        ("job=other", [UNREACHABLE]),
    ):
        # A host has no series for a moment after a scrape that failed on a busy machine.
        until(lambda m=match, e=expected: names(m) == e, LIMIT_S, match)
    assert names("host=nothing") == []
    with pytest.raises(FleetError, match="rejects the query"):
        names('host=~"("')


def test_an_exporter_that_ends_is_down_and_its_host_still_known(
    server: Prometheus, ending: Exporting
) -> None:
    source = PrometheusFleet(server.base, ["job=ending"])
    until(lambda: with_live(1, source.snapshot()), LIMIT_S, "it is live")
    ending.process.terminate()
    until(
        lambda: [one.state for one in source.snapshot().hosts] == [HostState.DOWN],
        LIMIT_S,
        "it is down",
    )
    (one,) = source.snapshot().hosts
    assert (one.name, one.chips) == ("vm-2", 4)
    assert one.devices[3].coords == (1, 1, 0)
    assert all(not device.values for device in one.devices)
    assert source.details(one).devices == one.devices


def test_certificate_password_and_path_of_a_server(guarded: Guarded) -> None:
    def fleet(url: str, text: str) -> FleetSnapshot:
        path = guarded.folder / "http.yml"
        path.write_text(text)
        return PrometheusFleet(url, (), str(path)).snapshot()

    url, tls = guarded.url, "tls_config: {ca_file: tls.crt}\n"
    right = f"{tls}basic_auth: {{username: ann, password: hunter2}}"
    until(lambda: len(fleet(url, right).hosts) == 2, LIMIT_S, "both hosts")
    for other, text, why in (
        (url, tls, "it wants a password or a token: see --http-config"),
        (url, right.replace("hunter2", "hunter3"), "it does not accept the credentials"),
        (url, "basic_auth: {username: ann}", "see ca_file in --http-config"),
        (url.removesuffix("prometheus/"), right, "it has no Prometheus API there"),
        (url.replace("https:", "http:"), right, "Client sent an HTTP request"),
    ):
        with pytest.raises(FleetError, match=why) as refused:
            fleet(other, text)
        assert "hunter" not in str(refused.value)
