"""The simulated host on paper: names of machines, ids, the workload, the answers, the faults."""

from __future__ import annotations

import marshal
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.simulated_hosts import running_host
from support.users import ROOT, as_another_user

from tpusmi.chips import GENERATIONS, by_accelerator_type
from tpusmi.cli.simulate import _is_of_slice
from tpusmi.memprofile import held_memory, totals
from tpusmi.metricproto import messages
from tpusmi.model import PHASES, Host
from tpusmi.simulate import description, faults, host_files, sdk_stand_in, workload
from tpusmi.simulate.accelerator import job_environment, parse
from tpusmi.simulate.followed import RecentSteps
from tpusmi.simulate.host import HostPlan
from tpusmi.simulate.memory_profile import kept, profile
from tpusmi.simulate.metric_answers import UPTIME, Answers
from tpusmi.simulate.running import Running
from tpusmi.simulate.simulated_agent import MODEL_SHARE, progress
from tpusmi.simulate.workload import COMPILE_S, CYCLE_S, LOAD_S, Workload
from tpusmi.sources.libtpu.names import NAMES
from tpusmi.sources.sysfs import read_chips

NAME_OF = {name.metric: name.grpc for name in NAMES}
TIMES = st.floats(0, 1e7)
DEVICES = st.integers(0, 10_000)


@pytest.mark.parametrize(
    ("name", "generation", "chips", "devices"),
    [
        ("v2-8", "v2", 4, 8),
        ("v3-8", "v3", 4, 8),
        ("v4-8", "v4", 4, 4),
        ("v5litepod-8", "v5e", 8, 8),
        ("v5e-8", "v5e", 8, 8),
        ("V5E-8", "v5e", 8, 8),
        ("v5e-4", "v5e", 4, 4),
        ("v5litepod-1", "v5e", 1, 1),
        ("v5p-8", "v5p", 4, 4),
        ("v6e-1", "v6e", 1, 1),
        ("v6e-4", "v6e", 4, 4),
        ("v6e-8", "v6e", 8, 8),
        ("tpu7x-8", "7x", 4, 8),
        ("7x-8", "7x", 4, 8),
        ("v7x-8", "7x", 4, 8),
        ("v5e-256", "v5e", 4, 4),
        ("v5p-128", "v5p", 4, 4),
        ("v5p-24", "v5p", 4, 4),
    ],
)
def test_the_number_of_a_type_counts_what_its_generation_counts(
    name: str, generation: str, chips: int, devices: int
) -> None:
    machine = parse(name)
    assert machine.generation.name == generation
    assert machine.chips == chips
    assert len(machine.devices) == devices


@pytest.mark.parametrize(
    ("name", "worker", "ids"),
    [
        ("v6e-16", 0, [0, 1, 4, 5]),
        ("v6e-16", 2, [8, 9, 12, 13]),
        ("v5e-16", 3, [10, 11, 14, 15]),
        ("v5p-8", 0, [0, 1, 2, 3]),
        ("v3-8", 0, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("tpu7x-16", 1, [8, 9, 10, 11, 12, 13, 14, 15]),
    ],
)
def test_a_host_of_a_slice_has_the_ids_that_real_ones_have(
    name: str, worker: int, ids: list[int]
) -> None:
    assert [device.id for device in parse(name, worker).devices] == ids


def test_chips_stand_where_they_stand_on_a_recorded_v5p() -> None:
    assert parse("v5p-8").coords == ((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0))


@pytest.mark.parametrize("name", ["v2-512", "v3-2048", "v4-512", "v5p-1024", "v6e-256", "7x-256"])
def test_the_hosts_of_a_slice_share_its_devices_without_overlap(name: str) -> None:
    generation, chips = by_accelerator_type(name) or (None, 0)
    assert generation is not None
    hosts = parse(name).hosts
    ids = [device.id for worker in range(hosts) for device in parse(name, worker).devices]
    assert sorted(ids) == list(range(len(ids)))
    assert len(ids) == chips * generation.devices_per_chip


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("v5e-9", "v5e-8"),
        ("v5e-2", "v5e-4"),
        ("v5e-12", "v5e-16"),
        ("v6e-512", "v6e-8"),
        ("v4-4", "v4-8"),
        ("v5-8", "v5p-8"),
        ("v5e", "v5e-8"),
        ("v5lite-pod-8", "v5e-8"),
        ("h100-8", "try v2-8"),
        ("", "try v2-8"),
        ("v5e--8", "v5e-8"),
        ("v5e-٨", "v5e-8"),
        ("v3-7", "v3-8"),
    ],
)
def test_a_wrong_type_is_refused_with_what_may_have_been_meant(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match="unknown accelerator type") as refused:
        parse(name)
    assert hint in str(refused.value)


