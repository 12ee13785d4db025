"""Rows of libtpu and devices of agents find the chip they are about, or are listed separately."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pytest
from support.snapshots import merge

from tpusmi.chips import by_name, usual_kind
from tpusmi.model import (
    ABSENT,
    AGENT,
    LIBTPU,
    LIBTPU_SDK,
    NOMINAL,
    OK,
    Chip,
    ChipKey,
    Device,
    DeviceKey,
    HostFacts,
    Link,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    RowKey,
    Server,
    Snapshot,
    Visibility,
)
from tpusmi.report import html, plain_table
from tpusmi.report.device_names import hardware_name, unknown_words, uuid
from tpusmi.report.select import Selection, selected

NOW = 1000.0
UUID = re.compile("TPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HOST = HostFacts("host", "2026-01-01T00:00:00.000Z", None, None)
JOB, OTHER = ProcessKey(10, 77), ProcessKey(20, 88)
PORT, SECOND = "127.0.0.1:8431", "127.0.0.1:8432"
USED, DUTY, MXU = "hbm_used_bytes", "duty_cycle_percent", "tensorcore_utilization_percent"


def chips(generation: str, count: int) -> Outcome:
    """That many chips with nodes, as sysfs gives them."""
    g = by_name(generation)
    assert g is not None
    found = []
    for i in range(count):
        first = i * g.pci_functions
        nodes = tuple(g.node.format(first + f) for f in range(g.pci_functions))
        found.append(
            Chip(
                i,
                g.name,
                g.kind,
                (f"0000:00:{i:02x}.0",),
                nodes,
                g.devices_per_chip,
                hbm_nominal_bytes=g.hbm_bytes,
            )
        )
    return Outcome("sysfs", OK, chips=tuple(found))


def holder(key: ProcessKey, *nodes: str, **environment: str) -> Outcome:
    process = Process(
        key, "me", "train.py", "live", None, None, None, {}, holds=nodes, environment=environment
    )
    return Outcome("holders", OK, processes=(process,))


def agent(key: ProcessKey, ids: Iterable[int], platform: str = "tpu", used: int = 5) -> Outcome:
    devices = tuple(
        Device(DeviceKey(key, i), i, n, platform, usual_kind("TPU v5 lite"), (i, 0, 0), 0)
        for i, n in enumerate(ids)
    )
    readings = tuple(Reading(USED, d.key, used, NOW, AGENT, 5.0) for d in devices)
    process = Process(key, "me", "train.py", "live", "running", NOW, 1.0, {})
    return Outcome(AGENT, OK, readings=readings, devices=devices, processes=(process,))


def libtpu(
    rows: dict[str, dict[int, float]],
    address: str = PORT,
    process: ProcessKey | None = None,
    seen: Sequence[int] = (),
) -> Outcome:
    """What one server answered: metric, id, value."""
    source = LIBTPU_SDK if address == "sdk" else LIBTPU
    readings = tuple(
        Reading(metric, RowKey(address, i), value, NOW, source, 5.0)
        for metric, row in rows.items()
        for i, value in row.items()
    )
    ids = tuple(sorted({*rows.get(USED, rows.get(DUTY, {})), *seen}))
    servers = () if address == "sdk" else (Server(address, process, ids),)
    return Outcome(source, OK, readings=readings, servers=servers)


def joined(*outcomes: Outcome, simulated: bool = False) -> Snapshot:
    return merge(outcomes, HOST, NOW, "0.0.0", simulated)


def column(s: Snapshot, name: str) -> list[float | None]:
    return [s.value(name, d.key) for d in s.devices]


def notes(s: Snapshot) -> str:
    return " ".join(n for o in s.sources for n in o.notes)


def test_every_chip_of_the_machine_is_a_device_without_a_job() -> None:
    s = joined(chips("v5e", 8))
    assert [(d.index, d.chip, d.node) for d in s.devices] == [
        (i, i, f"/dev/vfio/{i}") for i in range(8)
    ]
    assert column(s, USED) == [None] * 8
    limit = s.values[s.devices[0].key, "hbm_limit_bytes"]
    assert (limit.value, limit.source) == (16 * 1024**3, NOMINAL)


def test_devices_with_and_without_a_job_have_one_name_for_their_kind() -> None:
    s = joined(chips("v5e", 4), holder(JOB, "/dev/vfio/0"), agent(JOB, [0]))
    assert {d.kind for d in s.devices} == {d.kind for d in joined(chips("v5e", 4)).devices}
    assert {d.kind for d in s.devices} == {"TPU v5e"}


def test_a_v3_chip_has_two_devices_and_a_7x_chip_one_for_each_node() -> None:
    v3, x7 = joined(chips("v3", 4)), joined(chips("7x", 4))
    assert [(d.chip, d.core_on_chip, d.node) for d in v3.devices[:3]] == [
        (0, 0, "/dev/accel0"), (0, 1, "/dev/accel0"), (1, 0, "/dev/accel1"),
    ]  # fmt: skip
    assert [(d.chip, d.node) for d in x7.devices[:3]] == [
        (0, "/dev/vfio/0"), (0, "/dev/vfio/1"), (1, "/dev/vfio/2"),
    ]  # fmt: skip


def test_global_ids_are_joined_to_local_chips_by_rank_and_kept() -> None:
    s = joined(chips("v6e", 4), libtpu({USED: {12: 3, 8: 1, 13: 4, 9: 2}}))
    assert [(d.chip, d.id, d.name) for d in s.devices] == [
        (0, 8, "tpu:8"), (1, 9, "tpu:9"), (2, 12, "tpu:12"), (3, 13, "tpu:13"),
    ]  # fmt: skip
    assert column(s, USED) == [1, 2, 3, 4]


def test_rows_are_shown_apart_when_counts_disagree_and_it_is_said() -> None:
    s = joined(chips("v6e", 4), libtpu({USED: {0: 1, 1: 2, 3: 4}}))
    assert [d.chip for d in s.devices] == [0, 1, 2, 3, None, None, None]
    assert column(s, USED) == [None] * 4 + [1, 2, 4]
    assert [d.name for d in s.devices[4:]] == ["tpu:0@8431", "tpu:1@8431", "tpu:3@8431"]
    assert "reports 3 devices, but 4 were expected" in notes(s)


def test_a_row_that_is_missing_now_and_was_there_before_costs_only_itself() -> None:
    s = joined(chips("v6e", 4), libtpu({USED: {8: 1, 9: 2, 13: 4}}, seen=(8, 9, 12, 13)))
    assert column(s, USED) == [1, 2, None, 4]


def test_a_metric_with_fewer_rows_finds_its_devices_by_id() -> None:
    s = joined(chips("v5e", 4), libtpu({USED: {0: 1, 1: 2, 2: 3, 3: 4}, DUTY: {1: 50.0, 3: 70.0}}))
    assert column(s, DUTY) == [None, 50.0, None, 70.0]


def test_duty_cycle_of_a_v3_stays_with_the_chip() -> None:
    s = joined(
        chips("v3", 4),
        libtpu({USED: dict.fromkeys(range(8), 1), DUTY: {0: 10.0, 1: 20.0, 2: 30.0, 3: 40.0}}),
    )
    assert column(s, USED) == [1] * 8
    assert column(s, DUTY) == [None] * 8
    assert [s.value(DUTY, ChipKey(i)) for i in range(4)] == [10.0, 20.0, 30.0, 40.0]
    of_second_core = s.of_chip(DUTY, s.devices[1])
    assert of_second_core is not None
    assert of_second_core.value == 10.0


def test_three_of_four_duty_cycles_of_a_v3_are_not_taken_for_those_of_cores() -> None:
    s = joined(
        chips("v3", 4),
        libtpu({USED: dict.fromkeys(range(8), 1), DUTY: {0: 10.0, 1: 20.0, 2: 30.0}}),
    )
    assert column(s, DUTY)[:8] == [None] * 8
    assert all(s.value(DUTY, ChipKey(i)) is None for i in range(4))


def test_memory_of_a_7x_is_of_the_chip_when_there_is_a_row_per_chip() -> None:
    duty = {i: float(i) for i in range(8)}
    s = joined(chips("7x", 4), libtpu({USED: {0: 1, 1: 2, 2: 3, 3: 4}, DUTY: duty}))
    assert column(s, USED) == [None] * 8
    assert [s.value(USED, ChipKey(i)) for i in range(4)] == [1, 2, 3, 4]
    assert column(s, DUTY) == [float(i) for i in range(8)]


def test_two_servers_that_both_have_a_device_0_are_told_apart_by_what_their_processes_hold() -> (
    None
):
    s = joined(
        chips("v5e", 4),
        holder(JOB, "/dev/vfio/0", "/dev/vfio/1"),
        holder(OTHER, "/dev/vfio/2", "/dev/vfio/3"),
        libtpu({USED: {0: 1, 1: 2}}, PORT, OTHER),
        libtpu({USED: {0: 3, 1: 4}}, SECOND, JOB),
    )
    assert column(s, USED) == [3, 4, 1, 2]
    assert [d.owners for d in s.devices] == [(JOB,), (JOB,), (OTHER,), (OTHER,)]


@pytest.mark.parametrize("others", [1, 0], ids=["beside another job", "alone"])
def test_what_the_server_of_an_ended_process_said_last_is_no_devices(others: int) -> None:
    """It is kept for a while, and the process is among nobody's holders any more."""
    living = [
        holder(JOB, "/dev/vfio/0", "/dev/vfio/1"),
        libtpu({USED: {0: 3, 1: 4}}, SECOND, JOB),
    ]
    ended = libtpu({USED: {0: 1, 1: 2}, DUTY: {0: 90, 1: 90}}, PORT, OTHER)
    s = joined(chips("v5e", 4), ended, *living[: 2 * others])
    assert column(s, USED) == ([3, 4, None, None] if others else [None] * 4)
    assert column(s, DUTY) == [None] * 4


