"""The past of a host in memory: means, the newest of them, and no more than there is room for."""

from __future__ import annotations

import time

import pytest
from support.fleet_hosts import device

from tpusmi.fleet.exporters.means_ring import LOOKS_LEAST, LOOKS_MOST, MeansRing, looks_kept

METRIC = "duty_cycle_percent"


def test_each_part_of_the_time_has_the_mean_of_its_looks() -> None:
    ring = MeansRing([METRIC, "idle_s"])
    for at_s, values in ((100.0, (10.0, 30.0)), (109.0, (40.0,)), (119.0, ())):
        ring.add(at_s, [device(0, **{METRIC: value}) for value in values], 60)
    (found,) = ring.history([METRIC, "idle_s", "unheard of"], 40.0, 4, 120.0).values()
    assert found.step_s == 10.0
    assert found.values == (None, 20.0, 40.0, None)
    # The last part ends now: the first value is that of the part that ended 30 s ago.
    assert found.first_s == pytest.approx(time.time() - 30.0, abs=5.0)


def test_looks_outside_of_the_span_do_not_count() -> None:
    ring = MeansRing([METRIC])
    ring.add(10.0, [device(0, **{METRIC: 1.0})], 60)
    assert ring.history([METRIC], 40.0, 4, 120.0) == {}
    assert ring.history([METRIC], 40.0, 4, 9.0) == {}


def test_old_looks_are_forgotten() -> None:
    ring = MeansRing([METRIC])
    for at_s in range(1000):
        ring.add(float(at_s), [device(0, **{METRIC: 1.0})], 60)
    (found,) = ring.history([METRIC], 1000.0, 1000, 999.0).values()
    assert 60 <= sum(value is not None for value in found.values) <= 75


def test_many_hosts_have_shorter_pasts() -> None:
    assert looks_kept(1, 7) == LOOKS_MOST
    assert looks_kept(0, 7) == LOOKS_MOST
    assert LOOKS_LEAST < looks_kept(4096, 7) < LOOKS_MOST
    assert looks_kept(10**9, 7) == LOOKS_LEAST