@pytest.mark.parametrize("worker", [-1, 4])
def test_a_worker_that_the_slice_lacks_is_refused(worker: int) -> None:
    with pytest.raises(
        ValueError, match=f"v5e-8 has no worker {worker}: it has one host, worker 0"
    ):
        parse("v5e-8", worker)
    with pytest.raises(ValueError, match="its workers are 0 to 3"):
        parse("v6e-16", worker)


def test_another_number_of_chips_gives_ids_in_a_row() -> None:
    assert [d.id for d in parse("v5e-8", chips_here=256).devices] == list(range(256))
    with pytest.raises(ValueError, match="not between 1 and"):
        parse("v5e-8", chips_here=0)


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda g: g.name)
def test_the_tree_of_each_generation_is_read_as_its_chips(generation: Any, tmp_path: Path) -> None:
    machine = parse(f"{generation.name}-8")
    nodes = host_files.build(str(tmp_path), machine, ())
    found = read_chips(Host(root=str(tmp_path)))
    assert found.status == "ok", found.message
    assert [chip.generation for chip in found.chips] == [generation.name] * machine.chips
    assert [list(chip.nodes) for chip in found.chips] == list(nodes.values())
    assert sum(chip.devices for chip in found.chips) == len(machine.devices)
    assert [chip.notes for chip in found.chips] == [()] * machine.chips


def test_a_network_card_has_the_first_group(tmp_path: Path) -> None:
    nodes = host_files.build(str(tmp_path), parse("v5e-4"), ())
    group = (tmp_path / "sys/bus/pci/devices" / host_files.NETWORK_CARD / "iommu_group").readlink()
    assert group.name == "0"
    assert nodes[0] == ["/dev/vfio/1"]


def test_a_large_host_has_more_than_one_bus(tmp_path: Path) -> None:
    machine = parse("v5e-8", chips_here=256)
    assert len({function.address for function in host_files.functions(machine)}) == 256
    host_files.build(str(tmp_path), machine, ())
    chips = read_chips(Host(root=str(tmp_path))).chips
    assert [chip.nodes[0] for chip in chips] == [f"/dev/vfio/{i}" for i in range(1, 257)]


@pytest.mark.parametrize("fault", ["no-node", "half-removed"])
@pytest.mark.parametrize("name", ["v5e-4", "v3-8", "7x-8"])
def test_a_chip_without_node_tells_why_and_the_others_are_whole(
    name: str, fault: str, tmp_path: Path
) -> None:
    nodes = host_files.build(str(tmp_path), parse(name), (fault,))
    found = read_chips(Host(root=str(tmp_path)))
    whole = [chip for chip in found.chips if chip.nodes]
    assert len(whole) == len(nodes) == 3
    assert not any(chip.notes for chip in whole)
    last = [chip for chip in found.chips if not chip.nodes]
    assert (last and last[0].notes) or found.notes


@ROOT
def test_who_may_make_no_devices_gets_plain_files_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir(mode=0o777)
    (tmp_path / "host").chmod(0o777)
    with as_another_user(tmp_path):
        nodes = host_files.build(str(tmp_path / "host"), parse("v5e-4"), ())
    paths = [tmp_path / f"host{node}" for (node,) in nodes.values()]
    assert all(path.is_file() for path in paths)
    assert len({path.stat().st_ino for path in paths}) == 4


