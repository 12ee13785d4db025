"""A simulated fleet, to try things on: its numbers are made up, and at one time always the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from tpusmi.exporter.catalog import KINDS
from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot, HostHistory, HostState
from tpusmi.fleet.fleet_series import SHOWN_SERIES
from tpusmi.fleet.fleet_source import FleetError
from tpusmi.fleet.hosts.from_samples import hosts_from
from tpusmi.fleet.simulated.simulated_samples import (
    SCRAPE_JOB,
    host_samples,
    samples,
)
from tpusmi.model import CHIP_METRICS, DEVICE_METRICS
from tpusmi.simulate.fleet_job import DIED_S, OLD_S, device_values, job_at, throttle_percent
from tpusmi.simulate.fleet_members import FleetMember, members
from tpusmi.simulate.fleet_spec import slices_of
from tpusmi.text import counted

SILENT = "slice_silent"
DOWN = "its exporter does not answer"


class SimulatedFleet:
    """A FleetSource. Raises FleetError for a wrong specification."""

    no_past = ""

    def __init__(self, spec: str, clock: Callable[[], float] = time.time) -> None:
        try:
            self._slices, self._clock = slices_of(spec), clock
        except ValueError as error:
            raise FleetError(str(error)) from None
        self._members = members(self._slices)
        self._by_address = {m.address: m for m in self._members}
        self._died_s = clock() - DIED_S
        """When those hosts died that are down: their last numbers stay the same."""
        self.label = f"{counted(len(self._members), 'simulated host')}"

    def snapshot(self, at_s: float | None = None) -> FleetSnapshot:
        """All hosts now, or at that time."""
        began_s, died_s = time.perf_counter(), self._died_s
        at_s = self._clock() if at_s is None else at_s
        living = hosts_from(
            samples(self._slices, at_s, frozenset(SHOWN_SERIES), with_dead=at_s < died_s), at_s
        )
        by_address = {h.address: h for h in living}
        hosts = [by_address.get(m.address) or self._host(m, at_s, died_s) for m in self._members]
        return FleetSnapshot(
            at_s=at_s,
            source=self.label,
            hosts=tuple(_with_silence(h, at_s - died_s) for h in hosts),
            problems=(),
            took_s=time.perf_counter() - began_s,
        )

    def details(self, host: FleetHost, at_s: float | None = None) -> FleetHost:
        """The host with all its metrics. Raises FleetError."""
        at_s = self._clock() if at_s is None else at_s
        one = self._host(self._member(host), at_s, self._died_s, frozenset(KINDS))
        return _with_silence(one, at_s - self._died_s)

    def _host(
        self,
        m: FleetMember,
        at_s: float,
        died_s: float,
        names: frozenset[str] = frozenset(SHOWN_SERIES),
    ) -> FleetHost:
        then_s = _newest_s(m, at_s, died_s)
        added = {"instance": m.address, "job": SCRAPE_JOB}
        one = hosts_from(host_samples(m, then_s, job_at(m.slice, then_s), names, added), at_s)[0]
        if not m.is_down or at_s < died_s:
            return one
        return one._replace(state=HostState.DOWN, reason=DOWN, age_s=at_s - then_s)

    def history(
        self,
        host: FleetHost,
        metrics: Sequence[str],
        span_s: float,
        points: int,
        at_s: float | None = None,
    ) -> Mapping[str, HostHistory]:
        """The past, computed from the same functions. Raises FleetError."""
        m, died_s = self._member(host), self._died_s
        now_s = self._clock() if at_s is None else at_s
        newest_s = _newest_s(m, now_s, died_s)
        names = [name for name in metrics if name in _OF_DEVICES]
        step_s = span_s / max(1, points - 1)
        times = [now_s - span_s + step_s * i for i in range(points)]
        rows = [_means(m, time_s) if time_s <= newest_s else {} for time_s in times]
        past = {name: tuple(row.get(name) for row in rows) for name in names}
        return {
            name: HostHistory(first_s=times[0], step_s=step_s, values=values)
            for name, values in past.items()
            if any(value is not None for value in values)
        }

    def close(self) -> None:
        """There is nothing to give back."""

    def _member(self, host: FleetHost) -> FleetMember:
        member = self._by_address.get(host.address or "")
        if member is None:
            raise FleetError(f"{host.name} is not a host of this fleet")
        return member


_OF_DEVICES = {m.name for m in (*DEVICE_METRICS, *CHIP_METRICS)}


def _newest_s(m: FleetMember, at_s: float, died_s: float) -> float:
    """When the newest numbers are from that the host has at that time."""
    if m.is_down:
        return min(at_s, died_s)
    return at_s - OLD_S if m.is_old else at_s


def _with_silence(host: FleetHost, silent_s: float) -> FleetHost:
    """The host with its notice about others of its slice as old as they are silent; without it
    where they still live.
    """
    notices = (
        n._replace(age_s=silent_s) if n.code == SILENT else n
        for n in host.notices
        if n.code != SILENT or silent_s >= 0
    )
    return host._replace(notices=tuple(notices))


def _means(m: FleetMember, at_s: float) -> dict[str, float]:
    """The means over its devices at that time."""
    job = job_at(m.slice, at_s)
    if job is None:
        return {}
    rows = [device_values(m.machine, d, job, False) for d in m.machine.devices]
    chips = range(m.machine.chips)
    throttled = fmean(throttle_percent(m.slice, m.worker, job, chip) for chip in chips)
    means = {name: fmean(row[name] or 0.0 for row in rows) for name in rows[0]}
    return {**means, "throttle_percent": throttled}