def test_two_servers_whose_processes_cannot_be_seen_are_not_joined() -> None:
    s = joined(chips("v5e", 2), libtpu({USED: {0: 1}}, PORT), libtpu({USED: {0: 2}}, SECOND))
    assert column(s, USED) == [None, None, 1, 2]


def test_an_agents_devices_are_those_of_the_chips_that_its_process_holds() -> None:
    s = joined(chips("v5e", 4), holder(JOB, "/dev/vfio/2", "/dev/vfio/3"), agent(JOB, (6, 7)))
    assert [(d.chip, d.id, d.key.process) for d in s.devices] == [
        (0, None, None), (1, None, None), (2, 6, JOB), (3, 7, JOB),
    ]  # fmt: skip
    assert [p.key for p in s.processes] == [JOB]
    assert s.processes[0].holds == ("/dev/vfio/2", "/dev/vfio/3")
    assert [d.index for d in s.devices_of(JOB)] == [2, 3]


def test_agent_and_libtpu_speak_of_one_device_and_the_agent_is_trusted_for_memory() -> None:
    ids = (8, 9, 12, 13)
    rows = {USED: dict.fromkeys(ids, 99), DUTY: {8: 1.0, 9: 2.0, 12: 3.0, 13: 4.0}}
    s = joined(
        chips("v6e", 4),
        holder(JOB, *(f"/dev/vfio/{i}" for i in range(4))),
        agent(JOB, ids),
        libtpu(rows, PORT, JOB),
    )
    assert len(s.devices) == 4
    assert column(s, USED) == [5] * 4
    assert column(s, DUTY) == [1.0, 2.0, 3.0, 4.0]
    assert s.values[s.devices[0].key, USED].source == AGENT