def test_a_launcher_splits_the_chips_in_the_environment() -> None:
    processes = [{"port": 8431, "chips": [0, 1]}, {"port": 8432, "chips": [2, 3]}]
    found = job_environment(parse("v5e-4"), processes, 1)
    assert found["TPU_VISIBLE_CHIPS"] == "2,3"
    assert found["TPU_RUNTIME_METRICS_PORTS"] == "8432"
    assert found["TPU_CHIPS_PER_PROCESS_BOUNDS"] == found["TPU_PROCESS_BOUNDS"] == "1,2,1"
    assert found["TPU_PROCESS_ADDRESSES"] == "localhost:8476,localhost:8477"


def test_the_users_own_variables_stay_away_from_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_RUNTIME_METRICS_PORTS", "8431")
    monkeypatch.setenv("TPU_VISIBLE_CHIPS", "5")
    found = job_environment(parse("v5e-4"), [{"port": 9000, "chips": [0, 1, 2, 3]}], 0)
    assert found["TPU_RUNTIME_METRICS_PORTS"] == "9000"
    assert "TPU_VISIBLE_CHIPS" not in found


@given(st.integers(0, 1000), DEVICES, TIMES)
def test_the_workload_is_the_same_whoever_asks_and_within_its_bounds(
    seed: int, device: int, t_s: float
) -> None:
    one, other = Workload(seed), Workload(seed)
    for what in ("duty", "mxu", "bandwidth", "memory"):
        share = getattr(one, what)(t_s, device)
        assert share == getattr(other, what)(t_s, device)
        assert 0 <= share <= 1
    assert 0 <= one.idle_s(t_s, device) <= t_s
    assert one.queue(t_s, device) >= 0


@given(st.integers(0, 50), TIMES, st.floats(0, 100))
def test_steps_never_go_back(seed: int, t_s: float, more_s: float) -> None:
    assert Workload(seed).steps(t_s) <= Workload(seed).steps(t_s + more_s)


def test_the_job_loads_compiles_and_trains() -> None:
    job = Workload()
    assert job.activity(LOAD_S / 2) == workload.LOADING
    assert job.memory(LOAD_S / 2, 0) == 0
    middle_s = LOAD_S + COMPILE_S / 2
    assert job.activity(middle_s) == workload.COMPILING
    assert job.duty(middle_s, 0) == job.mxu(middle_s, 0) == job.steps(middle_s) == 0
    assert 0 < job.memory(middle_s, 0) < job.memory(60.0, 0)
    assert job.idle_s(middle_s, 0) == pytest.approx(COMPILE_S / 2)
    assert job.duty(60.0, 0) > 0.9
    assert job.idle_s(60.0, 0) < 0.1


def test_numbers_agree_with_each_other_over_a_whole_cycle() -> None:
    job = Workload()
    begun_s = LOAD_S + COMPILE_S
    seen = set()
    for t_s in range(int(begun_s) + 5, int(begun_s + CYCLE_S)):
        activity = job.activity(t_s)
        seen.add(activity)
        if job.activity(t_s - workload.WINDOW_S) != activity:
            continue  # the duty cycle looks back
        duty, mxu = job.duty(t_s, 3), job.mxu(t_s, 3)
        assert mxu <= duty
        assert (duty > 0.8) is (activity in (workload.TRAIN, workload.EVALUATE))
        assert (job.idle_s(t_s, 3) > 1) is (activity == workload.SAVE)
    assert seen == set(workload.BUSY) - {workload.HUNG}


@pytest.mark.parametrize(
    ("what", "duty", "grows"),
    [(workload.IDLE, 0.0, True), (workload.HUNG, 1.0, False)],
)
def test_a_job_that_stops_says_so_in_every_number(what: str, duty: float, grows: bool) -> None:
    job = Workload(0, (what, 100.0))
    assert job.duty(200.0, 1) == pytest.approx(duty, abs=0.02)
    assert job.mxu(200.0, 1) == 0
    assert job.steps(200.0) == job.steps(100.0) > 0
    assert job.idle_s(200.0, 1) == (100.0 if grows else 0.0)
    assert job.memory(200.0, 1) > 0.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("silent", {"silent": ""}),
        ("slow", {"slow": "5"}),
        ("slow:0.5", {"slow": "0.5"}),
        ("not-found:idle_s", {"not-found": "idle_s"}),
    ],
)
def test_a_fault_has_a_name_and_perhaps_an_argument(text: str, expected: dict[str, str]) -> None:
    assert faults.parse([text]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "fire",
        "silent:3",
        "slow:x",
        "slow:-1",
        "throttle:11",
        "throttle:1.5",
        "slow:nan",
        "slow-host:1.5",
        "silent-host:-1",
        "full-host:5000",
    ],
)
def test_a_wrong_fault_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="fault"):
        faults.parse([text])


