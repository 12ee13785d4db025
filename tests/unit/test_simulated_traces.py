"""The trace of a simulated host: it tells what the host shows, and xprof reads the same in it."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.jax_traces import planes_of
from support.simulated_hosts import running_host
from support.simulated_profiles import simulated_profile
from support.xprof_figures import xprof_figures

from tpusmi.chips import peak_flops_per_device, peak_hbm_bytes_per_s_per_device
from tpusmi.simulate import workload
from tpusmi.simulate.metric_answers import HBM_BYTES
from tpusmi.simulate.running import Running
from tpusmi.simulate.trace_capture import SimulatedCapture
from tpusmi.simulate.trace_of_workload import WARNING, trace
from tpusmi.simulate.trace_timeline import UNEVEN
from tpusmi.trace.direct import read_trace
from tpusmi.trace.limits import TraceLimits

AT_S, SECONDS, STARTED_NS = 60.0, 4.0, 1_790_000_000_000_000_000


class Case(NamedTuple):
    """A simulated host, and how a trace calls its devices."""

    machine: str
    device_type: str
    faults: tuple[str, ...] = ()
    seconds: float = SECONDS


CASES = (
    Case("v2-8", "TPU v2"),
    Case("v3-8", "TPU v3"),
    Case("v4-8", "TPU v4"),
    Case("v5e-8", "TPU v5 Lite"),
    Case("v5e-1", "TPU v5 Lite"),
    Case("v5p-8", "TPU v5"),
    Case("v6e-4", "TPU v6 Lite"),
    Case("7x-8", "TPU7x"),
    Case("v5e-4", "TPU v5 Lite", ("throttle:4",)),
    Case("v6e-4", "TPU v6 Lite", ("bad-link:8",)),
    Case("v6e-1", "TPU v6 Lite", ("stall",), 12.0),
    Case("v5e-4", "TPU v5 Lite", ("hang",)),
    Case("v5e-4", "TPU v5 Lite", ("idle",)),
)


def captured(running: Running, seconds: float = SECONDS, at_s: float = AT_S) -> bytes:
    """The trace of so many seconds of all its devices."""
    devices = running.description["devices"]
    capture = SimulatedCapture(running, devices, at_s, at_s + seconds, STARTED_NS)
    return trace(capture, HBM_BYTES[running.description["generation"]])


@pytest.fixture(scope="module")
def read_by_xprof(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, tuple[Running, Any]]:
    """Each host, with what xprof shows of its trace."""
    pytest.importorskip("xprof")
    paths, hosts = [], []
    for case in CASES:
        directory = tmp_path_factory.mktemp("trace")
        hosts.append(running_host(str(directory), case.machine, *case.faults))
        paths.append(directory / "sim.xplane.pb")
        paths[-1].write_bytes(captured(hosts[-1], case.seconds))
    figures = xprof_figures([str(path) for path in paths])
    return dict(zip(CASES, zip(hosts, figures, strict=True), strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join((case.machine, *case.faults)))
def test_xprof_reads_in_it_what_the_host_shows(case: Case, read_by_xprof: Any) -> None:
    running, figures = read_by_xprof[case]
    job, devices = running.workload, running.description["devices"]
    middle_s = AT_S + case.seconds / 2
    generation = SimulatedCapture(running, devices, 0, 1, 0).generation
    assert figures["device_type"] == case.device_type
    assert WARNING in figures["warnings"]
    duty = mean(100 * job.duty(AT_S + case.seconds, d["id"]) for d in devices)
    assert figures["duty"] == pytest.approx(duty, abs=1.0)
    mxu = mean(job.mxu(middle_s, d["id"]) for d in devices)
    # The ends of the capture cut off steps, whose operations are not alike.
    assert figures["mxu"] == pytest.approx(100 * mxu, rel=0.08)
    peak = peak_flops_per_device(generation)
    assert figures["flops_per_s"] == pytest.approx(mxu * peak, rel=0.08)
    bandwidth = mean(job.bandwidth(middle_s, d["id"]) for d in devices)
    gib_per_s = peak_hbm_bytes_per_s_per_device(generation) / 2**30
    assert figures["hbm_gib_per_s"] == pytest.approx(bandwidth * gib_per_s, rel=0.08)
    whole_ms = figures["steps_ms"][:-1]
    per_s = job.steps_per_s(middle_s)
    assert len(whole_ms) >= min(2, int(case.seconds * per_s) - 1)
    for took_ms in whole_ms:
        assert took_ms == pytest.approx(1000 / per_s, rel=UNEVEN)


def mean(values: Any) -> float:
    """Their mean."""
    numbers = [*values]
    return sum(numbers) / len(numbers)


def test_faults_show_where_a_user_looks_for_them(read_by_xprof: Any) -> None:
    healthy = shares(read_by_xprof, "v6e-4", ())
    link = shares(read_by_xprof, "v6e-4", ("bad-link:8",))
    assert collectives(link) > 2 * collectives(healthy)
    stalled = read_by_xprof[next(case for case in CASES if "stall" in case.faults)][1]
    assert 68 < stalled["infeed"] < 82  # also of the last step, cut off within its infeed
    hanging = read_by_xprof[next(case for case in CASES if "hang" in case.faults)][1]
    assert (hanging["steps_ms"], set(hanging["categories_s"])) == ([], {"all-reduce"})
    alone = shares(read_by_xprof, "v5e-1", ())
    assert collectives(alone) == 0


def shares(read_by_xprof: Any, machine: str, texts: tuple[str, ...]) -> dict[str, float]:
    """The share of the time of each category of operations."""
    case = next(c for c in CASES if (c.machine, c.faults) == (machine, texts))
    times = read_by_xprof[case][1]["categories_s"]
    return {name: took_s / sum(times.values()) for name, took_s in times.items()}


def collectives(times: dict[str, float]) -> float:
    """The share of all collectives."""
    return sum(times.get(name, 0.0) for name in ("all-reduce", "all-gather", "reduce-scatter"))


def planes(data: bytes) -> dict[str, dict[str, list[Any]]]:
    """The events of each line of each plane, by JAX's reader."""
    read = planes_of(data).items()
    return {name: {line.name: [*line.events] for line in plane.lines} for name, plane in read}


