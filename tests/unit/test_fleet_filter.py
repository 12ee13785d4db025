"""Filters of a fleet: which hosts match, what is left of them, and what is wrong with a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fleet_hosts import device, fleet, host, notice, process

from tpusmi.fleet.fleet_figures import FleetSnapshot, HostState
from tpusmi.fleet.groups.fleet_filter import UNITS, filtered, problem
from tpusmi.fleet.groups.fleet_groups import groups

MXU = "tensorcore_utilization_percent"
FULL = {"hbm_used_bytes": 96.0, "hbm_limit_bytes": 100.0}
FLEET = fleet(
    host(
        "w-0",
        slice="v5e-a",
        devices=[device(0, pid=7, **{MXU: 20.0}), device(1, pid=8, **FULL, **{MXU: 80.0})],
        processes=[
            process(7, "train.py", **{"step_time_s.mean": 0.5}),
            process(8, "serve.py", user="bob", verdict="stale"),
        ],
        notices=[notice("throttled", chip=0), notice("unused", pid=8)],
    ),
    host(
        "w-1",
        slice="v5e-b",
        devices=[device(0, pid=9, idle_s=4000.0)],
        processes=[process(9, "train.py", user="Bob")],
    ),
    host("w-2", slice="v5e-b", state=HostState.OLD, age_s=900.0, devices=[device(0, **{MXU: 1.0})]),
    host("x-3", state=HostState.DOWN, chips=None, age_s=None),
)


def matching(text: str, s: FleetSnapshot = FLEET) -> str:
    """The names of the hosts that match."""
    return " ".join(h.name for h in filtered(s, text).hosts)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", "w-0 w-1 w-2 x-3"),
        ("host=W", "w-0 w-1 w-2"),
        ("host=w-1:87", "w-1"),
        ("slice=v5e-b", "w-1 w-2"),
        ("slice=v5e !slice=v5e-b", "w-0"),
        ("job=train", "w-0 w-1"),
        ("job=train user=bob", "w-1"),
        ("user=bob", "w-0 w-1"),
        ("user=bo !job=serve", "w-1"),
        ("!user=ann", "w-0 w-1 w-2 x-3"),
        ("!user=bob", "w-0 w-2 x-3"),
        ("down", "x-3"),
        ("!down !old", "w-0 w-1"),
        ("state=o", "w-2"),
        ("stale", "w-0"),
        ("mxu<30", "w-0"),
        ("!mxu<30", "w-1 w-2 x-3"),
        ("mxu>=80%", "w-0"),
        ("hbm>95", "w-0"),
        ("idle>1h", "w-1"),
        ("step>400ms", "w-0"),
        ("age>10m", "w-2"),
        ("chips>=2", "w-0"),
        ("problems>1", "w-0"),
        ("throttled", "w-0"),
        ("~^w-[12]", "w-1 w-2"),
        ("!", "w-0 w-1 w-2 x-3"),
        ("!job=", "w-0 w-1 w-2 x-3"),
        ("mxu<", "w-0 w-1 w-2 x-3"),
        ("nonsense", ""),
    ],
)
def test_a_filter_leaves_the_hosts_that_match_each_word(text: str, names: str) -> None:
    assert matching(text) == names


def test_a_job_leaves_out_what_is_of_others() -> None:
    (left, _) = filtered(FLEET, "job=train").hosts
    assert [d.name for d in left.devices] == ["0"]
    assert [p.job for p in left.processes] == ["train.py"]
    assert [n.code for n in left.notices] == ["throttled"]
    assert (left.chips, left.held_chips) == (1, None)
    assert [g.name for g in groups(filtered(FLEET, "job=train !user=bob"), "job")] == ["train.py"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("mxu<30 user=ann", ""),
        ("mxu<", "mxu< needs a number"),
        ("mux<3", "no column mux; did you mean mxu?"),
        ("rss>3", "no column rss"),
        ("~a(b", "~a(b: "),
    ],
)
def test_a_word_that_is_not_right_is_explained(text: str, what: str) -> None:
    assert what in problem(text)
    assert bool(problem(text)) == bool(what)


@pytest.mark.parametrize("name", UNITS)
def test_each_column_can_be_compared(name: str) -> None:
    assert problem(f"{name}>0") == ""
    filtered(FLEET, f"{name}>0")


def test_only_what_a_snapshot_of_a_fleet_has_can_be_compared() -> None:
    """A filter of what is never read would match nothing, and look as if that were true."""
    assert {*UNITS} == {
        "hbm", "mxu", "duty", "bw", "idle", "throttle", "used", "limit", "step", "steps", "mfu",
        "age", "chips", "problems",
    }  # fmt: skip
    assert "no column p95" in problem("p95>1s")


@given(st.text(max_size=40))
def test_any_text_is_a_filter(text: str) -> None:
    assert {h.name for h in filtered(FLEET, text).hosts} <= {h.name for h in FLEET.hosts}
    problem(text)