@pytest.mark.parametrize(
    "plan",
    [
        HostPlan("v5e-8", processes=3),
        HostPlan("v5e-8", processes=0),
        HostPlan("v5e-8", port=0),
        HostPlan("v5e-8", port=65536),
        HostPlan("v5e-8", port=65535, processes=2),
        HostPlan("v5e-8", faults=("fire",)),
        HostPlan("v5e-8", faults=("silent-host",)),
        HostPlan("v5e-16", faults=("slow-host:4",)),
        HostPlan("v5e-16", faults=("clock-host:1",), worker=1),
        HostPlan("v5e-8", worker=1),
    ],
    ids=str,
)
def test_a_plan_that_cannot_be_is_refused_before_anything_starts(plan: HostPlan) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        plan.check()


@pytest.fixture
def host(tmp_path: Path) -> Any:
    """Makes the description of a host, and its numbers at that moment."""

    def make(name: str, *texts: str, t_s: float = 60.0, processes: int = 1) -> Running:
        return running_host(str(tmp_path), name, *texts, t_s=t_s, processes=processes)

    return make


def rows(running: Running, metric: str, process: int = 0) -> list[Any]:
    answer = Answers(running, process).metric(NAME_OF.get(metric) or metric)
    assert answer is not None
    return list(messages()["MetricResponse"].FromString(answer).metric.metrics)


def ids(found: list[Any]) -> list[int]:
    return [row.attribute.value.int_attr for row in found]


@pytest.mark.parametrize(
    ("name", "memory", "duty"),
    [
        ("v5e-8", [0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7]),
        ("v4-8", [0, 1, 2, 3], [0, 1, 2, 3]),
        ("v3-8", [0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3]),
        ("v2-8", [0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3]),
        ("7x-8", [0, 1, 2, 3], [0, 1, 2, 3]),
    ],
)
def test_rows_are_per_device_or_per_chip_as_on_real_machines(
    host: Any, name: str, memory: list[int], duty: list[int]
) -> None:
    running = host(name)
    assert ids(rows(running, "hbm_used_bytes")) == ids(rows(running, "hbm_limit_bytes")) == memory
    assert ids(rows(running, "duty_cycle_percent")) == duty
    devices = len(running.description["devices"])
    assert len(rows(running, "hlo_queue_size")) == devices
    assert len(sdk_stand_in.data(running, "tensorcore_util")) == devices


def test_the_limits_of_a_7x_are_those_of_a_chip_or_by_fault_of_a_core(host: Any) -> None:
    whole = rows(host("7x-8"), "hbm_limit_bytes")
    cores = rows(host("7x-8", "core-rows"), "hbm_limit_bytes")
    assert (len(whole), whole[0].gauge.as_int / 2**30) == (4, 189.5)
    assert (len(cores), cores[0].gauge.as_int / 2**30) == (8, 94.75)


@pytest.mark.parametrize("metric", [name.metric for name in NAMES if name.grpc])
@pytest.mark.parametrize("case", ["loading", "empty"])
def test_without_a_program_every_answer_is_empty(host: Any, metric: str, case: str) -> None:
    running = host("v5e-16", t_s=1.0) if case == "loading" else host("v5e-16", "empty")
    assert rows(running, metric) == []
    assert not sdk_stand_in.data(running, "tensorcore_util")


