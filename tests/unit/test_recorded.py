"""The history has what snapshots showed, under their keys, each graph of one witness."""

from __future__ import annotations

import pytest

from tpusmi.chips import by_name
from tpusmi.merge import snapshot_of
from tpusmi.merge.join import Join
from tpusmi.merge.past import past
from tpusmi.model import (
    AGENT,
    HOLDERS,
    LIBTPU,
    LIBTPU_SDK,
    OK,
    PHASE,
    UNKNOWN,
    Chip,
    ChipKey,
    Device,
    DeviceKey,
    History,
    HostFacts,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    RowKey,
    Server,
    Snapshot,
    Visibility,
)

NOW = 1000.0
HOST = HostFacts("host", "2026-01-01T00:00:00.000Z", None, None)
PORT = "127.0.0.1:8431"
JOB, LATER = ProcessKey(10, 77), ProcessKey(20, 88)
USED, DUTY, MXU = "hbm_used_bytes", "duty_cycle_percent", "tensorcore_utilization_percent"
QUEUE = "hlo_queue_size"


def chips(generation: str, count: int) -> Outcome:
    g = by_name(generation)
    assert g is not None
    found = tuple(
        Chip(i, g.name, g.kind, (f"0000:00:{i:02x}.0",), (g.node.format(i),), g.devices_per_chip)
        for i in range(count)
    )
    return Outcome("sysfs", OK, chips=found)


def holder(key: ProcessKey, *nodes: str) -> Outcome:
    process = Process(key, "me", "train.py", "live", None, None, None, {}, holds=nodes, uid=1)
    return Outcome(HOLDERS, OK, processes=(process,), visibility=Visibility(nodes=nodes))


def libtpu(server: str = PORT, at_s: float = NOW, **rows: list[float]) -> Outcome:
    """What a server, or the SDK, answered: metric, a value for each row."""
    source = LIBTPU_SDK if server == "sdk" else LIBTPU
    readings = tuple(
        Reading(metric, RowKey(server, i), value, at_s, source, 5.0)
        for metric, row in rows.items()
        for i, value in enumerate(row)
    )
    ids = tuple(range(max(map(len, rows.values()))))
    servers = () if source == LIBTPU_SDK else (Server(server, None, ids),)
    return Outcome(source, OK, readings=readings, servers=servers)


def agent(key: ProcessKey, at_s: float = NOW, state: str = "live", **values: float) -> Outcome:
    """An agent of a job with one device."""
    d = Device(DeviceKey(key, 0), 0, 0, "tpu", "TPU v5 lite", (0, 0, 0), 0)
    process = Process(key, "me", "train.py", state, "running", at_s, 1.0, {}, uid=1)
    readings = tuple(Reading(n, d.key, v, at_s, AGENT, 5.0) for n, v in values.items())
    phase = Reading(PHASE, key, 2, at_s, AGENT, 5.0)
    return Outcome(AGENT, OK, readings=(*readings, phase), devices=(d,), processes=(process,))


def shown(history: History, at_s: float, *outcomes: Outcome) -> Snapshot:
    """The snapshot of that moment, recorded."""
    join = Join(outcomes, at_s)
    history.record(join.readings, join.places, join.owners, at_s)
    return snapshot_of(join, HOST, "0.0.0")


def drawn(
    history: History, key: DeviceKey | ChipKey, name: str, count: int, at_s: float = NOW
) -> list[float]:
    return list(history.window(name, key, int(at_s), count) or ())


def test_the_duty_cycle_of_a_chip_of_two_devices_is_the_chips_and_no_devices() -> None:
    history = History()
    rows = {USED: [float(n) for n in range(1, 9)], DUTY: [10.0, 20.0, 30.0, 40.0]}
    s = shown(history, NOW, chips("v3", 4), libtpu(**rows))
    then = past(s, history, NOW)
    assert [then.value(USED, d.key) for d in s.devices] == list(range(1, 9))
    assert [then.value(DUTY, d.key) for d in s.devices] == [None] * 8
    assert [then.value(DUTY, c.key) for c in s.chips] == [10.0, 20.0, 30.0, 40.0]


def test_what_the_sdk_says_is_in_the_past_too() -> None:
    history = History()
    sdk = libtpu("sdk", tensorcore_utilization_percent=[5.0, 6.0, 7.0, 8.0])
    s = shown(history, NOW, chips("v5e", 4), sdk)
    then = past(s, history, NOW)
    assert [then.value(MXU, d.key) for d in s.devices] == [5.0, 6.0, 7.0, 8.0]
    assert {v.source for v in then.values.values() if v.source != "nominal"} == {LIBTPU_SDK}


