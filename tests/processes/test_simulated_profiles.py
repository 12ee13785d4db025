"""`tpusmi profile PID` on a simulated host, as on a laptop: the request, the trace, the page."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import traces
from support.measured_command import Measured, measured
from support.simulated_hosts import set_faults

from tpusmi.model import Host
from tpusmi.simulate import description
from tpusmi.simulate.host import HostPlan, start

LIMIT_S = 60.0


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """A v2-8 whose job has two processes, each with an agent and half of the devices."""
    with start(HostPlan("v2-8", agent=True, processes=2, freeze_s=65.0)) as found:
        yield found


def pids(host: Host) -> list[int]:
    """Those of the job."""
    return [process["pid"] for process in description.read(host.root)["processes"]]


def profile(host: Host, pid: int, tmp_path: Path, *options: str) -> Measured:
    """`tpusmi profile PID`, of half a second."""
    own = ("--simulate", host.root, "--duration-ms", "500", "--cost-seconds", "0")
    return measured(("profile", str(pid), *own, *options), tmp_path / "tmp")


def test_each_process_hands_over_the_trace_of_its_own_devices(host: Host, tmp_path: Path) -> None:
    before = sorted(os.listdir(host.segment_dir))
    done = profile(host, pids(host)[1], tmp_path, "--json")
    assert done.code == 0, done.err
    told: dict[str, Any] = json.loads(done.out)
    assert told["capture"]["simulated"] is True
    assert told["capture"]["how"] == "agent"
    assert (told["backend"], told["device_type"]) == ("tpu", "TPU v2")
    assert [core["id"] for core in told["cores"]] == [4, 5, 6, 7]
    assert told["duty_cycle_percent"] == pytest.approx(98.5, abs=1.5)
    assert told["captured_s"] == pytest.approx(0.5, rel=0.01)
    until_s = time.monotonic() + LIMIT_S
    while sorted(os.listdir(host.segment_dir)) != before and time.monotonic() < until_s:
        time.sleep(0.02)  # the job looks a few times per second whether its trace was fetched
    assert sorted(os.listdir(host.segment_dir)) == before
    assert not traces.leftovers(tmp_path / "tmp")


def test_the_page_says_that_it_is_simulated(host: Host, tmp_path: Path) -> None:
    done = profile(host, pids(host)[0], tmp_path, "--no-xprof")
    assert done.code == 0, done.err
    assert "SIMULATED" in done.out
    assert "jit_train_step" in done.out


def test_a_job_that_forbids_captures_is_not_captured(host: Host, tmp_path: Path) -> None:
    set_faults(host.root, ("no-captures",))
    try:
        done = profile(host, pids(host)[0], tmp_path)
    finally:
        set_faults(host.root, ())
    assert done.code == 3
    assert "TPUSMI_PROFILE=0" in done.err


def test_a_job_without_an_agent_has_nothing_to_ask(tmp_path: Path) -> None:
    with start(HostPlan("v5e-1")) as bare:
        done = profile(bare, pids(bare)[0], tmp_path)
    assert done.code == 1
    assert "tpusmi.start()" in done.err