@pytest.mark.parametrize("name", ["v5e-8", "v5e-16"])
def test_network_latencies_exist_only_between_hosts(host: Any, name: str) -> None:
    found = [bool(rows(host(name), n.metric)) for n in NAMES if n.grpc and n.shape == "latency"]
    assert found == [name == "v5e-16"] * 10


def test_a_distribution_leaves_empty_what_libtpus_sdk_forgets(host: Any) -> None:
    for metric in ("hlo_execution_time_us", "tcp_min_rtt_us", "buffer_transfer_latency_us"):
        for row in rows(host("v5e-16", t_s=10_000.0), metric):
            found, buckets = row.distribution, row.distribution.bucket_options.exponential_buckets
            assert len(found.bucket_counts) == buckets.num_finite_buckets + 2
            assert sum(found.bucket_counts[1:-2]) == found.count > 0


def test_every_metric_that_is_listed_is_answered(host: Any) -> None:
    answers = Answers(host("v5e-8"), 0)
    listed = messages()["ListSupportedMetricsResponse"].FromString(answers.names(""))
    names = [metric.metric_name for metric in listed.supported_metric]
    assert {name.grpc for name in NAMES if name.grpc} | {UPTIME} == set(names)
    assert all(answers.metric(name) for name in names)


@pytest.mark.parametrize("name", ["hbm_used_bytes", "tpu.runtime.hbm.memory.usage.bytes"])
def test_a_metric_can_be_unknown_by_either_of_its_names(host: Any, name: str) -> None:
    answers = Answers(host("v5e-8", f"not-found:{name}"), 0)
    assert answers.metric("tpu.runtime.hbm.memory.usage.bytes") is None
    assert answers.metric("tpu.runtime.hbm.memory.total.bytes") is not None
    assert b"memory.usage" not in answers.names("")


def test_devices_can_be_missing_and_ids_can_be_text(host: Any) -> None:
    assert ids(rows(host("v5e-4", "missing-device"), "hbm_used_bytes")) == [0, 1, 2]
    text = rows(host("v5e-4", "string-ids"), "hbm_used_bytes")
    assert [row.attribute.value.string_attr for row in text] == ["0", "1", "2", "3"]


def test_ordinals_are_text_or_as_in_older_releases_integers(host: Any) -> None:
    def ordinals(found: list[Any]) -> list[Any]:
        values = [row.attribute.value.kvlist_attr.attributes[1].value for row in found]
        return [getattr(value, value.WhichOneof("attr")) for value in values]

    assert ordinals(rows(host("v3-8"), "hlo_queue_size")) == list("01234567")
    assert ordinals(rows(host("v3-8", "int-ordinals"), "hlo_queue_size")) == list(range(8))


def test_processes_of_one_job_share_its_ids_and_others_count_from_0(host: Any) -> None:
    job = host("v5e-8", processes=2)
    assert ids(rows(job, "hbm_used_bytes", 1)) == [4, 5, 6, 7]
    apart = host("v5e-8", "own-ids", processes=2)
    assert ids(rows(apart, "hbm_used_bytes", 0)) == ids(rows(apart, "hbm_used_bytes", 1))


def test_throttling_and_bad_links_are_told_by_the_sdk_alone(host: Any) -> None:
    good = host("v5e-4")
    assert sdk_stand_in.data(good, "tpu_throttle_score") == ["1-0: 0", "1-1: 0", "1-2: 0", "1-3: 0"]
    assert len(sdk_stand_in.data(good, "ici_link_health")) == 16
    bad = host("v5e-4", "throttle:4", "bad-link:9")
    assert sdk_stand_in.data(bad, "tpu_throttle_score")[0] == "1-0: 4"
    assert [
        text for text in sdk_stand_in.data(bad, "ici_link_health") if not text.endswith(" 0")
    ] == ["tray1.chip2.ici1.int: 9", "tray1.chip3.ici0.int: 9"]


