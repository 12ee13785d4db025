"""What the exporters of a simulated fleet would answer: their series, names and labels. Pure."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from tpusmi.exporter.catalog import KINDS
from tpusmi.fleet.fleet_series import SHOWN_SERIES
from tpusmi.fleet.samples import SeriesSample
from tpusmi.fleet.simulated.simulated_slices import slice_figures
from tpusmi.merge.notices import UNUSED_S
from tpusmi.model import CHIP, DEVICE, METRICS, PHASES, PROCESS, State, Verdict
from tpusmi.model.jsonobject import rounded
from tpusmi.model.series_names import PREFIX, SERIES
from tpusmi.report.torus.chip_places import wrap_text
from tpusmi.simulate import fleet_spec
from tpusmi.simulate.accelerator import CUBIC, SimulatedDevice
from tpusmi.simulate.fleet_job import (
    DIED_S,
    LINK_HEALTH,
    OLD_S,
    PASSING_HEALTH,
    JobMoment,
    device_values,
    is_straggler,
    is_the_one,
    job_at,
    phase,
    pid_of,
    process_values,
    throttle_percent,
)
from tpusmi.simulate.fleet_members import FleetMember
from tpusmi.simulate.fleet_spec import FleetSlice
from tpusmi.simulate.host_files import DRIVER_VERSIONS, KERNEL, driver_of, functions
from tpusmi.simulate.running import LINKS_CUBIC, LINKS_FLAT, TRAY

BOOTED_AGAIN_S = 30 * 86400.0
SCRAPE_JOB = "tpusmi"
"""Prometheus' own label `job`."""
_METRICS = {(m.scope, m.name): SERIES[m] for m in METRICS}
Labels = Mapping[str, str]


def samples(
    slices: Sequence[FleetSlice],
    at_s: float,
    names: Container[str] = SHOWN_SERIES,
    with_dead: bool = False,
) -> Iterator[SeriesSample]:
    """The samples of those names that a Prometheus server would have of all hosts at that Unix
    time, with the labels that it adds. Hosts that are down have none, unless they are asked for:
    before they died they had some.
    """
    for s in slices:
        jobs = {ago_s: job_at(s, at_s - ago_s) for ago_s in (0.0, OLD_S)}
        for worker in range(s.hosts):
            member = FleetMember(s, worker)
            if with_dead or not member.is_down:
                ago_s = OLD_S if member.is_old else 0.0
                added = {"instance": member.address, "job": SCRAPE_JOB}
                yield from host_samples(member, at_s - ago_s, jobs[ago_s], names, added)


def host_samples(
    member: FleetMember,
    at_s: float,
    job: JobMoment | None,
    names: Container[str] = KINDS,
    added: Labels | None = None,
) -> Iterator[SeriesSample]:
    """The samples of those names that the exporter of a host has at that Unix time, when its job is
    as `job_at` says.
    """
    everywhere = {"host": member.name, "simulated": "true", **(added or {})}
    if member.slice.hosts > 1:
        everywhere["slice"] = member.slice.name
    return _HostSamples(member, job, names, everywhere).all(at_s)