@pytest.mark.parametrize("generation", ["v3", "v5e", "7x"])
def test_every_value_of_a_snapshot_is_in_the_history_under_its_key(generation: str) -> None:
    g = by_name(generation)
    assert g is not None
    history = History()
    devices = [float(n) for n in range(1, 4 * g.devices_per_chip + 1)]
    served = libtpu(hlo_queue_size=devices, duty_cycle_percent=[0.5, 1.5, 2.5, 3.5])
    sdk = libtpu("sdk", tensorcore_utilization_percent=devices)
    s = shown(history, NOW, chips(generation, 4), served, sdk)
    measured = {key: v for key, v in s.values.items() if v.source in (LIBTPU, LIBTPU_SDK)}
    assert measured
    for (subject, name), v in measured.items():
        assert history.with_source(name, subject, NOW, 1.0) == (v.value, v.source)


def test_what_nothing_shows_is_not_recorded() -> None:
    """A server of a process that holds no TPU, on a machine that has one."""
    history = History()
    stranger = libtpu(**{USED: [1.0]})
    server = stranger.servers[0]._replace(stranger=99, user="eve")
    shown(history, NOW, chips("v5e", 1), stranger._replace(servers=(server,)))
    assert history.size == 0


def test_a_graph_goes_on_when_an_agent_begins_and_when_it_ends() -> None:
    history, machine = History(), (chips("v5e", 1), holder(JOB, "/dev/vfio/0"))
    bare, own = DeviceKey(None, 0), DeviceKey(JOB, 0)
    for n in range(9):
        at_s = NOW - 8 + n
        rows = libtpu(at_s=at_s, **{QUEUE: [float(n)], USED: [100.0]})
        agents = (agent(JOB, at_s, **{USED: 50.0}),) if 3 <= n < 6 else ()
        (d,) = shown(history, at_s, *machine, *agents, rows).devices
        assert d.key == (own if agents else bare)
        assert drawn(history, d.key, QUEUE, 9, at_s)[-n - 1 :] == [float(i) for i in range(n + 1)]
    assert drawn(history, own, USED, 9) == [*[UNKNOWN] * 3, *[50.0] * 3, *[UNKNOWN] * 3]
    assert drawn(history, bare, USED, 9)[-3:] == [100.0] * 3


def test_a_graph_goes_on_when_an_agent_begins_where_no_chips_can_be_seen() -> None:
    history = History()
    for n in range(6):
        at_s = NOW - 5 + n
        agents = (agent(JOB, at_s, **{USED: 50.0}),) if n >= 3 else ()
        rows = libtpu(at_s=at_s, **{QUEUE: [float(n)], USED: [100.0]})
        (d,) = shown(history, at_s, *agents, rows).devices
        assert d.key == (DeviceKey(JOB, 0) if agents else DeviceKey(None, 0, PORT))
    assert drawn(history, DeviceKey(JOB, 0), QUEUE, 6) == [0, 1, 2, 3, 4, 5]


def test_a_device_that_is_set_apart_keeps_its_own_graph_whatever_comes_beside_it() -> None:
    history = History()
    for n in range(4):
        at_s = NOW - 3 + n
        more = (agent(JOB, at_s, **{USED: 50.0}), agent(LATER, at_s)) if n >= 2 else ()
        rows = libtpu(at_s=at_s, **{USED: [10.0, 20.0, 30.0]})
        shown(history, at_s, *more, rows)
    for i in range(3):
        assert drawn(history, DeviceKey(None, i, PORT), USED, 4) == [10.0 * (i + 1)] * 4


def test_the_backlog_of_an_agent_goes_on_as_what_libtpu_says_of_the_same() -> None:
    """The agent asks libtpu for it: one witness, who is asked in two ways."""
    history, own = History(), DeviceKey(JOB, 0)
    history.add([Reading(DUTY, own, 7.0, NOW - ago_s, AGENT, 5.0) for ago_s in range(60, 0, -1)])
    moment = (chips("v5e", 1), holder(JOB, "/dev/vfio/0"), agent(JOB, **{DUTY: 8.0}))
    s = shown(history, NOW, *moment, libtpu(**{DUTY: [9.0]}))
    assert s.values[own, DUTY].source == LIBTPU
    assert drawn(history, own, DUTY, 61) == [*[7.0] * 60, 9.0]