def test_an_agent_without_visible_chips_still_gets_its_servers_rows() -> None:
    s = joined(agent(JOB, (4, 5)), libtpu({DUTY: {4: 1.0, 5: 2.0}}, PORT, JOB))
    assert column(s, DUTY) == [1.0, 2.0]


def test_the_sdk_counts_by_local_index_whatever_the_global_ids() -> None:
    s = joined(
        chips("v6e", 4),
        libtpu({USED: {8: 1, 9: 2, 12: 3, 13: 4}}),
        libtpu({MXU: {0: 10.0, 1: 20.0, 2: 30.0, 3: 40.0}}, "sdk"),
    )
    assert [(d.id, s.value(MXU, d.key)) for d in s.devices] == [
        (8, 10.0), (9, 20.0), (12, 30.0), (13, 40.0),
    ]  # fmt: skip


def watched(
    *holders_of: str, reason: str = "", not_inspected: int = 0, status: str = OK
) -> Outcome:
    """The holders of two v5e chips, both of whose nodes were looked for; the first may be held."""
    nodes = ("/dev/vfio/0", "/dev/vfio/1")
    seen = Visibility(nodes=nodes, not_inspected=not_inspected, reason=reason)
    outcome = holder(JOB, *holders_of) if holders_of else Outcome("holders", OK)
    return outcome._replace(visibility=seen, status=status)


@pytest.mark.parametrize(
    ("holders", "duty", "expected"),
    [
        pytest.param(watched(), {}, [None, None], id="nobody holds the chips"),
        pytest.param(watched("/dev/vfio/0"), {}, [50.0, None], id="one chip is held"),
        pytest.param(watched(), {0: 90.0, 1: 0.0}, [50.0, 50.0], id="its duty cycle is known"),
        pytest.param(watched(not_inspected=1), {}, [50.0, 50.0], id="a process was not inspected"),
        pytest.param(watched(reason="no rights"), {}, [50.0, 50.0], id="not all can be seen"),
        pytest.param(watched(status="failed"), {}, [50.0, 50.0], id="holders were not looked for"),
        pytest.param(Outcome("holders", OK), {}, [50.0, 50.0], id="other nodes were looked for"),
    ],
)
def test_the_sdks_mxu_is_not_believed_of_a_chip_that_certainly_no_process_holds(
    holders: Outcome, duty: dict[int, float], expected: list[float | None]
) -> None:
    sdk = libtpu({MXU: {0: 50.0, 1: 50.0}}, "sdk")
    rows = [libtpu({DUTY: duty})] if duty else []
    assert column(joined(chips("v5e", 2), holders, sdk, *rows), MXU) == expected
    idle = libtpu({MXU: {0: 0.0, 1: 0.0}}, "sdk")  # that they do nothing can be true
    assert column(joined(chips("v5e", 2), holders, idle), MXU) == [0.0, 0.0]