@pytest.mark.parametrize("fault", ["throttle:4", "throttle:10", "bad-link:1", "bad-link:10"])
def test_a_slow_chip_or_link_costs_bandwidth_and_steps(host: Any, fault: str) -> None:
    good, bad = host("v5e-4").workload, host("v5e-4", fault).workload
    for what in (Workload.steps_per_s, Workload.mxu_mean, Workload.steps_and_part):
        assert 0 < what(bad, 60.0) < what(good, 60.0)
    assert bad.bandwidth(60.0, 3) < good.bandwidth(60.0, 3)
    assert bad.duty(60.0, 3) == good.duty(60.0, 3)
    alone = host("v5e-1", fault).workload
    assert (alone.speed(60.0) == 1) is fault.startswith("bad-link")  # one chip has no link


def test_each_core_tells_what_it_runs_only_when_asked(host: Any) -> None:
    def cores(name: str, with_hlo: bool) -> list[Any]:
        answer = Answers(host(name), 0).status(with_hlo)
        message = messages()["GetTpuRuntimeStatusResponse"].FromString(answer)
        return [entry.value for entry in message.core_states]

    assert [core.core_id.global_core_id for core in cores("v5p-8", True)] == list(range(8))
    assert [core.core_id.core_on_chip.index for core in cores("v3-8", True)] == [0, 1] * 4
    assert cores("v5e-8", True)[0].sequencer_info[0].hlo_location.startswith("HLO: fusion.")
    assert not cores("v5e-8", False)[0].sequencer_info[0].HasField("hlo_location")


def test_the_fast_description_is_believed_only_where_nobody_else_writes(tmp_path: Path) -> None:
    told = {"version": description.VERSION, "keeper": [1, 1], "ports": []}
    description.write(str(tmp_path), {**told, "who": "json"})
    fast = tmp_path / description.FAST_FILE
    fast.write_bytes(marshal.dumps({"who": "marshal"}))
    tmp_path.chmod(0o755)
    assert description.read_fast(str(tmp_path))["who"] == "marshal"
    tmp_path.chmod(0o777)
    assert description.read_fast(str(tmp_path))["who"] == "json"
    tmp_path.chmod(0o755)
    fast.unlink()
    os.mkfifo(fast)
    assert description.read_fast(str(tmp_path))["who"] == "json"


def test_a_file_of_faults_that_is_none_hangs_nothing_and_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / faults.FILE
    file = faults.FaultFile(str(tmp_path))
    os.mkfifo(path)
    assert not file.refresh()
    assert "not a file" in file.wrong
    path.unlink()
    path.write_text("bogus\n")
    assert not file.refresh()
    assert "unknown fault 'bogus'" in file.wrong
    path.write_text("silent\n")
    assert file.refresh()
    assert (file.faults, file.wrong) == ({"silent": ""}, "")


def test_a_fault_of_the_start_is_refused_later_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / faults.FILE
    path.write_text("orphan\n")
    file = faults.FaultFile(str(tmp_path))
    assert file.refresh()
    path.write_text("stubborn\norphan\nsilent\n")
    assert not file.refresh()
    assert file.wrong == "fault stubborn works from the start only: --fault stubborn"
    assert file.faults == {"orphan": ""}
    path.write_text("hang\n")
    assert file.refresh()
    path.write_text("orphan\nidle\n")
    assert file.refresh()
    assert (file.faults, file.wrong) == ({"orphan": "", "idle": ""}, "")


def test_a_directory_of_anybodys_hangs_nothing_and_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / description.FILE)
    with pytest.raises(ValueError, match="no simulated host"):
        description.read(str(tmp_path))
    (tmp_path / description.FILE).unlink()
    (tmp_path / description.FILE).write_text("[" * 200_000)
    with pytest.raises(ValueError, match="no simulated host"):
        description.read(str(tmp_path))


@given(TIMES, st.floats(0, 1e4), DEVICES)
def test_the_parts_of_the_memory_add_up_to_it_and_leave_room(
    t_s: float, leaking_s: float, device: int
) -> None:
    job = Workload(leaking_s=leaking_s)
    parts = job.memory_parts(t_s, device)
    assert sum(parts.values()) == job.memory(t_s, device) < 1
    assert all(share >= 0 for share in parts.values())