def test_a_graph_never_mixes_two_witnesses_and_a_look_back_shows_what_was_shown() -> None:
    """While the agent of a job is silent, its memory is what libtpu says, which is not the same."""
    history, own = History(), DeviceKey(JOB, 0)
    for n in range(30):
        at_s = NOW - 29 + n
        heard_s = at_s if n < 10 or n >= 20 else NOW - 29 + 9
        moment = (chips("v5e", 1), holder(JOB, "/dev/vfio/0"), agent(JOB, heard_s, **{USED: 50.0}))
        s = shown(history, at_s, *moment, libtpu(at_s=at_s, **{USED: [100.0]}))
    assert set(drawn(history, own, USED, 30)) == {50.0, UNKNOWN}
    then = past(s, history, NOW - 12)
    assert (then.values[own, USED].value, then.values[own, USED].source) == (100.0, LIBTPU)
    then = past(s, history, NOW - 25)
    assert (then.values[own, USED].value, then.values[own, USED].source) == (50.0, AGENT)


def test_a_job_that_has_ended_keeps_its_graph_while_the_next_has_the_device() -> None:
    history, machine = History(), chips("v5e", 1)
    for n in range(6):
        at_s = NOW - 5 + n
        job = JOB if n < 3 else LATER
        rows = libtpu(at_s=at_s, **{QUEUE: [float(n)]})
        agents = agent(job, at_s, **{USED: float(n)})
        shown(history, at_s, machine, holder(job, "/dev/vfio/0"), agents, rows)
    assert drawn(history, DeviceKey(JOB, 0), USED, 6) == [0, 1, 2, *[UNKNOWN] * 3]
    assert drawn(history, DeviceKey(JOB, 0), QUEUE, 6) == [0, 1, 2, *[UNKNOWN] * 3]
    assert drawn(history, DeviceKey(LATER, 0), USED, 6) == [*[UNKNOWN] * 3, 3, 4, 5]
    assert drawn(history, DeviceKey(LATER, 0), QUEUE, 6) == [0, 1, 2, 3, 4, 5]


def test_the_phase_of_a_job_is_recorded() -> None:
    history = History()
    shown(history, NOW, agent(JOB))
    assert history.at(PHASE, JOB, NOW, 1.0) == 2


def test_since_when_a_chip_rests_is_known_across_the_beginning_of_an_agent() -> None:
    history, machine = History(), (chips("v5e", 1), holder(JOB, "/dev/vfio/0"))
    for n in range(10):
        at_s = NOW - 9 + n
        agents = (agent(JOB, at_s),) if n >= 5 else ()
        (d,) = shown(history, at_s, *machine, *agents, libtpu(at_s=at_s, **{DUTY: [0.0]})).devices
    assert history.nothing_since_s(d.key) == NOW - 9


def test_a_job_that_worked_under_its_agent_has_not_rested_since_before_it() -> None:
    history, node = History(), by_name("v5e")
    assert node is not None
    held = (chips("v5e", 1), holder(JOB, node.node.format(0)))
    for second in range(10):
        shown(history, NOW + second, *held, libtpu(at_s=NOW + second, **{DUTY: [0.0]}))
    at_s = NOW + 10
    busy = libtpu(at_s=at_s, **{DUTY: [95.0]})
    shown(history, at_s, *held, busy, agent(JOB, at_s, **{USED: 1.0}))
    s = shown(history, NOW + 11, *held, libtpu(at_s=NOW + 11, **{DUTY: [0.0]}))
    assert history.nothing_since_s(s.devices[0].key) == NOW + 11


def test_a_holder_does_not_inherit_the_rest_of_the_one_before_it() -> None:
    history, node = History(), by_name("v5e")
    assert node is not None
    for second in range(10):
        at_s = NOW + second
        job = holder(JOB, node.node.format(0))
        shown(history, at_s, chips("v5e", 1), job, libtpu(at_s=at_s, **{DUTY: [0.0]}))
    later = holder(LATER, node.node.format(0))
    at_s = NOW + 10
    s = shown(history, at_s, chips("v5e", 1), later, libtpu(at_s=at_s, **{DUTY: [0.0]}))
    assert s.devices[0].owners == (LATER,)
    assert history.nothing_since_s(s.devices[0].key) == at_s