def test_throttling_is_of_the_chip_even_where_a_chip_is_one_device() -> None:
    s = joined(chips("v5e", 2), libtpu({"throttle_percent": {0: 0.0, 1: 30.0}}, "sdk"))
    assert [s.value("throttle_percent", c.key) for c in s.chips] == [0.0, 30.0]
    assert "chip 1 is throttled by" in warned(s)["throttled"]


def test_a_chips_figure_in_the_wrong_number_costs_only_itself() -> None:
    s = joined(chips("v3", 4), libtpu({"throttle_percent": dict.fromkeys(range(8), 10.0)}, "sdk"))
    assert len(s.devices) == 8
    assert "8 throttle_percent values ignored: they match no device" in notes(s)


def test_rows_that_number_chips_or_ordinals_are_never_shown_as_devices() -> None:
    queue = "hlo_queue_size"
    rows = {USED: dict.fromkeys(range(6), 1), DUTY: {0: 9.0, 1: 8.0, 2: 7.0}, queue: {0: 1, 1: 2}}
    s = joined(chips("v3", 4), libtpu(rows))
    assert [d.name for d in s.devices[8:]] == [f"tpu:{i}@8431" for i in range(6)]
    assert column(s, DUTY) == [None] * 14
    assert column(s, queue) == [None] * 14
    assert "reports 6 devices, but 8 were expected" in notes(s)
    assert (
        "3 duty_cycle_percent and 2 hlo_queue_size values ignored: they match no device" in notes(s)
    )
    assert len({d.index for d in s.devices}) == 14


def test_ordinals_beside_global_ids_are_no_devices() -> None:
    rows = {USED: {8: 1, 9: 2, 12: 3}, "hlo_queue_size": {0: 1, 1: 2, 2: 3}}
    s = joined(chips("v6e", 4), libtpu(rows))
    assert [d.name for d in s.devices[4:]] == ["tpu:8", "tpu:9", "tpu:12"]
    assert "reports 3 devices, but 4 were expected" in notes(s)


def test_ids_of_chips_do_not_hide_the_ids_of_devices_on_a_later_host() -> None:
    ids = (4, 5, 6, 7, 12, 13, 14, 15)
    rows = {USED: dict.fromkeys(ids, 1), DUTY: {2: 1.0, 3: 2.0, 6: 3.0, 7: 4.0}}
    assert [d.id for d in joined(chips("v3", 4), libtpu(rows)).devices] == list(ids)
    del rows[USED][5]
    s = joined(chips("v3", 4), libtpu(rows, seen=ids))
    assert column(s, USED) == [1, None, 1, 1, 1, 1, 1, 1]


def test_a_partial_answer_is_joined_by_the_ids_that_the_agent_knows() -> None:
    nodes = [f"/dev/vfio/{i}" for i in range(4)]
    s = joined(
        chips("v5e", 4),
        holder(JOB, *nodes),
        agent(JOB, (8, 9, 12, 13)),
        libtpu({DUTY: {8: 1.0, 13: 4.0}}, PORT, JOB),
    )
    assert column(s, DUTY) == [1.0, None, None, 4.0]


def test_a_hole_in_the_sdks_list_costs_one_device() -> None:
    rows = {MXU: {0: 10.0, 2: 30.0, 3: 40.0}}
    assert column(joined(chips("v5e", 4), libtpu(rows, "sdk")), MXU) == [10.0, None, 30.0, 40.0]


def test_a_list_of_the_sdk_that_is_too_long_is_left_out() -> None:
    rows = {MXU: {0: 10.0, 1: 20.0, 2: 30.0, 3: 40.0}}
    assert column(joined(chips("v5e", 3), libtpu(rows, "sdk")), MXU) == [None] * 3


def test_rows_on_a_machine_without_visible_chips_are_devices_of_their_own() -> None:
    s = joined(libtpu({USED: {8: 1, 9: 2}}))
    assert [(d.name, d.chip) for d in s.devices] == [("tpu:8", None), ("tpu:9", None)]
    assert notes(s) == ""


