"""`tpusmi fleet` for real: a Prometheus with the past of a simulated fleet, and exporters of which
some hang.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.backfilled_prometheus import backfill
from support.clocks import Stopwatch
from support.commands import tpusmi
from support.exposition_servers import exporters
from support.requirements import needs
from support.scrapers import prometheus

from tpusmi.fleet.exporters import exporters_fleet
from tpusmi.fleet.exporters.exporters_fleet import PATIENCE_S, ExporterFleet
from tpusmi.fleet.fleet_figures import FleetHost, HostState
from tpusmi.fleet.groups.stragglers import STEP
from tpusmi.fleet.prometheus.prometheus_fleet import PrometheusFleet
from tpusmi.fleet.report.fleetkeys import timestamp
from tpusmi.fleet.simulated.simulated_fleet import SimulatedFleet
from tpusmi.simulate.fleet_job import DIED_S

SPEC = "v5e-64,v6e-8*3"
HANGING = 2


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that knows the fleet."""
    folder = tmp_path_factory.mktemp("prometheus")
    backfill(folder, SPEC)
    with prometheus(folder, []) as server:
        yield server.base


def printed(directory: Path, *words: str) -> dict[str, Any]:
    done = tpusmi(directory, "fleet", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs("prometheus", "promtool")
def test_prometheus_gives_back_the_numbers_that_were_put_in(url: str, tmp_path: Path) -> None:
    fleet = printed(tmp_path, "--prometheus", url)
    assert fleet["problems"] == []
    (age_s,) = {round(h["age_s"]) for h in fleet["hosts"] if h["state"] == "live"}
    assert 0 <= age_s <= 60
    at_s = time.time()
    expected = SimulatedFleet(SPEC, lambda: at_s).snapshot()
    by_name = {h["name"]: h for h in fleet["hosts"]}
    assert {*by_name} == {h.name for h in expected.hosts}
    for h in expected.hosts:
        found = by_name[h.name]
        assert found["state"] == h.state
        if h.state == "live":
            assert (found["slice"], found["chips"]) == (h.slice, h.chips)
            assert [d["coords"] for d in found["devices"]] == [
                None if d.coords is None else [*d.coords] for d in h.devices
            ]
            limits = [d["hbm_limit_bytes"] for d in found["devices"]]
            assert limits == [d.values.get("hbm_limit_bytes") for d in h.devices]


def on_first_screen(host: FleetHost) -> FleetHost:
    """The host without what only its own page and the topology show."""
    processes = (
        p._replace(state=None, values={n: v for n, v in p.values.items() if n == STEP})
        for p in host.processes
    )
    return host._replace(links=(), age_s=0, processes=tuple(processes))


@needs("prometheus", "promtool")
def test_for_a_dashboard_links_come_with_the_second_look(url: str) -> None:
    fleet = PrometheusFleet(url, is_patient=False)
    first, second = fleet.snapshot(), fleet.snapshot()
    assert first.problems == second.problems == ()
    assert not any(h.links for h in first.hosts)
    assert any(h.links for h in second.hosts)
    assert [*map(on_first_screen, first.hosts)] == [*map(on_first_screen, second.hosts)]


@needs("prometheus", "promtool")
def test_a_host_that_was_live_then_is_live_then(url: str, tmp_path: Path) -> None:
    fleet = PrometheusFleet(url)
    now = {h.name: h for h in fleet.snapshot().hosts}
    (dead,) = (h for h in now.values() if h.state is HostState.DOWN)
    about_s = time.time() - DIED_S - 250.0
    ago_s = min(h.age_s or 0.0 for h in fleet.snapshot(about_s).hosts)
    at_s = about_s - ago_s + 5.0  # the samples are minutes apart there
    then = fleet.snapshot(at_s)
    assert (then.at_s, then.problems) == (at_s, ())
    ages = {h.name: h.age_s or 0.0 for h in then.hosts}
    assert {h.name: h.state for h in then.hosts} == {
        **{name: h.state for name, h in now.items()},
        dead.name: HostState.LIVE,
    }
    assert ages[dead.name] == pytest.approx(5.0, abs=0.1)
    host = next(h for h in then.hosts if h.name == dead.name)
    details = fleet.details(host, at_s)
    assert (details.state, details.key) == (HostState.LIVE, host.key)
    assert details.devices[0].values == host.devices[0].values
    past = fleet.history(host, ["hbm_used_bytes"], 900.0, 60, at_s)["hbm_used_bytes"]
    end_s = past.first_s + past.step_s * (len(past.values) - 1)
    assert at_s - past.step_s < end_s <= at_s
    assert past.values[-1] is not None
    one = printed(tmp_path, "--prometheus", url, "--time", f"{at_s:.3f}")
    assert all(
        h["state"]
        == ("old" if h["name"] != dead.name and now[h["name"]].state is HostState.OLD else "live")
        for h in one["hosts"]
    )
    assert one["timestamp"] == timestamp(round(at_s, 3))


@needs("prometheus", "promtool")
def test_a_time_before_all_numbers_has_no_host(url: str, tmp_path: Path) -> None:
    done = tpusmi(tmp_path, "fleet", "--prometheus", url, "--time", "2h", "--once")
    assert done.returncode == 1
    assert "has no host from that time: does it keep its numbers long enough?" in done.stderr


@needs("prometheus", "promtool")
def test_a_matcher_chooses_series_and_a_wrong_one_is_refused(url: str, tmp_path: Path) -> None:
    fleet = printed(tmp_path, "--prometheus", url, "--match", 'slice="v5e-64-0"')
    assert {h["slice"] for h in fleet["hosts"]} == {"v5e-64-0"}
    done = tpusmi(tmp_path, "fleet", "--prometheus", url, "--match", "slice=~", "--once")
    assert done.returncode == 2
    nothing = tpusmi(tmp_path, "fleet", "--prometheus", url, "--match", 'slice="z"', "--once")
    assert (nothing.returncode, "knows no host" in nothing.stderr) == (1, True)


def test_exporters_that_hang_are_down_and_delay_nobody(tmp_path: Path) -> None:
    with exporters("v5e-16,v6e-8", HANGING) as addresses:
        with Stopwatch() as command:
            fleet = printed(tmp_path, "--hosts", ",".join(addresses))
        assert command.seconds() < 15
    states = [h["state"] for h in fleet["hosts"]]
    assert states.count("live") == 3
    assert len(states) == 5
    silent = [h for h in fleet["hosts"] if h["state"] != "live"]
    assert {h["address"] for h in silent} == {*addresses[-HANGING:]}
    assert all(h["reason"] for h in silent)
    assert all(h["chips"] is None and h["devices"] == [] for h in silent)
    assert fleet["simulated"] is True


def test_for_a_dashboard_the_first_look_does_not_wait_for_those_that_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for limit in ("FIRST_LOOK_S", "FIRST_ANSWER_S"):  # the most that it may wait
        monkeypatch.setattr(exporters_fleet, limit, 60.0)
    with exporters("v5e-16,v6e-8", HANGING) as addresses:
        fleet = ExporterFleet(",".join(addresses), None, is_patient=False)
        s = fleet.snapshot()
        fleet.close()
    states = [h.state for h in s.hosts]
    assert s.took_s < PATIENCE_S
    assert states.count(HostState.LIVE) >= 1
    assert states.count(HostState.PENDING) >= HANGING


def test_a_server_that_does_not_answer_is_exit_code_4(tmp_path: Path) -> None:
    done = tpusmi(tmp_path, "fleet", "--prometheus", "http://127.0.0.1:1", "--once")
    assert (done.returncode, done.stdout) == (4, "")
    assert "127.0.0.1:1" in done.stderr


def test_without_yaml_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text("raise ImportError('gone', name='yaml')\n")
    config = tmp_path / "http.yml"
    config.write_text("follow_redirects: false\n")
    words = ("--hosts", "127.0.0.1:1", "--once", "--http-config", str(config))
    done = tpusmi(tmp_path, "fleet", *words, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "yaml is not installed here: pip install 'tpusmi[serve]'" in done.stderr
