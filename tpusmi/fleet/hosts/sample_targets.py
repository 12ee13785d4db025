"""Many samples sorted by the exporter that they come from, as Prometheus or a reader labels it.

Prometheus adds labels to those of an exporter (`instance`, `job`, `cluster`, `replica`), and calls
a label of the exporter `exported_X` where it has one of that name itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from tpusmi.exporter.catalog import KINDS
from tpusmi.fleet.hosts.host_parts import SHARES, HostParts, Room, RoomOfInstance
from tpusmi.fleet.hosts.sample_reads import READS
from tpusmi.fleet.samples import SeriesSample

HOSTS_MOST = 16_384
SHARE = HOSTS_MOST // SHARES
"""How many of them one instance can be: a server that has gathered others, and not one exporter
that gives itself a new name in each line.
"""
SHAPES_MOST = 4096
LABELS_MOST = 64
"""Labels of a sample that are looked at."""
EXPORTED = "exported_"
_OWN = frozenset(label for kind in KINDS.values() for label in kind.labels)
"""Labels that say what a sample is about, and so are not of the exporter as a whole."""
_NAME = "__name__"


class ScrapedExporter(NamedTuple):
    """One exporter, as one server sees it."""

    labels: Mapping[str, str]
    """The labels that all its samples have."""
    parts: HostParts


class _Shape(NamedTuple):
    """Which of a sample's labels are of its exporter, by the names of its labels alone."""

    names: tuple[str, ...]
    values: Any
    """Gets their values."""
    renamed: tuple[tuple[str, str], ...]
    """What Prometheus calls labels of the exporter, and their own names."""


class Targets:
    """Takes in samples, and has the exporters that said them."""

    def __init__(self) -> None:
        self.room = Room()
        self.hosts_left_out: set[str] = set()
        """Instances of hosts that had no room."""
        self.unreadable = 0
        """Samples of the wrong type."""
        self._by_labels: dict[Any, ScrapedExporter] = {}
        self._rooms: dict[str, RoomOfInstance] = {}
        """By instance, those of targets."""
        self._shapes: dict[tuple[str, ...], _Shape] = {}

    def add_all(self, samples: Iterable[SeriesSample]) -> None:
        """Take in the samples of an exporter's series; all others are passed over."""
        for name, labels, value in samples:
            read = READS.get(name)
            if read is None:
                continue
            try:
                shape = self._shape(tuple(labels))
                target = self._target(shape, labels)
                if target is not None:
                    own = _renamed(shape, labels) if shape.renamed else labels
                    target.parts.add(read, own, value)
            except TypeError:  # no text, no number
                self.unreadable += 1

    def targets(self) -> list[ScrapedExporter]:
        """All exporters, by their labels."""
        return sorted(self._by_labels.values(), key=lambda t: sorted(t.labels.items()))

    def _target(self, shape: _Shape, labels: Mapping[str, str]) -> ScrapedExporter | None:
        key = shape.names, shape.values(labels)
        target = self._by_labels.get(key)
        if target is None:
            instance = labels.get("instance", "")
            room = self._rooms.get(instance) or RoomOfInstance(self.room)
            is_full = len(self._by_labels) >= HOSTS_MOST or room.hosts >= SHARE
            if is_full or not room.takes(labels[name] for name in shape.names):
                if len(self.hosts_left_out) < HOSTS_MOST:
                    self.hosts_left_out.add(instance)
                return None
            room.hosts += 1
            self._rooms[instance] = room
            own = {name: labels[name] for name in shape.names}
            target = self._by_labels[key] = ScrapedExporter(labels=own, parts=HostParts(room))
        return target

    def _shape(self, names: tuple[str, ...]) -> _Shape:
        shape = self._shapes.get(names)
        if shape is None:
            shape = _shape(names)
            if len(self._shapes) < SHAPES_MOST:
                self._shapes[names] = shape
        return shape


def _shape(names: tuple[str, ...]) -> _Shape:
    names = names[:LABELS_MOST]
    of_all = sorted(n for n in names if n != _NAME and n.removeprefix(EXPORTED) not in _OWN)
    renamed = (n for n in names if n.startswith(EXPORTED) and n.removeprefix(EXPORTED) in _OWN)
    return _Shape(
        names=tuple(of_all),
        values=itemgetter(*of_all) if of_all else lambda labels: (),
        renamed=tuple((name, name.removeprefix(EXPORTED)) for name in renamed),
    )


def _renamed(shape: _Shape, labels: Mapping[str, str]) -> Mapping[str, str]:
    return {**labels, **{own: labels[name] for name, own in shape.renamed}}