def test_a_cpu_job_beside_a_tpu_is_not_laid_over_its_chips() -> None:
    s = joined(chips("v5e", 2), agent(JOB, (0, 1), platform="cpu"))
    assert [(d.name, d.chip) for d in s.devices] == [
        ("tpu:0", 0), ("tpu:1", 1), ("cpu:0", None), ("cpu:1", None),
    ]  # fmt: skip


def test_the_job_of_a_simulated_host_stands_on_the_chips_that_it_holds() -> None:
    outcomes = (
        chips("v5e", 2), holder(JOB, "/dev/vfio/0", "/dev/vfio/1"), agent(JOB, (0, 1), "cpu")
    )  # fmt: skip
    s = joined(*outcomes, simulated=True)
    assert [(d.name, d.kind, d.chip) for d in s.devices] == [
        ("tpu:0", "TPU v5e", 0), ("tpu:1", "TPU v5e", 1),
    ]  # fmt: skip
    assert [d.chip for d in joined(*outcomes).devices] == [0, 1, None, None]


def test_an_agent_with_fewer_devices_than_its_chips_is_shown_apart_and_it_is_said() -> None:
    s = joined(chips("v5e", 4), agent(JOB, (0,)), libtpu({}))
    assert [d.chip for d in s.devices] == [0, 1, 2, 3, None]


@pytest.mark.parametrize("count", [1, 4, 8, 256])
def test_joining_is_linear_enough_for_a_full_host(count: int) -> None:
    rows = {USED: dict.fromkeys(range(count), 1), DUTY: dict.fromkeys(range(count), 1.0)}
    s = joined(chips("v5e", count), libtpu(rows))
    assert column(s, USED) == [1] * count


def test_a_chip_without_a_node_keeps_its_row_when_the_counts_of_the_machine_agree() -> None:
    bare = chips("v5e", 4)
    last = bare.chips[3]._replace(nodes=(), notes=("has no device node",))
    machine = bare._replace(chips=(*bare.chips[:3], last))
    held = holder(JOB, *(f"/dev/vfio/{i}" for i in range(3)))
    s = joined(machine, held, libtpu({USED: {0: 1, 1: 2, 2: 3, 3: 4}}, PORT, JOB))
    assert column(s, USED) == [1, 2, 3, 4]


def test_a_server_on_a_machine_without_a_tpu_is_a_stranger_and_is_called_one() -> None:
    assert "no TPU can be seen" in warned(joined(libtpu({USED: {0: 1}})))["no_chips"]
    assert warned(joined(chips("v5e", 1), libtpu({USED: {0: 1}}))) == {}


def test_a_program_that_hangs_is_not_called_a_small_batch() -> None:
    bandwidth = "hbm_bandwidth_utilization_percent"
    rows = {DUTY: {0: 100.0}, bandwidth: {0: 0.0}}
    held = holder(JOB, "/dev/vfio/0")
    s = joined(chips("v5e", 1), held, libtpu(rows), libtpu({MXU: {0: 0.0}}, "sdk"))
    assert "hangs, or waits for another host" in warned(s)["busy_for_nothing"]
    assert "busy_without_mxu" not in warned(s)
    (advice,) = (n.advice for n in s.warnings if n.code == "busy_for_nothing")
    assert f"py-spy dump --pid {JOB.pid}`" in advice


def warned(s: Snapshot) -> dict[str, str]:
    return {n.code: n.message for n in s.warnings}


def test_a_holder_that_serves_nothing_is_named_with_the_reason_its_environment_gives() -> None:
    s = joined(chips("v5e", 1), holder(JOB, "/dev/vfio/0", TPU_PROCESS_ADDRESSES="local"))
    assert "serves no metrics: TPU_PROCESS_ADDRESSES=local" in warned(s)["no_metrics"]
    served = joined(chips("v5e", 1), holder(JOB, "/dev/vfio/0"), libtpu({USED: {0: 1}}, PORT, JOB))
    assert warned(served) == {}


def test_the_reason_that_libtpus_source_found_is_the_one_that_is_told() -> None:
    absent = Outcome(LIBTPU, ABSENT, notes=("pid 10 is in another network namespace",))
    s = joined(chips("v5e", 1), holder(JOB, "/dev/vfio/0"), absent)
    assert "is in another network namespace" in warned(s)["no_metrics"]
    missing = Outcome(LIBTPU, ABSENT, "grpcio is not installed")
    s = joined(chips("v5e", 1), holder(JOB, "/dev/vfio/0"), missing)
    assert "grpcio is not installed" in warned(s)["no_metrics"]


def test_a_job_without_a_program_is_told_from_one_without_metrics() -> None:
    s = joined(chips("v5e", 1), holder(JOB, "/dev/vfio/0"), libtpu({}, PORT, JOB))
    assert "has no program loaded yet" in warned(s)["no_program"]