def test_a_leak_grows_on_one_line_until_it_stays() -> None:
    job = Workload(leaking_s=30.0)
    sizes = []
    for t_s in (29.0, 60.0, 120.0, 600.0, 601.0):
        found = {k.line.function: k.bytes for k in kept(job, t_s, 3, 10**10)}
        sizes.append(found.pop("log_metrics", 0))
        assert found == {k.line.function: k.bytes for k in kept(Workload(), t_s, 3, 10**10)}
    assert sizes[0] == 0
    assert sizes[0] < sizes[1] < sizes[2] < sizes[3] == sizes[4]


def test_the_profile_of_the_simulated_job_tells_its_devices_apart() -> None:
    job = Workload(leaking_s=0.0)
    devices = {f"TPU_{i}(process=0,({i},0,0,0))": kept(job, 200.0, i, 10**10) for i in range(3)}
    data = profile(devices.items())
    for device, every in enumerate(devices.values()):
        expected = (sum(k.bytes for k in every), sum(k.arrays for k in every))
        assert totals(data).devices[device] == expected
    assert len({usage.bytes for usage in totals(data).devices.values()}) == 3
    assert ("log_metrics", 27) in {(site.function, site.line) for site in held_memory(data).sites}


@given(TIMES, st.integers(0, 9))
def test_the_simulated_agents_numbers_can_be_true_at_any_time(t_s: float, seed: int) -> None:
    told = progress(Workload(seed), t_s, 1e15)
    assert told["phase"] in range(len(PHASES) - 1)
    assert all(value >= 0 for value in told.values() if value is not None)
    if "step_time_s.p50" in told:
        parts = [told[f"step_time_s.{part}"] or 0 for part in ("min", "p50", "p95", "max")]
        assert parts == sorted(parts)
        assert 0 < (told["mfu_percent"] or 0) < 100
    else:
        assert t_s < 20 or told["steps"] is None


def test_a_job_goes_through_the_phases_as_it_starts() -> None:
    job = Workload()
    names = [PHASES[int(progress(job, t_s, None)["phase"] or 0)] for t_s in (1.0, 10.0, 30.0)]
    assert names == ["starting", "compiling", "running"]
    hung = progress(Workload(0, ("hung", 100.0)), 300.0, None)
    assert PHASES[int(hung["phase"] or 0)] == "idle"


def test_mfu_and_steps_are_those_of_the_training_from_the_first_second_on() -> None:
    job, begun_s = Workload(), LOAD_S + COMPILE_S
    for t_s in (0.5, 2.0, 10.0, 30.0, 50.0):
        told = progress(job, begun_s + t_s, 1e15)
        assert told["mfu_percent"] == pytest.approx(100 * MODEL_SHARE * workload.MXU["training"])
        assert told["flops_per_s"] == pytest.approx(1e13 * (told["mfu_percent"] or 0))
        assert told["steps_per_s"] == pytest.approx(workload.STEPS_PER_S["training"])


def test_a_job_that_hangs_counts_its_seconds_and_is_idle_as_late_as_a_real_one() -> None:
    job = Workload(0, (workload.HUNG, 100.0), since=(100.0, Workload()))
    told = [progress(job, 100.0 + s, 1e15) for s in (1.0, 12.0, 29.0, 31.0, 70.0, 3600.0)]
    assert [t["since_last_step_s"] for t in told] == [1.0, 12.0, 29.0, 31.0, 70.0, 3600.0]
    assert [PHASES[int(t["phase"] or 0)] for t in told] == ["running"] * 3 + ["idle"] * 3
    assert len({t["steps"] for t in told}) == 1
    for what in ("steps_per_s", "mfu_percent"):
        values = [t[what] or 0.0 for t in told]
        assert values == sorted(values, reverse=True)
        assert values[-1] > 0


def test_a_pause_is_in_the_time_of_the_step_that_ends_after_it() -> None:
    """As a real agent measures it: steps per second are one over the mean of their times."""
    hung = Workload(0, (workload.HUNG, 100.0), since=(100.0, Workload()))
    again = Workload(since=(165.0, hung))
    saved_s = LOAD_S + COMPILE_S + 175.0
    for job, t_s, pause_s in ((again, 175.0, 60.0), (Workload(), saved_s, 8.0)):
        told = progress(job, t_s, 1e15)
        per_s, mean_s = told["steps_per_s"] or 0, told["step_time_s.mean"] or 0
        assert per_s * mean_s == pytest.approx(1, rel=0.02)
        assert (told["step_time_s.max"] or 0) > pause_s
        assert (told["step_time_s.p50"] or 0) < 1.0


