"""The tori of a snapshot: one for each slice that a job here runs on, or for each job. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tpusmi.merge.slice_notices import stragglers
from tpusmi.model import Device, DeviceKey, ProcessKey, Snapshot
from tpusmi.model.slice_hosts import Slice, SliceDevice, SliceProcess
from tpusmi.model.states import SliceState
from tpusmi.model.torus import Coords, Torus, TorusChip, Wraps
from tpusmi.report import rows, slice_table
from tpusmi.report.concerns import MARK as WARNED
from tpusmi.report.concerns import SILENT, STRAGGLES, Concerns
from tpusmi.report.torus import chip_facts, slices_apart
from tpusmi.report.torus.chip_places import axes_text, sensible, size_around, sizes_of, wraps_of
from tpusmi.report.torus.neighbor_links import between_neighbors
from tpusmi.report.torus.placed_jobs import PlacedDevice, PlacedJob, jobs
from tpusmi.report.torus.slices_apart import PlacedMember

NAMED_MOST = 6
"""Chips with bad links that a note names."""
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
        return (_torus("", (), {}, ((), None), notes or [NO_TPU]),)
    first, *others = tori
    return (first._replace(notes=(*first.notes, *notes)), *others)


def of_slice(x: Slice, metric: str) -> tuple[Torus, ...]:
    """The tori of a job, by what its agents say of each other: one, or as many as it has slices."""
    return tuple(_of_slice(x, metric, None))


class _Own(NamedTuple):
    """What only this host knows of a slice."""

    devices: dict[tuple[int, Coords | None, int | None], Device]
    """By the number of the process, the place and the core."""
    sizes: tuple[Coords, ...]
    """What the size of the slice may be."""
    wraps: Wraps | None


class _Here:
    """The devices of this host, as chips of tori."""

    def __init__(self, s: Snapshot, metric: str) -> None:
        self.s, self._metric = s, metric
        self._concerns = Concerns(s)
        self.taken: set[DeviceKey] = set()
        """The devices that are in a slice."""

    def of_slice(self, x: Slice) -> Iterator[Torus]:
        """The tori of the slice, with what this host knows of its own devices."""
        own = self._own(x)
        self.taken.update(d.key for d in own.devices.values())
        yield from _of_slice(x, self._metric, (self, own))

    def _own(self, x: Slice) -> _Own:
        devices = {}
        environment: dict[str, str] = {}
        for index, key in self._processes(x):
            process = next((p for p in self.s.processes if p.key == key), None)
            environment = environment or ({} if process is None else dict(process.environment))
            for d in self.s.devices_of(key):
                devices[index, sensible(d.coords), d.core_on_chip] = d
        return _Own(devices, sizes_of(environment), wraps_of(environment))

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
        shape = (job.sizes, job.wraps)
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
        return WARNED if self._concerns.of_device(d) else ""

    def bad_links(self, devices: Sequence[PlacedDevice]) -> tuple[str, ...]:
        """A sentence that names bad links, with their chips; empty without any."""
        names = {
            placed.coords: f"{placed.device.name} {', '.join(bad)}"
            for placed in reversed(devices)
            if (bad := [*chip_facts.bad_links(self.s.links_of(placed.device))])
        }
        named = [names[coords] for coords in sorted(names)]
        more = [f"{len(named) - NAMED_MOST} more chips"] if len(named) > NAMED_MOST else []
        return (f"Bad links: {'; '.join([*named[:NAMED_MOST], *more])}.",) if named else ()

    def worst(self, devices: Sequence[PlacedDevice]) -> dict[Coords, int]:
        """Health of the worst link of each chip."""
        worst = {}
        for placed in devices:
            health = rows.worst_link(self.s, placed.device)
            if health is not None:
                worst[placed.coords] = health
        return worst


_Shape = tuple[tuple[Coords, ...], Wraps | None]
"""What the size of a slice may be, and whether the ends of its axes are joined."""
_Known = tuple[_Here, _Own]


def _of_slice(x: Slice, metric: str, known: _Known | None) -> Iterator[Torus]:
    placed = [
        (h, number, d, coords)
        for h in sorted(x.hosts, key=lambda h: h.process_index)
        for number, d in enumerate(h.devices)
        if (coords := sensible(d.coords)) is not None
    ]
    slow = stragglers(x)
    parts = slices_apart.apart(placed, x.process_count)
    for number, part in enumerate(parts):
        title = slice_table.headline(x)
        title += f", slice {number + 1} of {len(parts)}" if len(parts) > 1 else ""
        notes = slices_apart.missing(x, len(placed), len(parts))
        yield _of_part(x, part, (title, metric, slow), known, notes)._replace(job=x.job)


def _of_part(
    x: Slice,
    part: Sequence[PlacedMember],
    how: tuple[str, str, set[int]],
    known: _Known | None,
    notes: list[str],
) -> Torus:
    title, metric, slow = how
    chips: list[TorusChip] = []
    here: list[PlacedDevice] = []
    for h, number, d, coords in part:
        own = (
            None
            if known is None
            else known[1].devices.get((h.process_index, coords, d.core_on_chip))
        )
        mark = _mark(h, slow)
        if known is None or own is None:
            chips.append(_elsewhere(h, (number, d, coords), metric, (mark, x.job)))
            continue
        placed = PlacedDevice(own, coords)
        more = [f"process {h.process_index}", *chip_facts.facts_of_host(h)]
        chips.append(known[0].chip(placed, _host(h), mark or known[0].mark(own), more))
        here.append(placed)
    if known is None:
        return _torus(title, chips, {}, ((), None), notes)
    shape = (known[1].sizes, known[1].wraps)
    torus = _torus(title, chips, known[0].worst(here), shape, notes)
    return torus._replace(warnings=known[0].bad_links(here))


def _elsewhere(
    h: SliceProcess, device: tuple[int, SliceDevice, Coords], metric: str, about: tuple[str, int]
) -> TorusChip:
    """A device of another host."""
    number, d, coords = device
    mark, job = about
    facts = (
        *chip_facts.facts_elsewhere(d),
        f"process {h.process_index}",
        *chip_facts.facts_of_host(h),
    )
    return TorusChip(
        coords=coords,
        host=_host(h),
        name=chip_facts.name_elsewhere(h, number),
        ratio=chip_facts.ratio_elsewhere(d, metric),
        is_old=h.is_old,
        mark=mark,
        key=(job, h.process_index, number),
        facts=", ".join(facts),
    )


def _host(h: SliceProcess) -> str:
    return h.name or f"process {h.process_index}"


def _mark(h: SliceProcess, slow: set[int]) -> str:
    if h.state != SliceState.LIVE:
        return SILENT
    if h.process_index in slow:
        return STRAGGLES
    return WARNED if h.warnings else ""


def outside(sizes: Sequence[Coords]) -> str:
    """That no size of the job's environment has all chips."""
    size = " and ".join(map(axes_text, sizes))
    return f"Some chips are outside of {size}, the size by the job's environment: it is ignored."


def _torus(
    title: str,
    chips: Sequence[TorusChip],
    worst: dict[Coords, int],
    shape: _Shape,
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