def test_a_link_of_a_chip_that_is_not_there_is_told_without_one() -> None:
    links = Outcome(LIBTPU_SDK, OK, links=(Link(3, "tray1.chip3.ici0", 10), Link(0, "ici1", 7)))
    messages = [n.message for n in joined(chips("v5e", 1), links).warnings]
    assert messages[0] == "ICI link tray1.chip3.ici0 cannot be used (health 10)"
    assert messages[1] == "ICI link ici1 of chip 0 has a lasting fault (health 7)"


def test_busy_chips_without_matrix_work_are_told() -> None:
    held = holder(JOB, "/dev/vfio/0")
    s = joined(chips("v5e", 1), held, libtpu({DUTY: {0: 100.0}}), libtpu({MXU: {0: 3.0}}, "sdk"))
    assert "busy 100 %, MXU 3 %" in warned(s)["busy_without_mxu"]
    fine = joined(
        chips("v5e", 1), held, libtpu({DUTY: {0: 100.0}}), libtpu({MXU: {0: 40.0}}, "sdk")
    )
    assert warned(fine) == {}


BANDWIDTH, QUEUE = "hbm_bandwidth_utilization_percent", "hlo_queue_size"


def test_a_metric_that_is_numbered_otherwise_is_joined_by_rank_and_costs_no_ids() -> None:
    ids = (404, 405, 412, 413)
    rows = {USED: {i: n for n, i in enumerate(ids)}, DUTY: {i: 1.0 for i in ids}}
    rows[BANDWIDTH] = {n: float(n) for n in range(4)}
    s = joined(chips("v5p", 4), libtpu(rows))
    assert [d.name for d in s.devices] == [f"tpu:{i}" for i in ids]
    assert column(s, BANDWIDTH) == [0.0, 1.0, 2.0, 3.0]
    del rows[USED]  # then those that agree decide
    rows[MXU] = dict.fromkeys(ids, 5.0)
    assert [d.id for d in joined(chips("v5p", 4), libtpu(rows)).devices] == list(ids)


def test_on_a_machine_without_visible_chips_both_numberings_are_of_the_same_devices() -> None:
    rows: dict[str, dict[int, float]] = {USED: {404: 1, 405: 2}, BANDWIDTH: {0: 3.0, 1: 4.0}}
    rows[QUEUE] = {0: 5, 1: 6}
    s = joined(libtpu(rows))
    assert [d.name for d in s.devices] == ["tpu:404", "tpu:405"]
    assert (column(s, BANDWIDTH), column(s, QUEUE)) == ([3.0, 4.0], [5, 6])
    assert notes(s) == ""


@pytest.mark.parametrize("metric", ["idle_s", DUTY])
def test_a_row_for_each_device_of_a_v3_is_the_devices(metric: str) -> None:
    rows = {USED: dict.fromkeys(range(8), 1), metric: {i: float(i) for i in range(8)}}
    s = joined(chips("v3", 4), libtpu(rows))
    assert column(s, metric) == [float(i) for i in range(8)]
    assert notes(s) == ""


KEYS = [ProcessKey(pid, 7) for pid in (101, 102, 103, 104)]
NODES = tuple(f"/dev/vfio/{n}" for n in range(4))


def workers(ids: Sequence[int], **variables: Sequence[object]) -> Snapshot:
    """Four processes that have opened every node, with one device each."""
    told = [{k: str(v[n]) for k, v in variables.items() if v[n] is not None} for n in range(4)]
    held = [holder(key, *NODES, **told[n]).processes[0] for n, key in enumerate(KEYS)]
    servers = [
        libtpu({USED: {i: n + 1}}, f"localhost:{8431 + n}", KEYS[n]) for n, i in enumerate(ids)
    ]
    return joined(chips("v5e", 4), Outcome("holders", OK, processes=tuple(held)), *servers)


@pytest.mark.parametrize(
    ("ids", "variables", "used"),
    [
        ((0, 1, 2, 3), {"TPU_VISIBLE_CHIPS": (0, 1, 2, 3)}, [1, 2, 3, 4]),
        ((3, 2, 0, 1), {"TPU_VISIBLE_DEVICES": (3, 2, 0, 1)}, [3, 4, 2, 1]),
        (
            (9, 8, 13, 12),
            {
                "TPU_VISIBLE_DEVICE_PATHS": [NODES[n] for n in (1, 0, 3, 2)],
                "TPU_VISIBLE_CHIPS": (0, 1, 2, 3),
            },
            [2, 1, 4, 3],
        ),
        ((0, 1, 3), {"TPU_VISIBLE_CHIPS": (0, 1, 3, 2)}, [1, 2, None, 3]),
    ],
    ids=["chips", "older-name", "paths-win", "one-has-no-program-yet"],
)
def test_workers_that_opened_all_nodes_have_the_chips_that_are_visible_to_them(
    ids: Sequence[int], variables: dict[str, Sequence[object]], used: list[float | None]
) -> None:
    s = workers(ids, **variables)
    assert column(s, USED) == used
    user = [ids.index(i) for i in sorted(ids)]
    known = [d for d in s.devices if s.value(USED, d.key) is not None]
    assert [d.owners[0] for d in known] == [KEYS[n] for n in user]
    assert all(len(d.owners) == 4 for d in s.devices)