def test_a_throttled_chip_computes_longer_and_the_others_wait_for_it(tmp_path: Path) -> None:
    running = running_host(str(tmp_path), "v5e-4", "throttle:5")
    waits = {}
    for name, lines in planes(captured(running)).items():
        if name.startswith("/device:"):
            ops = lines["XLA Ops"]
            names = ("%all-", "%reduce-")
            waits[name] = sum(e.duration_ns for e in ops if e.name.startswith(names))
    slow, *others = waits.values()
    assert min(others) > 2 * slow


def test_steps_are_numbered_as_the_job_counts_them_and_cut_off_at_the_ends(tmp_path: Path) -> None:
    running = running_host(str(tmp_path), "v5e-4")
    read = planes(captured(running))
    steps = read["/device:TPU:0"]["Steps"]
    numbers = [int(step.name) for step in steps]
    assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]
    assert numbers[0] == running.workload.steps(AT_S) + 2  # the first that begins meanwhile
    assert 0 < steps[0].start_ns < 0.9e9
    assert steps[-1].end_ns == pytest.approx(SECONDS * 1e9)
    marks = next(events for name, events in read["/host:CPU"].items() if name.startswith("main/"))
    marked = [dict(e.stats)["step_num"] for e in marks if e.name == "train"]
    assert marked == numbers[:-1]  # those that began and ended meanwhile


def test_a_fault_that_begins_meanwhile_shows_from_then_on(tmp_path: Path) -> None:
    running = running_host(str(tmp_path), "v5e-1")
    before = running.workload
    stalled = (workload.STALL, AT_S + 2.0)
    running.workload = workload.Workload(0, stalled, None, 1.0, (AT_S + 2.0, before))
    infeeds = [
        event
        for event in planes(captured(running))["/device:TPU:0"]["XLA Ops"]
        if "infeed" in event.name
    ]
    assert [round(event.start_ns / 1e9, 3) for event in infeeds] == [2.0]
    slower = workload.Workload(0, None, None, 0.5, (AT_S + 2.0, before))
    running.workload = slower
    steps = planes(captured(running, 8.0))["/device:TPU:0"]["Steps"]
    assert max(step.duration_ns for step in steps) == pytest.approx(1.6e9, rel=UNEVEN)
    assert min(step.duration_ns for step in steps[:-1]) == pytest.approx(0.8e9, rel=UNEVEN)