def test_chips_of_a_real_program_are_as_busy_as_its_last_seconds() -> None:
    """A MFU is a mean of the last minute, which still has the pause when steps go on."""
    recent = RecentSteps()
    assert recent.over_mean(3.0) == 1.0
    for second in range(10):
        recent.look(float(second), 3.0 * second)
    assert recent.over_mean(2.9) == 1.0, "the same, but for chance"
    for second in range(10, 16):
        recent.look(float(second), 30.0 + 1.5 * (second - 10))
    assert recent.over_mean(3.0) == pytest.approx(0.5)
    recent.look(80.0, 40.0)
    assert recent.over_mean(0.5) == 1.0, "the pause says nothing of the steps after it"
    recent.look(81.0, 43.0)
    assert recent.over_mean(0.5) == pytest.approx(6.0)
    for look in range(8):  # steps that wait for their input
        recent.look(83.0 + 2.5 * look, 44.0 + look)
    assert recent.over_mean(2.0) == pytest.approx(0.2)


@pytest.mark.parametrize("speed", [0.6, 0.1])
def test_slow_hardware_slows_steps_matrices_and_memory_alike_but_keeps_the_chips_busy(
    speed: float,
) -> None:
    healthy = Workload()
    slow = Workload(speed=speed, since=(100.0, healthy))
    at_s = 100.0 + 2 * CYCLE_S  # the steps of the last minute are all slow ones
    for what in ("mxu", "bandwidth"):
        full = getattr(healthy, what)(at_s, 1)
        assert getattr(slow, what)(at_s, 1) == pytest.approx(speed * full, abs=0.02)
    assert slow.duty(at_s, 1) == healthy.duty(at_s, 1)
    assert slow.steps_per_s(at_s) == pytest.approx(speed * healthy.steps_per_s(at_s))
    before, after = progress(healthy, at_s, 1e15), progress(slow, at_s, 1e15)
    assert after["steps_per_s"] == pytest.approx(speed * (before["steps_per_s"] or 0), rel=0.1)
    assert after["mfu_percent"] == pytest.approx(speed * (before["mfu_percent"] or 0), rel=0.1)
    p50 = "step_time_s.p50"
    assert after[p50] == pytest.approx((before[p50] or 0) / speed, rel=0.1)


@given(st.lists(st.floats(0.1, 1.0), max_size=30), TIMES)
def test_steps_never_go_back_when_faults_come_and_go(speeds: list[float], t_s: float) -> None:
    job = Workload()
    for n, speed in enumerate(speeds):
        at_s = 50.0 + 7 * n
        steps = job.steps_and_part(at_s)
        job = Workload(speed=speed, since=(at_s, job))
        assert job.steps_and_part(at_s) == pytest.approx(steps)
    assert job.steps(t_s) <= job.steps(t_s + 1.0)


@pytest.mark.parametrize(
    ("machine", "wraps"),
    [
        ("v5e-8", "false,false,false"),
        ("v5e-128", "false,true,false"),
        ("v5e-256", "true,true,false"),
        ("v5p-256", "true,true,true"),
        ("v5p-16", "false,false,false"),
    ],
)
def test_a_launcher_says_which_axes_have_joined_ends(machine: str, wraps: str) -> None:
    processes = [{"port": 8431, "chips": [0]}]
    assert job_environment(parse(machine), processes, 0)["TPU_TOPOLOGY_WRAP"] == wraps


@pytest.mark.parametrize(
    ("machine", "expected"), [("v5e-8", False), ("v5e-256", True), ("v5e-9", False), ("", False)]
)
def test_only_a_host_of_a_slice_has_agents_that_nobody_asked_for(
    machine: str, expected: bool
) -> None:
    assert _is_of_slice(machine) is expected