@pytest.mark.parametrize(
    ("ids", "visible"),
    [
        ((0, 1, 2, 3), (0, 1, None, 3)),
        ((0, 1, 2, 3), (0, 1, 1, 3)),
        ((0, 1, 2, 3), (0, 1, 2, 4)),
        ((0, 1, 2, 3), (0, 1, 2, "3,")),
        ((0, 1, 2, 3), (0, 1, 2, "2,3")),
        ((0, 2, 1, 3), (0, 1, 2, 3)),
        ((0, 0, 0, 0), (0, 1, 2, 3)),
        ((4, 5, 6), (0, 1, 2, 3)),
    ],
    ids=["silent", "twice", "no-such-chip", "garbage", "two", "order", "own", "not-all"],
)
def test_workers_whose_variables_or_ids_are_not_certain_stay_apart(
    ids: Sequence[int], visible: Sequence[object]
) -> None:
    s = workers(ids, TPU_VISIBLE_CHIPS=visible)
    assert column(s, USED)[:4] == [None] * 4
    assert len({d.name for d in s.devices}) == 4 + len(ids)


def test_jobs_of_several_containers_have_names_of_their_own_even_where_their_pids_are_one() -> None:
    jobs = (ProcessKey(7, 100), ProcessKey(7, 200), ProcessKey(8, 100))
    s = joined(*(agent(key, (0, 1), platform="cpu") for key in jobs))
    assert sorted(d.name for d in s.devices) == sorted(
        f"cpu:{n}@{whose}" for n in (0, 1) for whose in ("7-100", "7-200", "8")
    )
    alone = joined(agent(jobs[0], (0, 1), platform="cpu"))
    assert [d.name for d in alone.devices] == ["cpu:0", "cpu:1"]


def test_a_dead_job_takes_no_name_from_a_living_one() -> None:
    ended = agent(OTHER, (0,), platform="cpu")
    ended = ended._replace(processes=tuple(p._replace(state="dead") for p in ended.processes))
    s = joined(agent(JOB, (0,), platform="cpu"), ended)
    assert [d.name for d in (*s.devices, *s.dead_devices)] == ["cpu:0", "cpu:0"]


def test_a_device_whose_id_is_the_index_of_another_is_named_by_its_index() -> None:
    held = holder(JOB, "/dev/vfio/2")
    s = joined(chips("v5e", 4), held, libtpu({USED: {0: 1}}, PORT, JOB))
    assert [(d.name, d.id) for d in s.devices] == [
        ("tpu:0", None), ("tpu:1", None), ("tpu:2", 0), ("tpu:3", None),
    ]  # fmt: skip


def test_the_uuid_of_a_chips_device_is_its_hardwares_whatever_job_has_it() -> None:
    seen: list[str] = []
    for generation, uuids in (
        ("v5e", ["TPU-0000:00:00.0", "TPU-0000:00:01.0"]),
        ("v3", [f"TPU-0000:00:0{chip}.0/{core}" for chip in (0, 1) for core in (0, 1)]),
    ):
        g = by_name(generation)
        assert g is not None
        nodes = [g.node.format(n) for n in range(2)]
        ids = tuple(range(8, 8 + len(uuids)))
        free = joined(chips(generation, 2))
        busy = joined(chips(generation, 2), holder(JOB, *nodes), agent(JOB, ids))
        assert [hardware_name(free, d) for d in free.devices] == uuids
        assert [uuid(busy, d) for d in busy.devices] == [uuid(free, d) for d in free.devices]
        assert [d.id for d in busy.devices] == list(ids)
        assert all(UUID.fullmatch(uuid(free, d)) for d in free.devices)
        seen += [uuid(free, d) for d in free.devices]
    assert len({*seen}) == len(seen)


def test_the_uuid_is_the_machines_by_its_id_and_without_one_by_its_name() -> None:
    def first(**facts: str) -> str:
        s = joined(chips("v5e", 1))
        s = s._replace(host=s.host._replace(**facts))
        return uuid(s, s.devices[0])

    machine = {"machine_id": "0123456789abcdef" * 2}
    assert first(name="a") == first(name="a", boot_id="another") != first(name="b")
    assert first(name="a", **machine) == first(name="b", **machine) != first(name="a")
    assert machine["machine_id"] not in first(name="a", **machine)


