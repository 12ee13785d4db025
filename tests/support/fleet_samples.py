"""What a fleet view reads of simulated exporters: their families as samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from tpusmi.chips import usual_kind
from tpusmi.exporter.families import NOT_MEASURED, Families
from tpusmi.exporter.of_processes import is_exported
from tpusmi.exporter.of_snapshot import add_snapshot, device_labels
from tpusmi.fleet.fleet_figures import FleetHost, HostState
from tpusmi.fleet.hosts.from_samples import hosts_from
from tpusmi.fleet.samples import SeriesSample
from tpusmi.model import (
    CHIP_METRICS,
    DEVICE_METRICS,
    PROCESS_METRICS,
    ChipKey,
    Metric,
    Snapshot,
    Subject,
)
from tpusmi.model.jsonobject import rounded

NOW_S = 1_800_000_000.0


def families_of(s: Snapshot, *, host: str = "", slice: str = "", at_s: float = NOW_S) -> Families:
    """What an exporter has of that snapshot."""
    everywhere = {
        "host": host or s.host.name,
        "slice": slice,
        "simulated": "true" if s.simulated else None,
    }
    f = Families(everywhere)
    f.add_info("build", version="1", python_version="3")
    add_snapshot(f, s, True)
    f.add("snapshot_timestamp_seconds", at_s)
    return f


def samples_of(
    s: Snapshot, *, host: str = "", slice: str = "", at_s: float = NOW_S, **labels: str
) -> Iterator[SeriesSample]:
    """The samples of that snapshot, with the labels that a server adds, such as `instance`."""
    for family in families_of(s, host=host, slice=slice, at_s=at_s).in_order():
        for own, value in family.samples.items():
            yield SeriesSample(family.kind.name, {**labels, **dict(own)}, value)


def host_of(samples: Iterable[SeriesSample], now_s: float = NOW_S) -> FleetHost:
    """The one host that these samples are of."""
    (host,) = hosts_from(samples, now_s)
    return host


def measured(s: Snapshot, subject: Subject, metrics: Iterable[Metric]) -> dict[str, float]:
    """The values that an exporter exports of that subject, in the units of the model."""
    return {
        m.name: rounded(v.value) or 0.0
        for m in metrics
        if (v := s.values.get((subject, m.name))) is not None
        and not v.stale
        and v.source not in NOT_MEASURED
    }


def check_same(s: Snapshot, host: FleetHost) -> None:
    """That the host has all that the exporter exports of the snapshot, and nothing else."""
    assert (host.name, host.simulated) == (s.host.name, s.simulated)
    assert (host.state, host.reason, host.age_s) == (HostState.LIVE, "", 0.0)
    assert host.chips == (len(s.chips) or len({d.chip for d in s.devices} - {None}) or None)
    devices = {(d.chip, d.name): d for d in host.devices}
    assert len(devices) == len(s.devices)
    for d in s.devices:
        labels = device_labels(d)
        read = devices[d.chip, str(labels["device"])]
        assert read.kind == (d.kind and usual_kind(d.kind))
        assert (read.coords, read.core_on_chip) == (d.coords, d.core_on_chip)
        assert read.pid == (d.owners[0].pid if d.owners else None)
        own = measured(s, d.key, DEVICE_METRICS)
        chip = {} if d.chip is None else measured(s, ChipKey(d.chip), CHIP_METRICS)
        assert not read.of_chip.keys() & read.values.keys()
        assert {**chip, **own} == pytest.approx({**read.of_chip, **read.values})
        assert {n: v for n, v in read.values.items() if n in own} == pytest.approx(own)
    processes = {p.pid: p for p in host.processes}
    living = [p for p in s.processes if is_exported(p)]
    assert {*processes} == {p.pid for p in living}
    for p in living:
        got = processes[p.pid]
        assert (got.user, got.phase, got.state, got.verdict) == (
            p.user, p.phase, p.state, p.verdict,
        )  # fmt: skip
        assert got.process_count == p.facts.get("process_count")
        assert got.values == pytest.approx(measured(s, p.key, PROCESS_METRICS))
    assert sum(n.problems for n in host.notices) == len(s.warnings)
    assert {*host.links} == {*s.links}
