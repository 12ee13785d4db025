"""The hosts of a simulated fleet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tpusmi.model.series_names import EXPORTER_PORT
from tpusmi.simulate.accelerator import SliceHost
from tpusmi.simulate.fleet_job import machine
from tpusmi.simulate.fleet_spec import FleetSlice


class FleetMember(NamedTuple):
    """A host of the fleet."""

    slice: FleetSlice
    worker: int

    @property
    def name(self) -> str:
        return f"{self.slice.name}-w{self.worker}" if self.slice.hosts > 1 else self.slice.name

    @property
    def address(self) -> str:
        return f"{self.name}:{EXPORTER_PORT}"

    @property
    def machine(self) -> SliceHost:
        return machine(self.slice.accelerator_type, self.worker)

    @property
    def is_down(self) -> bool:
        return self.slice.is_down(self.worker)

    @property
    def is_old(self) -> bool:
        return self.slice.is_old(self.worker)


def members(slices: Iterable[FleetSlice]) -> list[FleetMember]:
    """All hosts of these slices."""
    return [FleetMember(s, worker) for s in slices for worker in range(s.hosts)]