def test_the_chiplets_of_a_7x_have_a_uuid_each_and_a_node_without_a_bus_has_one() -> None:
    x7 = joined(chips("7x", 2))
    assert len({uuid(x7, d) for d in x7.devices}) == 4
    device = x7.devices[0]._replace(chip=None, key=DeviceKey(None, 0, "127.0.0.1:8431"))
    again = device._replace(key=DeviceKey(None, 0, "127.0.0.1:8432"))
    assert UUID.fullmatch(uuid(x7, device))
    assert uuid(x7, device) == uuid(x7, again)


def test_four_devices_of_one_id_have_four_names_in_every_view() -> None:
    s = joined(*(agent(ProcessKey(pid, 1), (0,)) for pid in (71, 72, 73, 74)))
    names = [f"tpu:0@{pid}" for pid in (71, 72, 73, 74)]
    assert [d["name"] for d in s.to_dict()["devices"]] == names
    listed = plain_table.device_list(s)
    for name in names:
        assert name in plain_table.table(s)
        assert f">{name}<" in html.fragment(s)
        assert f"TPU {name.removeprefix('tpu:')}: " in listed
    assert len({uuid(s, d) for d in s.devices}) == 4


@pytest.mark.parametrize(
    ("word", "indexes"),
    [
        ("tpu:12", [2]), ("12", [2]), ("0", [0]), ("TPU-0000:00:03.0", [3]), ("vfio/1", [1]),
        ("/dev/vfio/1", [1]), ("tpu:9@10", [1]), ("tpu:0", []), ("", []), ("4", []),
        ("0000:00:03.0", [3]), ("00000000:00:03.0", [3]), ("00:03.0", [3]), ("0:3.0", [3]),
        ("00:09.0", []), ("0-2", [0, 1, 2]), ("2-9", [2, 3]), ("12-13", [2, 3]), ("3-1", []),
        ("0-", []), ("-1", []), ("0-99999999999999999999", []), ("0-2-3", []), ("TPU-", []),
    ],
)  # fmt: skip
def test_a_device_is_selected_by_whatever_a_screen_calls_it(word: str, indexes: list[int]) -> None:
    s = joined(chips("v6e", 4), holder(JOB, *NODES), agent(JOB, (8, 9, 12, 13)))
    assert [d.index for d in selected(s, Selection(devices=(word,))).devices] == indexes


def test_a_device_is_selected_by_its_uuid_in_any_case_and_by_a_beginning_that_is_its_alone() -> (
    None
):
    s = joined(chips("v6e", 4))
    uuids = [uuid(s, d) for d in s.devices]
    for n, own in enumerate(uuids):
        for word in (own, own.upper(), own[:20]):
            assert [d.index for d in selected(s, Selection(devices=(word,))).devices] == [n]
    assert unknown_words(s, ["TPU-", "tpu", *uuids]) == ["TPU-", "tpu"]


def test_the_words_that_name_no_device_are_told_apart_from_those_that_do() -> None:
    s = joined(chips("v6e", 4))
    assert unknown_words(s, ["0", "77", "tpu:1", "0-3", "2-5", "00:01.0", "00:09.0"]) == [
        "77", "2-5", "00:09.0",
    ]  # fmt: skip


def test_an_address_is_that_of_one_chiplet_of_a_7x_and_of_both_cores_of_a_v3() -> None:
    v3, x7 = joined(chips("v3", 2)), joined(chips("7x", 2))
    both = tuple(c._replace(pci_addresses=(f"0000:00:0{c.index}.0", f"0000:00:0{c.index}.1"))
                 for c in x7.chips)  # fmt: skip
    x7 = x7._replace(chips=both)
    assert len({uuid(x7, d) for d in x7.devices}) == 4
    for s, word, indexes in ((v3, "00:01.0", [2, 3]), (x7, "00:01.0", [2]), (x7, "00:01.1", [3])):
        assert [d.index for d in selected(s, Selection(devices=(word,))).devices] == indexes


def test_a_plain_name_selects_the_devices_of_every_job_that_has_it() -> None:
    s = joined(agent(JOB, (0, 1), platform="cpu"), agent(OTHER, (0,), platform="cpu"))
    for word, pids in (("cpu:0", [10, 20]), ("cpu:0@20", [20]), ("cpu:0@20-88", [20])):
        found = selected(s, Selection(devices=(word,))).devices
        assert [d.owners[0].pid for d in found] == pids
