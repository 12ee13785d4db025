"""Groups of a fleet: totals that say of how many they know, stragglers, the worst, orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fleet_hosts import device, fleet, host, notice, process

from tpusmi.fleet.fleet_figures import FleetHost, FleetNotice, HostState
from tpusmi.fleet.groups.fleet_filter import filtered
from tpusmi.fleet.groups.fleet_groups import MEMORY_PERCENT, FleetGroup, groups, whole
from tpusmi.fleet.groups.fleet_orders import ORDERS, in_order
from tpusmi.fleet.groups.group_members import GROUPINGS
from tpusmi.fleet.groups.totals import Total
from tpusmi.fleet.report.group_states import hosts_text, state_text
from tpusmi.tui.fleet.fleet_rows import rows_of

GIB = 1 << 30
MXU = "tensorcore_utilization_percent"


def by(hosts: Sequence[FleetHost], grouping: str) -> Mapping[str, FleetGroup]:
    """The groups by their names."""
    return {g.name: g for g in groups(fleet(*hosts), grouping)}


def test_a_job_spans_its_hosts_and_has_only_its_devices() -> None:
    hosts = [
        host(
            f"h{n}",
            devices=[device(0, pid=7, **{MXU: 40.0 + n}), device(1, pid=8, **{MXU: 90.0})],
            processes=[process(7, "train.py"), process(8, "serve.py", user="bob")],
        )
        for n in range(3)
    ]
    jobs = by(hosts, "job")
    assert {*jobs} == {"train.py", "serve.py"}
    train = jobs["train.py"]
    assert (train.hosts, train.processes, train.users) == (3, 3, ("ann",))
    assert train.means[MXU] == Total(value=41.0, known=3, of=3)
    assert train.chips.value == 3


def test_jobs_of_one_name_on_two_slices_or_of_two_users_are_two_jobs() -> None:
    hosts = [
        host("a", slice="s1", devices=[device(0, pid=7)], processes=[process(7)]),
        host("b", slice="s2", devices=[device(0, pid=7)], processes=[process(7)]),
        host("c", slice="s2", devices=[device(0, pid=7)], processes=[process(7, user="bob")]),
    ]
    found = groups(fleet(*hosts), "job")
    assert [(g.name, g.detail) for g in found] == [
        ("train.py", "ann s1"), ("train.py", "ann s2"), ("train.py", "bob s2"),
    ]  # fmt: skip
    assert len({g.key for g in found}) == 3


def test_rows_without_a_job_come_last_and_a_job_called_so_does_not() -> None:
    hosts = [
        host("a", devices=[device(0, pid=None)]),
        host("b", devices=[device(0, pid=7)], processes=[process(7, "no way.py")]),
        host("c", devices=[device(0, pid=7)], processes=[process(7, "zoo.py")]),
    ]
    rows = rows_of(fleet(*hosts), "job")
    assert [row.group.name for row in rows] == ["no way.py", "zoo.py", "no job"]


def test_a_job_that_says_which_it_is_needs_no_slice_label() -> None:
    hosts = [
        host(f"h{n}", devices=[device(0, pid=7)], processes=[process(7, slice_job=f"j{n // 2}")])
        for n in range(4)
    ]
    assert [g.hosts for g in groups(fleet(*hosts), "job")] == [2, 2]


def test_a_job_on_several_slices_is_one_job_if_it_says_so() -> None:
    hosts = [
        host(
            f"h{n}",
            slice=f"s{n}",
            devices=[device(0, pid=7)],
            processes=[process(7, slice_job="4d")],
        )
        for n in range(3)
    ]
    assert [(g.detail, g.hosts) for g in groups(fleet(*hosts), "job")] == [("ann 3 slices", 3)]
    assert [g.detail for g in groups(fleet(hosts[0]), "job")] == ["ann s0"]


def test_a_host_whose_agent_does_not_read_the_others_is_of_the_job_of_its_slice() -> None:
    def one(n: int, slice_job: str | None) -> FleetHost:
        p = process(7, slice_job=slice_job, process_count=3)
        return host(f"h{n}", slice="s", devices=[device(0, pid=7)], processes=[p])

    hosts = [one(0, "4d"), one(1, "4d"), one(2, None)]
    assert [g.hosts for g in groups(fleet(*hosts), "job")] == [3]
    assert sorted(g.hosts for g in groups(fleet(*hosts, one(3, "5e")), "job")) == [1, 1, 2]


def test_hosts_without_a_label_are_of_the_slice_that_their_job_knows() -> None:
    def one(n: int, slice_job: str | None) -> FleetHost:
        return host(
            f"h{n}", devices=[device(0, pid=7)], processes=[process(7, slice_job=slice_job)]
        )

    found = groups(fleet(one(0, "4d"), one(1, "4d"), one(2, None)), "slice")
    assert [(g.name, g.hosts) for g in found] == [("hosts of train.py", 2), ("no slice", 1)]


def test_without_processes_jobs_have_the_names_that_devices_say() -> None:
    hosts = [host("a", devices=[device(0, pid=7, job="train.py"), device(1)])]
    jobs = by(hosts, "job")
    assert {*jobs} == {"train.py", "no job"}
    assert (jobs["train.py"].processes, jobs["train.py"].chips.value) == (0, 1)


def test_a_sum_of_some_says_so_and_unknown_is_not_zero() -> None:
    hosts = [
        host("a", slice="s", devices=[device(0, hbm_used_bytes=GIB, hbm_limit_bytes=2 * GIB)]),
        host("b", slice="s", devices=[device(0)]),
    ]
    group = by(hosts, "slice")["s"]
    assert group.hbm_used_bytes == Total(value=GIB, known=1, of=2)
    assert group.hbm_used_bytes.of_some
    assert group.means[MEMORY_PERCENT] == Total(value=50.0, known=1, of=2)
    assert group.means[MXU] == Total(value=None, known=0, of=2)
    assert not group.means[MXU].of_some


@pytest.mark.parametrize("state", [HostState.OLD, HostState.DOWN, HostState.PENDING])
def test_numbers_of_hosts_that_are_not_live_do_not_count(state: HostState) -> None:
    live = host("a", slice="s", devices=[device(0, pid=1, **{MXU: 50.0})])
    other = host("b", slice="s", state=state, devices=[device(0, pid=1, **{MXU: 2.0})])
    group = by([live, other], "slice")["s"]
    assert group.means[MXU] == Total(value=50.0, known=1, of=2)
    assert group.states == {HostState.LIVE: 1, state: 1}
    assert group.held_chips == Total(value=1, known=1, of=2)
    assert group.chips == Total(value=2, known=2, of=2)


def test_memory_that_devices_of_a_chip_share_counts_once() -> None:
    shared = {"hbm_used_bytes": 4.0 * GIB, "hbm_limit_bytes": 8.0 * GIB}
    two = [device(0, name=str(n), of_chip=shared) for n in (0, 1)]
    group = by([host("a", devices=two)], "host")["a"]
    assert group.hbm_used_bytes == Total(value=4 * GIB, known=1, of=1)
    assert group.fullest_percent == 50.0


def test_idle_chips_that_a_process_holds_are_counted_of_those_that_are_known() -> None:
    devices = [
        device(0, holders=1, idle_s=3600.0),
        device(1, holders=1, idle_s=0.0),
        device(2, holders=0, idle_s=3600.0),
        device(3, holders=1),
        device(4, idle_s=3600.0),
        device(5, name="5", pid=7, idle_s=3600.0),
        device(5, name="6", pid=7, idle_s=1.0),
    ]
    group = by([host("a", devices=devices, chips=6)], "host")["a"]
    assert group.held_chips == Total(value=4, known=5, of=6)
    assert group.idle_held_chips == Total(value=1, known=3, of=5)  # chip 4 may be held


@pytest.mark.parametrize("state", [HostState.OLD, HostState.DOWN, HostState.PENDING])
def test_with_a_host_of_which_no_device_is_known_each_sum_is_one_of_some(state: HostState) -> None:
    used = {"hbm_used_bytes": GIB, "hbm_limit_bytes": 2 * GIB}
    live = host("a", devices=[device(0, pid=1, idle_s=0.0, **{MXU: 50.0}, **used)])
    group = by([live, host("b", state=state, chips=None)], "slice")["no slice"]
    for total in (group.chips, group.held_chips, group.idle_held_chips, group.hbm_used_bytes,
                  group.hbm_limit_bytes, *group.means.values()):  # fmt: skip
        assert total.of_some or total.value is None
    assert group.idle_held_chips == Total(value=0, known=1, of=2)
    alone = by([host("b", state=state, chips=None)], "host")["b"]
    assert (alone.held_chips.value, alone.idle_held_chips.value) == (None, None)


def test_devices_of_the_cpu_are_in_no_total() -> None:
    cpu = device(None, name="cpu:0", platform="cpu", pid=7, hbm_used_bytes=1.0)
    group = by([host("a", devices=[cpu], processes=[process(7)], chips=None)], "job")["train.py"]
    assert (group.hbm_used_bytes.of, group.held_chips.of, group.chips.value) == (0, 0, 0)


def test_a_straggler_is_slower_than_its_job_and_of_at_least_three() -> None:
    def hosts(*times: float) -> list[FleetHost]:
        return [
            host(
                f"h{n}",
                slice="s",
                devices=[device(0, pid=7)],
                processes=[process(7, **{"step_time_s.mean": s})],
            )
            for n, s in enumerate(times)
        ]

    group = by(hosts(1.0, 1.0, 1.5, 1.01), "slice")["s"]
    assert [(x.name, x.step_time_s, x.usual_s) for x in group.stragglers] == [("h2", 1.5, 1.005)]
    assert (group.step_time_s, group.slowest_step_s) == (1.005, 1.5)
    assert by(hosts(1.0, 1.5), "slice")["s"].stragglers == ()
    per_host = by(hosts(1.0, 1.0, 1.5, 1.01), "host")
    assert [name for name, g in per_host.items() if g.stragglers] == ["h2"]


def test_notices_are_those_of_the_group_and_the_most_frequent_is_first() -> None:
    a = host(
        "a",
        devices=[device(0, pid=7), device(1, pid=8)],
        processes=[process(7), process(8, "other.py")],
        notices=[
            notice("throttled", chip=0),
            notice("unused", pid=8, problems=3),
            notice("lock_file"),
        ],
    )
    assert by([a], "job")["train.py"].notices == {"throttled": 1}
    assert [*by([a], "host")["a"].notices.items()] == [
        ("unused", 3), ("lock_file", 1), ("throttled", 1),
    ]  # fmt: skip


def test_a_host_of_which_nothing_is_known_is_in_one_group_of_each_grouping() -> None:
    down = host("a", state=HostState.DOWN, chips=None)
    for grouping in GROUPINGS:
        (group,) = groups(fleet(down), grouping)
        assert (group.hosts, group.in_state(HostState.DOWN)) == (1, 1)
        assert group.chips.value in (None, 0)


def test_chips_of_a_host_of_which_no_device_is_known_are_not_0() -> None:
    jobs = by(
        [host("a", chips=4), host("b", chips=4, processes=[process(7, verdict="stale")])], "job"
    )
    assert jobs["no job"].chips == Total(value=4, known=1, of=1)
    assert jobs["train.py"].chips == Total(value=None, known=0, of=1)


# -- orders


def names(hosts: Sequence[FleetHost], order: str) -> list[str]:
    return [g.name for g in in_order(groups(fleet(*hosts), "host"), order)]


def test_hosts_that_are_as_good_as_each_other_keep_their_places() -> None:
    def hosts(*used: float) -> list[FleetHost]:
        full = {"hbm_limit_bytes": 100.0}
        return [
            host(name, devices=[device(0, hbm_used_bytes=memory, **{MXU: memory - 20.0}, **full)])
            for name, memory in zip("abc", used, strict=True)
        ]

    assert names(hosts(74.1, 73.9, 74.5), "worst") == ["a", "b", "c"]
    assert names(hosts(73.2, 74.8, 74.1), "worst") == ["a", "b", "c"]
    assert names(hosts(73.2, 96.0, 91.0), "worst") == ["b", "c", "a"]


def test_worst_first() -> None:
    full = {"hbm_used_bytes": 99.0, "hbm_limit_bytes": 100.0}
    hosts = [
        host("fine", devices=[device(0, pid=1, **{MXU: 60.0})]),
        host("slack", devices=[device(0, pid=1, **{MXU: 10.0})]),
        host("full", devices=[device(0, pid=1, **full)]),
        host("idle", devices=[device(0, pid=1, idle_s=9000.0)]),
        host("warned", notices=[notice("throttled")]),
        host("old", state=HostState.OLD),
        host("down", state=HostState.DOWN),
        host("silent"),
    ]
    assert names(hosts, "worst") == [
        "down", "old", "warned", "idle", "full", "slack", "fine", "silent",
    ]  # fmt: skip


def test_the_order_by_step_time_is_that_of_the_times_that_are_shown() -> None:
    def one(name: str, *times: float) -> FleetHost:
        steps = [process(n, **{"step_time_s.mean": s}) for n, s in enumerate(times)]
        return host(name, processes=steps)

    assert names([one("a", 1.0, 1.0, 9.0), one("b", 2.0), one("c", 0.5)], "step") == ["b", "a", "c"]


def test_unknown_is_last_whether_the_largest_or_the_smallest_is_first() -> None:
    hosts = [
        host("a", devices=[device(0)]),
        host("b", devices=[device(0, hbm_used_bytes=1.0, hbm_limit_bytes=9.0, **{MXU: 9.0})]),
        host("c", devices=[device(0, hbm_used_bytes=5.0, hbm_limit_bytes=9.0, **{MXU: 50.0})]),
    ]
    assert names(hosts, "mxu") == ["b", "c", "a"]
    assert names(hosts, "memory") == ["c", "b", "a"]
    assert names(hosts, "name") == ["a", "b", "c"]


PERCENTS = st.none() | st.floats(0, 100)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(PERCENTS, st.integers(0, 2), st.sampled_from(HostState)), max_size=6),
    st.sampled_from([*ORDERS]),
)
def test_each_order_has_each_group_once_whatever_is_unknown(
    figures: list[tuple[float | None, int, HostState]], order: str
) -> None:
    hosts = [
        host(
            f"h{n}",
            state=state,
            slice=f"s{slice}",
            devices=[device(0, pid=7, **({} if percent is None else {MXU: percent}))],
            processes=[process(7)],
        )
        for n, (percent, slice, state) in enumerate(figures)
    ]
    s = fleet(*hosts)
    for grouping in GROUPINGS:
        made = groups(s, grouping)
        assert sorted(in_order(made, order), key=repr) == sorted(made, key=repr)
        assert sum(g.hosts for g in made) == len(hosts)
    live = [p for p, _, state in figures if p is not None and state == HostState.LIVE]
    assert whole(s).means[MXU].known == len(live)
    assert whole(s).means[MXU].value == (pytest.approx(sum(live) / len(live)) if live else None)


def about_slice(n: int, code: str, **more: Any) -> FleetHost:
    said = FleetNotice(code=code, chip=None, device=None, pid=7, problems=1, age_s=60.0)
    p = process(7, **{"step_time_s.mean": 2.0 if n == 2 else 1.0})
    return host(f"h{n}", devices=[device(0, pid=7)], processes=[p], notices=[said], **more)


@pytest.mark.parametrize("kind", ["job", "slice", "host"])
def test_a_notice_about_a_slice_counts_once_and_is_that_of_the_straggler(kind: str) -> None:
    hosts = [about_slice(n, "slice_straggler", slice="s") for n in range(4)]
    assert whole(fleet(*hosts)).problems == 1
    found = groups(fleet(*hosts), kind)
    assert sum(g.problems for g in found) == 1
    have = [m.host.name for g in found for m in g.members if m.notices]
    assert have == ["h2"]


def test_a_notice_about_a_slice_is_kept_by_a_live_host() -> None:
    down = about_slice(0, "slice_silent", slice="s", state=HostState.DOWN)
    found = groups(fleet(down, about_slice(1, "slice_silent", slice="s")), "host")
    assert {g.name: g.problems for g in found} == {"h0": 0, "h1": 1}


def test_notices_about_two_slices_are_two() -> None:
    hosts = [about_slice(n, "slice_silent", slice=f"s{n % 2}") for n in range(4)]
    assert whole(fleet(*hosts)).problems == 2
    strangers = [about_slice(n, "slice_silent") for n in range(2)]
    assert whole(fleet(*strangers)).problems == 2


def of_slice(count: int, of: int, **given: Any) -> list[FleetHost]:
    """The first hosts of a job of so many processes, one on each."""
    return [
        host(
            f"h{n}",
            devices=[device(0, pid=7)],
            processes=[
                process(7, process_index=n, process_count=of, **{"slice_job": "ab", **given})
            ],
        )
        for n in range(count)
    ]


def test_hosts_without_an_exporter_are_not_down_but_unreported() -> None:
    job = by(of_slice(15, 16), "job")["train.py"]
    assert (job.hosts, job.unreported_hosts, job.in_state(HostState.DOWN)) == (15, 1, 0)
    assert (hosts_text(job), state_text(job)) == ("15/16", "live, 1 unreported")
    job = by(of_slice(1, 16), "job")["train.py"]
    assert (hosts_text(job), state_text(job)) == ("1/16", "live, 15 unreported")
    job = by(of_slice(16, 16), "job")["train.py"]
    assert (job.unreported_hosts, hosts_text(job), state_text(job)) == (0, "16/16", "live")
    assert by(of_slice(15, 16), "slice")["hosts of train.py"].unreported_hosts is None


def test_hosts_with_several_processes_each_are_counted_once() -> None:
    made = of_slice(12, 16)
    hosts = [
        made[n]._replace(processes=tuple(p for h in made[n : n + 4] for p in h.processes))
        for n in (0, 4, 8)
    ]
    assert by(hosts, "job")["train.py"].unreported_hosts == 1


def test_a_filter_makes_no_host_unreported() -> None:
    s = fleet(*of_slice(15, 16))
    (job,) = groups(filtered(s, "host=h1"), "job")
    assert (job.hosts, job.unreported_hosts) == (6, 1)
    (job,) = groups(filtered(filtered(s, "host=h1"), "h12"), "job")
    assert (job.hosts, job.unreported_hosts) == (1, 1)


@pytest.mark.parametrize(
    "hosts",
    [
        of_slice(2, 16, slice_job=None),
        [*of_slice(2, 16), *of_slice(1, 16, slice_job=None)],
        [*of_slice(2, 16), *of_slice(2, 8)],
        of_slice(2, 10**12),
        of_slice(2, 0),
    ],
)
def test_where_the_size_of_a_job_is_unsure_its_unreported_hosts_are_unknown(
    hosts: list[FleetHost],
) -> None:
    assert {g.unreported_hosts for g in groups(fleet(*hosts), "job")} == {None}