class _HostSamples:
    """Those of one host."""

    def __init__(
        self,
        member: FleetMember,
        job: JobMoment | None,
        names: Container[str],
        everywhere: Labels,
    ) -> None:
        self._member, self._job, self._names, self._everywhere = member, job, names, everywhere
        self._machine = member.machine
        self._of_process: Labels = {}
        self._values: list[dict[str, float | None]] = []
        if job is not None:
            only_shown = HOSTS_PAGE not in names
            devices = self._machine.devices
            self._values = [device_values(self._machine, d, job, only_shown) for d in devices]
            pid = pid_of(member.slice, member.worker, job.run)
            self._of_process = {"pid": str(pid), "job_name": member.slice.program}

    def all(self, at_s: float) -> Iterator[SeriesSample]:
        yield from self._info("build", version="simulated", python_version="simulated")
        yield from self._host(at_s)
        yield from self._chips()
        yield from self._devices()
        yield from self._links()
        if self._job is not None:
            yield from self._process(self._job)
            if self._member.slice.hosts > 1:
                for name, value, labels in slice_figures(self._member, self._job):
                    yield from self._one(name, value, **self._of_process, **labels)
            yield from self._notices(self._job)
        yield from self._one("snapshot_timestamp_seconds", at_s)

    def _one(
        self, name: str, value: float | None, /, **labels: str | None
    ) -> Iterator[SeriesSample]:
        full = PREFIX + name
        if value is not None and full in self._names:
            assert labels.keys() <= {*KINDS[full].labels}, (name, labels)
            own = {k: v for k, v in labels.items() if v}
            yield SeriesSample(full, {**self._everywhere, **own}, float(value))

    def _info(self, name: str, /, **labels: str | None) -> Iterator[SeriesSample]:
        yield from self._one(f"{name}_info", 1.0, **labels)

    def _measured(
        self, scope: str, values: Mapping[str, float | None], own: Labels
    ) -> Iterator[SeriesSample]:
        labels = {**self._everywhere, **own}
        for name, value in values.items():
            series = _METRICS.get((scope, name))
            if series is not None and value is not None and series.name in self._names:
                number = rounded(value)
                assert number is not None
                yield SeriesSample(series.name, labels, float(series.converted(number)))

    def _host(self, at_s: float) -> Iterator[SeriesSample]:
        s, driver = self._member.slice, driver_of(self._machine)
        yield from self._info(
            "host",
            kernel=KERNEL,
            libtpu_version="simulated",
            tpu_driver=driver,
            tpu_driver_version=DRIVER_VERSIONS.get(driver),
            boot_id=f"00000000-0000-4000-8000-{s.number:06x}{self._member.worker:06x}",
        )
        yield from self._one("host_uptime_seconds", at_s % BOOTED_AGAIN_S)

    def _chips(self) -> Iterator[SeriesSample]:
        generation = self._machine.generation
        nodes: dict[int, list[tuple[str, str]]] = {}
        for function in functions(self._machine):
            nodes.setdefault(function.chip, []).append((function.address, function.node))
        driver = driver_of(self._machine)
        for chip, places in nodes.items():
            number = str(chip)
            second_socket = chip * 2 >= self._machine.chips and len(generation.host_shapes) > 1
            yield from self._info(
                "chip",
                chip=number,
                generation=generation.name,
                kind=generation.kind,
                pci_address=",".join(address for address, _ in places),
                node=",".join(node for _, node in places),
                numa_node=str(int(second_socket)),
                pcie_link="16.0 GT/s x16",
                driver=driver,
            )
            yield from self._one("chip_hbm_nominal_bytes", generation.hbm_bytes, chip=number)
            yield from self._one("chip_holders", float(self._job is not None), chip=number)
            yield from self._of_chip(chip)

    def _of_chip(self, chip: int) -> Iterator[SeriesSample]:
        if self._job is not None:
            s = self._member.slice
            values = {"throttle_percent": throttle_percent(s, self._member.worker, self._job, chip)}
            of_devices = [self._values[d.index] for d in self._machine.devices if d.chip == chip]
            for name in self._machine.generation.chip_metrics:
                values[name] = fmean(v[name] or 0.0 for v in of_devices)
            yield from self._measured(CHIP, values, {"chip": str(chip)})

    def _devices(self) -> Iterator[SeriesSample]:
        kind = self._machine.generation.kind
        for d in self._machine.devices:
            own = {"chip": str(d.chip), "device": str(d.index)}
            if self._job is None:
                yield from self._info("device", **own, kind=kind)
                continue
            yield from self._info("device", **own, **self._device_facts(d))
            yield from self._measured(DEVICE, self._values[d.index], own)

    def _device_facts(self, d: SimulatedDevice) -> Labels:
        generation = self._machine.generation
        first = functions(self._machine)[d.chip * generation.pci_functions]
        return {
            "id": str(d.id),
            "name": f"tpu:{d.id}",
            "kind": generation.kind,
            "platform": "tpu",
            "coords": ",".join(map(str, d.coords)),
            "core_on_chip": str(d.core),
            "node": first.node,
            **self._of_process,
        }

    def _has(self, trouble: str) -> bool:
        """Whether this host is the one of its slice with that trouble."""
        s = self._member.slice
        return self._job is not None and is_the_one(s, self._member.worker, self._job, trouble)

    def _links(self) -> Iterator[SeriesSample]:
        if self._machine.hosts * self._machine.chips < 2 or self._job is None:
            return
        each = LINKS_CUBIC if self._machine.generation.name in CUBIC else LINKS_FLAT
        for chip in range(self._machine.chips):
            for link in range(each):
                health = self._health(chip, link)
                name = f"tray{TRAY}.chip{chip}.ici{link}.int"
                yield from self._one("ici_link_health", health, chip=str(chip), link=name)

    def _health(self, chip: int, link: int) -> int:
        if (chip, link) != (self._machine.chips - 1, 0):
            return 0
        if self._has(fleet_spec.BAD_LINK):
            return LINK_HEALTH
        return PASSING_HEALTH if self._has(fleet_spec.STRAGGLER) else 0

    def _process(self, job: JobMoment) -> Iterator[SeriesSample]:
        s, own = self._member.slice, self._of_process
        yield from self._info(
            "process",
            **own,
            user=s.user,
            command=f"python {s.program} --config=simulated",
            platform="tpu",
            process_index=str(self._member.worker),
            process_count=str(s.hosts),
            jax_version="0.10.2",
        )
        topology = "x".join(map(str, self._machine.topology))
        yield from self._info(
            "slice",
            **own,
            accelerator_type=self._machine.accelerator_type,
            topology=topology,
            worker=str(self._member.worker),
            wrap=wrap_text(self._machine.wraps),
        )
        yield from self._states("process_phase", "phase", phase(job), PHASES)
        yield from self._states("process_state", "state", State.LIVE, (State.LIVE, State.SILENT))
        yield from self._states("process_verdict", "verdict", Verdict.NOT_STALE, Verdict)
        yield from self._one("process_age_seconds", rounded(job.t_s), **own)
        yield from self._one("process_sample_age_seconds", 0.5, **own)
        yield from self._one("process_devices", len(self._machine.devices), **own)
        yield from self._measured(PROCESS, self._process_values(job), own)

    def _process_values(self, job: JobMoment) -> Mapping[str, float | None]:
        """Those of its agent, and sums over its devices."""
        values = process_values(self._member.slice, self._member.worker, job)
        for name in ("hbm_used_bytes", "live_array_bytes", "live_arrays"):
            if name in self._values[0]:
                values[name] = math.fsum(v[name] or 0.0 for v in self._values)
        return values

    def _states(
        self, name: str, label: str, is_in: object, states: Iterable[object]
    ) -> Iterator[SeriesSample]:
        for state in states:
            labels = {**self._of_process, label: str(state)}
            yield from self._one(name, float(state == is_in), **labels)

    def _notices(self, job: JobMoment) -> Iterator[SeriesSample]:
        s, pid = self._member.slice, self._of_process["pid"]
        # Each agent of a slice sees all of it.
        if not self._member.is_down and any(s.is_down(worker) for worker in range(s.hosts)):
            yield from self._one("notice", 1, code="slice_silent", pid=pid)
            yield from self._one("notice_age_seconds", DIED_S, code="slice_silent", pid=pid)
        if not job.has_trouble:
            return
        last_chip = str(self._machine.chips - 1)
        if self._has(fleet_spec.THROTTLED):
            yield from self._one("notice", 1, code="throttled", chip="0")
        if self._has(fleet_spec.BAD_LINK) or self._has(fleet_spec.STRAGGLER):
            yield from self._one("notice", 1, code="ici_link", chip=last_chip)
        idle_s = job.workload.idle_s(job.t_s, 0)
        if idle_s >= UNUSED_S:
            yield from self._one("notice", 1, code="unused", pid=pid)
            yield from self._one("notice_age_seconds", idle_s, code="unused", pid=pid)
        if any(is_straggler(s, worker) for worker in range(s.hosts)):
            yield from self._one("notice", 1, code="slice_straggler", pid=pid)


HOSTS_PAGE = "tpusmi_hbm_peak_bytes"
"""Where this one is asked for, all are."""
