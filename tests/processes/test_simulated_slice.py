"""The slice of a simulated host: all hosts of a larger accelerator type, and where they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.jobs import collector
from support.waits import until

from tpusmi.model import Host, Snapshot
from tpusmi.simulate.host import HostPlan, start


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with start(HostPlan("v5e-16", worker=2, agent=True, age_s=120.0)) as running:
        yield running


def test_a_simulated_host_of_a_slice_shows_the_others(host: Host) -> None:
    reader = collector(Path(host.segment_dir or ""))

    def look() -> Snapshot | None:
        s = reader.read_once()
        return s if s.slice is not None else None

    s = until(look)
    assert s.slice is not None
    assert [h.name for h in s.slice.hosts] == [f"simulated-w-{i}" for i in range(4)]
    assert s.slice.process_index == 2
    devices = [d for h in s.slice.hosts for d in h.devices]
    assert sorted(d.id for d in devices if d.id is not None) == [*range(16)]
    assert {d.coords for d in devices} == {(x, y, 0) for x in range(4) for y in range(4)}
    own = s.slice.hosts[2].devices
    assert [(d.id, d.coords) for d in own] == [(d.id, d.coords) for d in s.devices]
    assert not [w for w in s.warnings if w.code.startswith("slice_")]
