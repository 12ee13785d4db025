"""Samples of exporters as hosts: the same numbers as the snapshots that they were made of, and
nothing that is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.clocks import takes_at_most
from support.fleet_samples import NOW_S, check_same, host_of, samples_of
from support.slice_feeds import slice_of_hosts
from support.snapshots import everything, machine, many, nothing

from tpusmi.fleet.fleet_figures import HostState
from tpusmi.fleet.hosts import host_parts, sample_targets
from tpusmi.fleet.hosts.from_samples import PROBLEMS_MOST, hosts_from, read_hosts
from tpusmi.fleet.hosts.sample_reads import READS
from tpusmi.fleet.samples import SeriesSample
from tpusmi.model import METRICS, ChipKey, Snapshot, Value


@pytest.mark.parametrize("snapshot", [everything, machine, nothing, lambda: many(8)])
def test_a_host_has_the_numbers_that_its_exporter_was_given(
    snapshot: Callable[[], Snapshot],
) -> None:
    s = snapshot()
    check_same(s, host_of(samples_of(s, instance="h:8781", job="tpusmi")))


MACHINE = machine()
SUBJECTS = [
    (subject, m)
    for subject, scope in (
        *((d.key, "device") for d in MACHINE.devices),
        *((ChipKey(c.index), "chip") for c in MACHINE.chips),
        *((p.key, "process") for p in MACHINE.processes),
    )
    for m in METRICS
    if m.scope == scope
]


@st.composite
def measured_machines(draw: Any) -> Snapshot:
    """The machine with any values: whole numbers for counts and bytes, shares up to 100 %."""
    values = {}
    for subject, m in draw(st.lists(st.sampled_from(SUBJECTS), max_size=60)):
        most = 100.0 if m.unit == "percent" else 1e12
        number = draw(st.integers(0, 1 << 50) if m.is_integer else st.floats(0, most))
        source = draw(st.sampled_from((*m.trust, "nominal")))
        values[subject, m.name] = Value(number, source, 0.1, draw(st.booleans()))
    return MACHINE._replace(values=values)


@settings(max_examples=60, deadline=None)
@given(measured_machines())
def test_any_numbers_come_back_in_the_units_of_the_model(s: Snapshot) -> None:
    check_same(s, host_of(samples_of(s, instance="h:1")))


def test_labels_that_prometheus_took_for_itself_are_those_of_the_exporter() -> None:
    """With `honor_labels: false` and target labels of the same names."""
    s = machine()
    own = [*samples_of(s)]
    renamed = [
        SeriesSample(
            x.name,
            {
                **{f"exported_{n}" if n in ("node", "host") else n: v
                   for n, v in x.labels.items()},
                **{"node": "gke-1", "host": "gke-1", "instance": "h:1"},
            },
            x.value,
        )
        for x in own
    ]  # fmt: skip
    check_same(s, host_of(renamed))


def test_memory_of_a_chip_that_two_devices_share_is_in_neither_of_them() -> None:
    labels = {"instance": "h:1", "host": "h"}
    used = SeriesSample("tpusmi_chip_hbm_used_bytes", {**labels, "chip": "0"}, 5.0)
    duty = SeriesSample("tpusmi_chip_duty_cycle_ratio", {**labels, "chip": "0"}, 0.5)
    devices = [
        SeriesSample("tpusmi_device_info", {**labels, "chip": "0", "device": str(n)}, 1)
        for n in (0, 1)
    ]
    for d in host_of([used, duty, *devices]).devices:
        assert (d.values, d.of_chip) == ({"duty_cycle_percent": 50.0}, {"hbm_used_bytes": 5})
    (alone,) = host_of([used, devices[0]]).devices
    assert (alone.values, alone.of_chip) == ({"hbm_used_bytes": 5}, {})


def test_held_chips_are_unknown_unless_they_are_known_of_each_chip() -> None:
    labels = {"instance": "h:1", "host": "h"}
    chips = [SeriesSample("tpusmi_chip_info", {**labels, "chip": str(n)}, 1) for n in (0, 1)]
    held = SeriesSample("tpusmi_chip_holders", {**labels, "chip": "0"}, 2)
    free = SeriesSample("tpusmi_chip_holders", {**labels, "chip": "1"}, 0)
    assert host_of([*chips, held]).held_chips is None
    assert host_of([*chips, held, free]).held_chips == 1


def test_processes_of_a_job_of_several_hosts_say_which_it_is() -> None:
    s = everything()
    of_slice = s._replace(slices=(slice_of_hosts(8, s.processes[0].key, s.at_s),))
    host = host_of(samples_of(of_slice, instance="h:1"))
    assert {p.pid: p.slice_job for p in host.processes} == {4321: "4d", 5000: None}
    check_same(s, host)


# -- age


def at(
    s: float | None, instance: str = "h:1", host: str = "h", **labels: str
) -> list[SeriesSample]:
    """A host whose numbers are of that time."""
    everywhere = {"instance": instance, "host": host, **labels}
    info = SeriesSample("tpusmi_build_info", everywhere, 1)
    chip = SeriesSample("tpusmi_chip_info", {**everywhere, "chip": "0"}, 1)
    time = [] if s is None else [SeriesSample("tpusmi_snapshot_timestamp_seconds", everywhere, s)]
    return [info, chip, *time]


@pytest.mark.parametrize(
    ("at_s", "state", "age_s", "reason"),
    [
        (NOW_S, HostState.LIVE, 0.0, ""),
        (NOW_S - 125, HostState.LIVE, 125.0, ""),  # one scrape a minute, of which one failed
        (NOW_S + 30, HostState.LIVE, 0.0, ""),
        (
            NOW_S - 3600,
            HostState.OLD,
            3600.0,
            "its numbers are 1h00m old, or its clock is that late",
        ),
        (NOW_S + 7200, HostState.OLD, None, "its clock is 2h00m ahead"),
        (None, HostState.OLD, None, "does not say of which time"),
        (math.nan, HostState.OLD, None, "does not say of which time"),
        (-5.0, HostState.OLD, None, "does not say of which time"),
    ],
)
def test_numbers_are_as_old_as_their_time_says(
    at_s: float | None, state: HostState, age_s: float | None, reason: str
) -> None:
    host = host_of(at(at_s))
    assert (host.state, host.age_s) == (state, age_s)
    assert reason in host.reason
    assert bool(host.reason) == bool(reason)


# -- one host for each machine


def boot(boot_id: str, up_s: float, instance: str, host: str = "h") -> list[SeriesSample]:
    everywhere = {"instance": instance, "host": host}
    return [
        SeriesSample("tpusmi_host_info", {**everywhere, "boot_id": boot_id}, 1),
        SeriesSample("tpusmi_host_uptime_seconds", everywhere, up_s),
    ]


def addresses(*samples: list[SeriesSample]) -> list[str | None]:
    """The addresses of the hosts, which are the same in any order of the samples."""
    flat = [x for some in samples for x in some]
    forward = [h.address for h in hosts_from(flat, NOW_S)]
    assert [h.address for h in hosts_from(flat[::-1], NOW_S)] == forward
    return forward


def test_two_prometheus_servers_that_scrape_one_exporter_count_once() -> None:
    s = machine()
    one, two = (
        samples_of(s, instance="h:1", replica="a"),
        samples_of(s, instance="h:1", replica="b"),
    )
    hosts, problems = read_hosts([*one, *two], NOW_S)
    assert (len(hosts), problems) == (1, ())
    check_same(s, hosts[0])


def test_of_two_servers_the_one_with_newer_numbers_counts() -> None:
    (host,) = hosts_from([*at(NOW_S - 900, replica="a"), *at(NOW_S, replica="b")], NOW_S)
    assert host.state == HostState.LIVE


def test_two_machines_with_one_name_are_two_hosts() -> None:
    one, two = at(NOW_S, "10.0.0.1:8781"), at(NOW_S, "10.0.0.2:8781")
    boots = boot("a", 900, "10.0.0.1:8781"), boot("b", 900, "10.0.0.2:8781")
    assert addresses(one, two) == ["10.0.0.1:8781", "10.0.0.2:8781"]
    assert addresses(one, two, *boots) == ["10.0.0.1:8781", "10.0.0.2:8781"]
    dead = at(NOW_S - 900, "10.0.0.2:8781")
    assert addresses(one, dead, boots[0], boot("b", 9, "10.0.0.2:8781")) == [
        "10.0.0.1:8781", "10.0.0.2:8781",
    ]  # fmt: skip


def test_two_exporters_of_one_machine_count_once_and_it_says_so() -> None:
    one, two = at(NOW_S, "h:8781"), at(NOW_S, "h:8782")
    samples = [*one, *two, *boot("a", 900, "h:8781"), *boot("a", 900, "h:8782")]
    hosts, problems = read_hosts(samples, NOW_S)
    assert [h.address for h in hosts] == ["h:8781"]
    assert problems == ("h is reported by h:8781 and h:8782: the numbers of the first are used",)


def test_an_exporter_that_came_back_under_another_address_is_there_once() -> None:
    dead, live = at(NOW_S - 900, "10.0.0.1:8781"), at(NOW_S, "10.0.0.2:8781")
    assert addresses(dead, live) == ["10.0.0.2:8781"]
    boots = boot("a", 5000, "10.0.0.1:8781"), boot("a", 5900, "10.0.0.2:8781")
    assert addresses(dead, live, *boots) == ["10.0.0.2:8781"]
    rebooted = boot("a", 5000, "10.0.0.1:8781"), boot("b", 60, "10.0.0.2:8781")
    assert addresses(dead, live, *rebooted) == ["10.0.0.2:8781"]


def test_a_host_or_slice_with_a_new_name_is_there_once() -> None:
    before, now = at(NOW_S - 600, host="old"), at(NOW_S, host="new")
    moved = at(NOW_S - 600, host="new", slice="a")
    boots = [
        *boot("a", 900, "h:1", "old"),
        *boot("a", 900, "h:1", "new"),
        SeriesSample(
            "tpusmi_host_info",
            {"instance": "h:1", "host": "new", "slice": "a", "boot_id": "a"},
            1,
        ),
    ]
    hosts = hosts_from([*before, *now, *moved, *boots], NOW_S)
    assert [(h.name, h.slice, h.state) for h in hosts] == [("new", None, HostState.LIVE)]


def test_another_machine_at_the_address_of_a_dead_one_does_not_take_its_place() -> None:
    before, now = at(NOW_S - 600, host="old"), at(NOW_S, host="new")
    boots = [*boot("a", 900, "h:1", "old"), *boot("b", 60, "h:1", "new")]
    assert [h.name for h in hosts_from([*before, *now, *boots], NOW_S)] == ["new", "old"]
    assert [h.name for h in hosts_from([*before, *now], NOW_S)] == ["new", "old"]


def test_a_dead_host_of_a_name_that_several_live_ones_have_stays() -> None:
    dead, *live = at(NOW_S - 900, "a:1"), at(NOW_S, "b:1"), at(NOW_S, "c:1")
    assert addresses(dead, *live) == ["b:1", "c:1", "a:1"]
    boots = [boot("abc"[n], 60, f"{'abc'[n]}:1") for n in range(3)]
    assert addresses(dead, *live, *boots) == ["b:1", "c:1", "a:1"]


def test_thousands_of_hosts_with_one_name_take_no_longer_than_others() -> None:
    samples = [
        x
        for n in range(4000)
        for x in (*at(NOW_S, f"h{n}:1", "localhost"), *boot(f"{n}", 900, f"h{n}:1", "localhost"))
    ]
    with takes_at_most(3.0):
        assert len(hosts_from(samples, NOW_S)) == 4000


def test_keys_are_of_name_slice_and_address_and_never_twice_the_same() -> None:
    samples = [
        *at(NOW_S, "10.0.0.1:8781", "a/b", slice="s"),
        *at(NOW_S, "10.0.0.1:8781", "a", slice="b/s"),
        *at(NOW_S, "10.0.0.1:8781", "a", cluster="x"),
        *at(NOW_S, "10.0.0.2:8781", "a", cluster="y"),
    ]
    keys = [h.key for h in hosts_from(samples, NOW_S)]
    assert len({*keys}) == 4
    assert "a%2Fb/s/10.0.0.1:8781" in keys


def test_the_same_address_in_two_clusters_is_two_machines() -> None:
    here = {"instance": "10.0.0.1:1", "host": "n", "cluster": "a"}
    there = {**here, "cluster": "b"}
    samples = [
        *[
            SeriesSample("tpusmi_host_info", {**x, "boot_id": x["cluster"]}, 1)
            for x in (here, there)
        ],
        *[SeriesSample("tpusmi_snapshot_timestamp_seconds", x, NOW_S) for x in (here, there)],
        *[SeriesSample("tpusmi_host_uptime_seconds", x, 9e5) for x in (here, there)],
    ]
    keys = [h.key for h in hosts_from(samples, NOW_S)]
    assert len({*keys}) == 2


# -- what comes from strangers


HOSTILE = 'x"\n}\x1b[2J‮\udcff ' + "y" * 1_000_000


def test_hostile_labels_are_cleaned_and_cut() -> None:
    s = machine()
    samples = [
        SeriesSample(x.name, {n: v if n in ("chip", "pid", "device") else HOSTILE
                        for n, v in x.labels.items()}, x.value)
        for x in samples_of(s, instance="h:1")
    ]  # fmt: skip
    hosts = hosts_from(samples, NOW_S)
    assert hosts
    for host in hosts:
        text = repr(host)
        assert len(text) < 100_000
        assert not [x for x in ("\\x1b", "\\u202e", "\\udcff") if x in text]
        assert len(host.key) < 4000


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -1.0, 1e300])
def test_numbers_that_cannot_be_are_unknown(number: float) -> None:
    samples = [
        SeriesSample(x.name, x.labels, number) for x in samples_of(machine(), instance="h:1")
    ]
    assert [(h.devices, h.processes, h.chips) for h in hosts_from(samples, NOW_S)] in (
        [],
        [((), (), None)],
    )


def test_more_than_all_of_a_chip_is_unknown_and_nothing_is_zero() -> None:
    labels = {"instance": "h:1", "host": "h", "chip": "0", "device": "0"}
    duty = [
        SeriesSample("tpusmi_duty_cycle_ratio", labels, 1.5),
        SeriesSample("tpusmi_tensorcore_utilization_ratio", labels, 0.0),
    ]
    (device,) = host_of(duty).devices
    assert device.values == {"tensorcore_utilization_percent": 0.0}


@pytest.mark.parametrize("pid", ["", "-1", "1e3", "９", "9" * 5000, "99999999999", "x"])
def test_a_pid_that_cannot_be_is_no_process(pid: str) -> None:
    labels = {"instance": "h:1", "host": "h", "pid": pid, "job_name": "x"}
    samples = [*at(NOW_S), SeriesSample("tpusmi_process_info", labels, 1)]
    assert host_of(samples).processes == ()


def test_samples_of_a_wrong_type_are_counted() -> None:
    labels = {"instance": "h:1", "host": "h", "chip": ["0"]}
    wrong = [
        SeriesSample("tpusmi_chip_info", labels, 1),  # type: ignore[arg-type]
        SeriesSample("tpusmi_chip_holders", {"instance": "h:1", "host": "h"}, "1"),  # type: ignore[arg-type]
    ]
    hosts, problems = read_hosts([*at(NOW_S), *wrong], NOW_S)
    assert len(hosts) == 1
    assert problems == ("2 samples of a wrong type are left out",)


def test_one_exporter_that_names_ever_more_hosts_leaves_room_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sample_targets, "SHARE", 10)
    many_hosts = (x for n in range(1000) for x in at(NOW_S, "bad:1", f"h{n}"))
    hosts, problems = read_hosts([*many_hosts, *at(NOW_S, "good:1", "good")], NOW_S)
    assert len(hosts) == 11
    assert "good" in {h.name for h in hosts}
    assert problems == ("hosts of 1 address are left out: there are too many of them",)


def test_one_exporter_with_many_hosts_leaves_room_for_the_labels_and_items_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def chips(instance: str, host: str) -> list[SeriesSample]:
        labels = {"instance": instance, "host": host, "kind": "y" * 1000}
        return [SeriesSample("tpusmi_chip_info", {**labels, "chip": str(n)}, 1) for n in range(4)]

    many = [x for n in range(100) for x in chips("bad:1", f"h{n}")]
    for name, most in (("TEXT_BYTES_MOST", 100_000), ("ITEMS_OF_ALL_MOST", 40)):
        with monkeypatch.context() as limited:
            limited.setattr(host_parts, name, most)
            hosts, problems = read_hosts([*many, *chips("good:1", "good")], NOW_S)
        assert next(h.chips for h in hosts if h.name == "good") == 4
        assert "are left out" in problems[0]


def test_items_have_a_limit_in_a_host_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def chips(host: str) -> list[SeriesSample]:
        labels = {"instance": f"{host}:1", "host": host}
        return [
            SeriesSample("tpusmi_chip_info", {**labels, "chip": str(n)}, 1) for n in range(5000)
        ]

    hosts, problems = read_hosts(chips("a"), NOW_S)
    assert hosts[0].chips == 256
    assert problems == ("4744 samples of too many chips, processes or notices are left out",)
    monkeypatch.setattr(host_parts, "SHARES", 1)
    monkeypatch.setattr(host_parts, "ITEMS_OF_ALL_MOST", 300)
    hosts, _ = read_hosts([*chips("a"), *chips("b")], NOW_S)
    assert sum(h.chips or 0 for h in hosts) == 300


def test_a_host_of_the_longest_labels_is_of_a_few_hundred_kilobytes() -> None:
    labels = {"instance": "h:1", "host": "h"}
    text = "y" * 10_000
    processes = (
        {"pid": str(n), "job_name": f"{n}{text}", "user": text, "command": text}
        for n in range(1000)
    )
    devices = (
        {"chip": "0", "device": f"{n}{text}", "kind": text, "platform": text, "job_name": text}
        for n in range(2000)
    )
    samples = [
        *[SeriesSample("tpusmi_process_info", {**labels, **x}, 1) for x in processes],
        *[SeriesSample("tpusmi_device_info", {**labels, **x}, 1) for x in devices],
    ]
    host = host_of(samples)
    texts = [x for item in (*host.devices, *host.processes) for x in item if isinstance(x, str)]
    assert sum(map(len, texts)) < 400_000


def test_the_labels_of_all_hosts_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_parts, "TEXT_BYTES_MOST", 100_000)
    samples = [x for n in range(9) for x in at(NOW_S, f"h{n}:1", f"h{n}")]
    long = {"instance": "h1:1", "host": "h1", "chip": "0"}
    more = [
        SeriesSample("tpusmi_chip_info", {**long, "kind": "y" * 200_000}, 1),
        SeriesSample("tpusmi_hbm_used_bytes", {**long, "device": "y" * 200_000}, 1),
        SeriesSample("tpusmi_hbm_used_bytes", {**long, "cluster": "y" * 200_000}, 1),
    ]
    hosts, problems = read_hosts([*more, *samples], NOW_S)
    assert [h.name for h in hosts] == [f"h{n}" for n in range(9)]
    assert problems == (
        "hosts of 1 address are left out: there are too many of them",
        "2 samples of too many chips, processes or notices are left out",
    )


def test_there_are_not_many_sentences() -> None:
    samples = [
        x
        for n in range(200)
        for i in ("a:1", "b:1")
        for x in (*at(NOW_S, i, f"h{n}"), *boot(f"{n}", 9, i, f"h{n}"))
    ]
    hosts, problems = read_hosts(samples, NOW_S)
    assert len(hosts) == 200
    assert len(problems) == PROBLEMS_MOST
    assert problems[-1] == "and 181 more problems of this kind"


LABELS = st.dictionaries(
    st.sampled_from(["chip", "device", "pid", "code", "host", "coords", "instance", "exported_pid"])
    | st.text(max_size=5),
    st.sampled_from(["0", "1", "cpu:0", ""]) | st.text(max_size=8),
    max_size=6,
)
SAMPLES = st.lists(
    st.builds(SeriesSample, st.sampled_from([*READS]), LABELS, st.floats() | st.integers(0, 3)),
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(SAMPLES)
def test_any_samples_are_hosts_whose_keys_differ(samples: list[SeriesSample]) -> None:
    hosts, problems = read_hosts(samples, NOW_S)
    assert len({h.key for h in hosts}) == len(hosts)
    assert problems == ()
    assert {h.key for h in read_hosts(samples[::-1], NOW_S).hosts} == {h.key for h in hosts}
    for h in hosts:
        assert h.name.isprintable()
        assert bool(h.reason) == (h.state != HostState.LIVE)
        for values in (x.values for x in (*h.devices, *h.processes)):
            assert all(0 <= v < math.inf for v in values.values())


def test_samples_of_other_programs_are_passed_over() -> None:
    assert hosts_from([SeriesSample("up", {"instance": "h:1"}, 1)], NOW_S) == ()