def test_operations_nest_and_stay_inside_the_capture(tmp_path: Path) -> None:
    running = running_host(str(tmp_path), "v2-8", processes=2)
    running.description["devices"] = running.description["devices"][4:]  # of the second process
    read = planes(captured(running))
    devices = [lines for name, lines in read.items() if name.startswith("/device:")]
    assert len(devices) == 4
    for lines in devices:
        for events in lines.values():
            assert all(e.start_ns >= 0 and e.end_ns <= SECONDS * 1e9 + 1 for e in events)
        loops = [e for e in lines["XLA Ops"] if "while" in e.name]
        inner = [e for e in lines["XLA Ops"] if "while" not in e.name]
        for before, after in itertools.pairwise(inner):
            assert before.end_ns <= after.start_ns + 1
        inside = sum(
            e.duration_ns
            for e in inner
            for loop in loops
            if loop.start_ns - 1 <= e.start_ns and e.end_ns <= loop.end_ns + 1
        )
        assert inside == pytest.approx(sum(loop.duration_ns for loop in loops), rel=1e-3)


def test_a_checkpoint_and_compilation_have_no_steps(tmp_path: Path) -> None:
    running = running_host(str(tmp_path), "v5p-8")
    job = running.workload
    saving_s = next(t for t in range(60, 400) if job.activity(t) == workload.SAVE)
    read = planes(captured(running, 2.0, saving_s + 1.0))
    assert not read["/device:TPU:0"]["Steps"]
    assert read["/device:TPU:0"]["XLA Ops"]
    compiling = planes(captured(running, 4.0, workload.LOAD_S + 1.0))
    assert not compiling["/device:TPU:0"]["XLA Ops"]
    host = itertools.chain.from_iterable(compiling["/host:CPU"].values())
    assert "backend_compile" in {event.name for event in host}


def test_the_mxu_of_a_capture_that_begins_before_the_job_computes_is_that_of_its_cores(
    tmp_path: Path,
) -> None:
    """All figures are of the time from the first operation to the last."""
    running = running_host(str(tmp_path), "v5p-8")
    job = running.workload
    begun_s = next(t / 10 for t in range(1000) if job.activity(t / 10) == workload.TRAIN)
    path = tmp_path / "start.xplane.pb"
    path.write_bytes(captured(running, 4.0, begun_s - 3.0))
    profile = read_trace(str(path), TraceLimits(until_s=time.monotonic() + 60))
    assert profile.captured_s is not None
    assert profile.captured_s < 1.2
    cores = mean(core.mxu_percent for core in profile.cores)
    assert profile.mxu_percent == pytest.approx(cores, rel=0.02)
    compiled = profile.shares.compile_percent
    assert compiled is not None
    assert 50 < compiled < 80


def test_a_long_capture_of_many_chips_stays_small(tmp_path: Path) -> None:
    running = running_host(str(tmp_path), "v5e-4")
    device = running.description["devices"][0]
    running.description["devices"] = [{**device, "id": n, "index": n} for n in range(64)]
    assert len(captured(running, 10.0)) < 3_000_000


@settings(max_examples=15, deadline=None)
@given(
    at_s=st.floats(0, 1e6),
    seconds=st.floats(0.01, 10),
    fault=st.sampled_from(("", "throttle:10", "bad-link:10", "stall", "hang", "idle", "leak")),
)
def test_there_is_a_trace_of_any_moment(
    at_s: float, seconds: float, fault: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    texts = (fault,) if fault else ()
    running = running_host(str(tmp_path_factory.mktemp("any")), "v5e-1", *texts, t_s=at_s)
    assert planes(captured(running, seconds, at_s))


@pytest.mark.parametrize("at_s", [60.3287, 60.5536, 60.5882, 60.6574])
def test_an_operation_that_the_capture_cuts_off_did_a_part_of_its_work(at_s: float) -> None:
    profile = simulated_profile("v5e-1", at_s=at_s, seconds=0.1)
    peak = profile.peak_flops_per_s
    assert peak is not None
    rates = [o.flops_per_s for o in profile.operations if o.flops_per_s is not None]
    assert rates
    assert max(rates) <= peak
