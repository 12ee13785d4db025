"""What a fleet view reads of simulated exporters: their families as samples."""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.exporter.families import Families
from tpusmi.exporter.of_snapshot import add_snapshot
from tpusmi.fleet.samples import Sample
from tpusmi.model import Snapshot

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
) -> Iterator[Sample]:
    """The samples of that snapshot, with the labels that a server adds, such as `instance`."""
    for family in families_of(s, host=host, slice=slice, at_s=at_s).in_order():
        for own, value in family.samples.items():
            yield Sample(family.kind.name, {**labels, **dict(own)}, value)
