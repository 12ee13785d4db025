"""The tori of a snapshot: one for each slice that a job here runs on, or for each job. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tpusmi.merge.slice_notices import stragglers
from tpusmi.model import Device, DeviceKey, ProcessKey, Snapshot
from tpusmi.model.slice_hosts import Slice
from tpusmi.model.torus import Coords, Torus, TorusChip, Wraps
from tpusmi.report import rows, slice_table
from tpusmi.report.concerns import MARK, Concerns
from tpusmi.report.torus import chip_facts, slices_apart
from tpusmi.report.torus.chip_places import axes_text, sensible, size_around, sizes_of, wraps_of
from tpusmi.report.torus.neighbor_links import between_neighbors
from tpusmi.report.torus.placed_jobs import PlacedDevice, PlacedJob, jobs
from tpusmi.report.torus.slices_apart import PlacedMember

NO_TPU = "No TPU is seen here, and no job of several hosts: there is nothing to draw."
NO_LINKS = "No source tells how healthy the links are: they are drawn as unknown."
SOME_LINKS = (
    "Links between chips of other hosts are drawn as unknown: only those of this host tell how "
    "healthy they are."
)
NO_WRAPS = (
    "Whether the ends of the axes are joined is not known: the job's environment has no "
    "TPU_TOPOLOGY_WRAP."
)


def of_snapshot(s: Snapshot, metric: str) -> tuple[Torus, ...]:
    """The tori that jobs on this host run on: slices first. One without chips says in its notes
    why nothing can be drawn.
    """
    here = _Here(s, metric)
    of_slices = [torus for x in s.slices for torus in here.of_slice(x)]
    placed, notes = jobs(s, here.taken)
    tori = [*of_slices, *(here.of_job(job) for job in placed)]
    if not tori:
        return (_torus("", (), {}, NO_SHAPE, notes or [NO_TPU]),)
    first, *others = tori
    return (first._replace(notes=(*first.notes, *notes)), *others)


class _SliceShape(NamedTuple):
    """How large a slice is."""

    sizes: tuple[Coords, ...]
    """What its size may be."""
    wraps: Wraps | None
    """Whether the ends of its axes are joined."""


NO_SHAPE = _SliceShape((), None)


class _OwnPart(NamedTuple):
    """What only this host knows of a slice."""

    devices: dict[tuple[int, Coords | None, int | None], Device]
    """By the number of the process, the place and the core."""
    shape: _SliceShape


class _Here:
    """The devices of this host, as chips of tori."""

    def __init__(self, s: Snapshot, metric: str) -> None:
        self.s, self._metric = s, metric
        self._concerns = Concerns(s)
        self.taken: set[DeviceKey] = set()
        """The devices that are in a slice."""

    def of_slice(self, x: Slice) -> Iterator[Torus]:
        """The tori of a job: one, or as many as it has slices. Agents say of each other what they
        have; of its own devices this host knows more.
        """
        own, slow = self._own_part(x), stragglers(x)
        self.taken.update(d.key for d in own.devices.values())
        placed = [
            PlacedMember(process=h, number=number, device=d, coords=coords)
            for h in sorted(x.hosts, key=lambda h: h.process_index)
            for number, d in enumerate(h.devices)
            if (coords := sensible(d.coords)) is not None
        ]
        parts = slices_apart.apart(placed, x.process_count)
        notes = slices_apart.missing(x, len(placed), len(parts))
        for number, part in enumerate(parts):
            chips = [
                self._chip_of(x, member, own, chip_facts.mark(member.process, slow))
                for member in part
            ]
            here = [p for member in part if (p := _own_device(member, own)) is not None]
            title = slice_table.headline(x)
            title += f", slice {number + 1} of {len(parts)}" if len(parts) > 1 else ""
            torus = _torus(title, chips, self.worst(here), own.shape, notes)
            yield torus._replace(job=x.job, warnings=self.bad_links(here))

    def _chip_of(self, x: Slice, member: PlacedMember, own: _OwnPart, mark: str) -> TorusChip:
        """A device of this host or of another one; `mark` is that of its process."""
        h, d = member.process, member.device
        of_process = [f"process {h.process_index}", *chip_facts.facts_of_host(h)]
        placed = _own_device(member, own)
        if placed is not None:
            return self.chip(
                placed, chip_facts.host_name(h), mark or self.mark(placed.device), of_process
            )
        return TorusChip(
            coords=member.coords,
            host=chip_facts.host_name(h),
            name=chip_facts.name_elsewhere(h, member.number),
            ratio=chip_facts.ratio_elsewhere(d, self._metric),
            is_old=h.is_old,
            mark=mark,
            key=(x.job, h.process_index, member.number),
            facts=", ".join((*chip_facts.facts_elsewhere(d), *of_process)),
        )

    def _own_part(self, x: Slice) -> _OwnPart:
        devices = {}
        environment: dict[str, str] = {}
        for index, key in self._processes(x):
            process = next((p for p in self.s.processes if p.key == key), None)
            environment = environment or ({} if process is None else dict(process.environment))
            for d in self.s.devices_of(key):
                devices[index, sensible(d.coords), d.core_on_chip] = d
        return _OwnPart(devices, _SliceShape(sizes_of(environment), wraps_of(environment)))

    def _processes(self, x: Slice) -> Iterator[tuple[int, ProcessKey]]:
        """The processes of the slice that run here, with their numbers: that of the reader, and
        others of its user. Anyone can write a segment that says to be of this job.
        """
        reader = next((p for p in self.s.processes if p.key == x.process), None)
        if reader is None:
            return
        yield x.process_index, reader.key
        names = {h.process_index: h.name for h in x.hosts}
        for p in self.s.processes:
            index = p.facts.get("process_index")
            is_of_it = p.facts.get("process_count") == x.process_count and p.uid == reader.uid
            if not isinstance(index, int) or index not in names or index == x.process_index:
                continue
            is_here = names[index] == names.get(x.process_index)
            if is_of_it and is_here and p.is_living and p.is_verified:
                yield index, p.key

    def of_job(self, job: PlacedJob) -> Torus:
        """The torus of a job whose agents report nothing about other hosts."""
        host = self.s.host.name
        chips = [self.chip(placed, host, self.mark(placed.device)) for placed in job.devices]
        shape = _SliceShape(job.sizes, job.wraps)
        torus = _torus(job.title, chips, self.worst(job.devices), shape, job.notes)
        return torus._replace(warnings=self.bad_links(job.devices))

    def chip(
        self, placed: PlacedDevice, host: str, mark: str, more: Sequence[str] = ()
    ) -> TorusChip:
        """A device of this host."""
        d = placed.device
        share, is_old = rows.share(self.s, d, self._metric)
        return TorusChip(
            coords=placed.coords,
            host=host,
            name=d.name,
            ratio=share,
            is_old=is_old,
            mark=mark,
            key=d.key,
            facts=", ".join((*chip_facts.facts(self.s, d), *more)),
        )

    def mark(self, d: Device) -> str:
        """That a warning is about the device."""
        return MARK if self._concerns.of_device(d) else ""

    def bad_links(self, devices: Sequence[PlacedDevice]) -> tuple[str, ...]:
        """A sentence that names bad links, with their chips; empty without any."""
        names = {
            placed.coords: f"{placed.device.name} {', '.join(bad)}"
            for placed in reversed(devices)
            if (bad := [*chip_facts.bad_links(self.s.links_of(placed.device))])
        }
        return chip_facts.about_bad_links(names)

    def worst(self, devices: Sequence[PlacedDevice]) -> dict[Coords, int]:
        """Health of the worst link of each chip."""
        worst = {}
        for placed in devices:
            health = rows.worst_link(self.s, placed.device)
            if health is not None:
                worst[placed.coords] = health
        return worst


def _own_device(member: PlacedMember, own: _OwnPart) -> PlacedDevice | None:
    """The device as this host knows it; None for one of another host."""
    index, core = member.process.process_index, member.device.core_on_chip
    device = own.devices.get((index, member.coords, core))
    return None if device is None else PlacedDevice(device, member.coords)


def outside(sizes: Sequence[Coords]) -> str:
    """That no size of the job's environment has all chips."""
    size = " and ".join(map(axes_text, sizes))
    return f"Some chips are outside of {size}, the size by the job's environment: it is ignored."


def _torus(
    title: str,
    chips: Sequence[TorusChip],
    worst: dict[Coords, int],
    shape: _SliceShape,
    notes: Sequence[str],
) -> Torus:
    """A torus with its links, and with notes about the unknown."""
    sizes, wraps = shape
    places = {chip.coords for chip in chips}
    size = size_around(places, sizes) if places else None
    links = between_neighbors(places, worst, size, wraps)
    more = [*notes]
    if sizes and places and size is None:
        more.append(outside(sizes))
    if links and not worst:
        more.append(NO_LINKS)
    elif links and len(worst) < len(places):
        more.append(SOME_LINKS)
    if wraps is None and len(places) > 1:
        more.append(NO_WRAPS)
    return Torus(
        size=size, wraps=wraps, chips=tuple(chips), links=links, notes=tuple(more), title=title
    )
