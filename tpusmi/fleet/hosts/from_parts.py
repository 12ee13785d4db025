"""What an exporter said of a host, as the host's devices, processes, notices and links. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from tpusmi.chips import usual_kind
from tpusmi.fleet.fleet_figures import FleetDevice, FleetNotice, FleetProcess
from tpusmi.fleet.hosts import clean_labels
from tpusmi.fleet.hosts.clean_labels import NAME_MOST, PID_MOST, TEXT_MOST, number, text, word
from tpusmi.fleet.hosts.host_parts import HostItem, HostParts
from tpusmi.fleet.hosts.sample_reads import AGE, HEALTH, HOLDERS, LINK, NOTICE, PROBLEMS
from tpusmi.model import CHIP, DEVICE, PHASES, PROCESS, State, Verdict
from tpusmi.model.servers import Link
from tpusmi.model.torus import Wraps
from tpusmi.text import clean_or_none

_T = TypeVar("_T")

HEALTH_MOST = 10
PROBLEMS_MOST = 1_000_000
_SUMMED = ("hbm_used_bytes", "hbm_limit_bytes")
"""What the devices of a chip share: each of them having all of it would count it twice."""


class HostPlace(NamedTuple):
    """Where a host is in its slice, as its jobs know it."""

    topology: str | None
    worker: int | None
    accelerator_type: str | None
    wraps: Wraps | None


class Chips(NamedTuple):
    """The chips of a host."""

    count: int | None  # type: ignore[assignment]  # hides tuple.count
    held: int | None
    holders: Mapping[int, int]
    """Processes that hold each chip, of which that is known."""
    values: Mapping[int, Mapping[str, float]]


def chips_of(parts: HostParts) -> Chips:
    """The chips; `held` is None unless it is known of each of them."""
    of_index = _by_chip(parts)
    listed = {chip for chip, item in of_index.items() if item.facts or HOLDERS in item.values}
    # Without a PCI bus the chips are those of its devices.
    all_of_them = listed or {c for c, _ in _devices(parts) if c is not None}
    holders = {c: int(i.values[HOLDERS]) for c, i in of_index.items() if HOLDERS in i.values}
    is_known = bool(all_of_them) and all_of_them <= holders.keys()
    return Chips(
        count=len(all_of_them) or None,
        held=sum(holders[c] > 0 for c in all_of_them) if is_known else None,
        holders=holders,
        values={
            chip: {name: v for name, v in item.values.items() if name != HOLDERS}
            for chip, item in of_index.items()
        },
    )


def _by_chip(parts: HostParts) -> dict[int, HostItem]:
    indices = ((number(chip), item) for (chip,), item in parts.items(CHIP).items())
    return {chip: item for chip, item in indices if chip is not None}


def _devices(parts: HostParts) -> Iterator[tuple[int | None, HostItem]]:
    for (chip, _), item in parts.items(DEVICE).items():
        yield number(chip), item


def devices_of(parts: HostParts, chips: Chips) -> tuple[FleetDevice, ...]:
    """The devices in order: those of chips by their numbers, and then the others."""
    on_chip = Counter(chip for chip, _ in _devices(parts))
    devices = []
    for (chip_text, name), item in parts.items(DEVICE).items():
        chip, label = number(chip_text), clean_or_none(name, NAME_MOST)
        if label is not None and (chip is not None or not chip_text):
            devices.append(_device(chip, label, item, chips, on_chip[chip]))
    return tuple(sorted(devices, key=_place))


def _device(chip: int | None, name: str, item: HostItem, chips: Chips, on_chip: int) -> FleetDevice:
    of_chip = {} if chip is None else chips.values.get(chip, {})
    alone = on_chip == 1
    shared = [] if alone else [n for n in _SUMMED if n in of_chip and n not in item.values]
    facts = item.facts
    kind = text(facts, "kind", NAME_MOST)
    return FleetDevice(
        chip=chip,
        name=name,
        kind=None if kind is None else usual_kind(kind),
        coords=clean_labels.coords(facts.get("coords")),
        core_on_chip=number(facts.get("core_on_chip")),
        pid=number(facts.get("pid"), PID_MOST),
        job=text(facts, "job_name", NAME_MOST),
        values={**{n: v for n, v in of_chip.items() if n not in shared}, **item.values},
        platform=text(facts, "platform", NAME_MOST),
        of_chip={n: of_chip[n] for n in shared},
        holders=None if chip is None else chips.holders.get(chip),
    )


def _place(d: FleetDevice) -> tuple[object, ...]:
    index = number(d.name)
    return d.chip is None, d.chip or 0, index is None, index or 0, d.name


def processes_of(parts: HostParts) -> tuple[FleetProcess, ...]:
    """The processes, by their numbers."""
    processes = []
    for (pid_text, job), item in parts.items(PROCESS).items():
        pid = number(pid_text, PID_MOST)
        if pid is not None:
            processes.append(_process(pid, clean_or_none(job, NAME_MOST), item))
    # One process for each job reads what its hosts say: the others of that job are of it as well.
    jobs = {p.likeness: p.slice_job for p in processes if p.slice_job is not None}
    of_jobs = (p._replace(slice_job=p.slice_job or jobs.get(p.likeness)) for p in processes)
    return tuple(sorted(of_jobs, key=lambda p: (p.pid, p.job or "")))


def _process(pid: int, job: str | None, item: HostItem) -> FleetProcess:
    facts = item.facts
    return FleetProcess(
        pid=pid,
        job=job,
        user=text(facts, "user", NAME_MOST),
        command=text(facts, "command"),
        phase=word(facts.get("phase"), PHASES),
        state=word(facts.get("state"), State),
        verdict=word(facts.get("verdict"), Verdict),
        process_index=number(facts.get("process_index")),
        process_count=number(facts.get("process_count")),
        values=item.values,
        slice_job=text(facts, "slice_job", NAME_MOST),
    )


def place_of(parts: HostParts, devices: tuple[FleetDevice, ...]) -> HostPlace:
    """The host's place in its slice, as a process with a chip says it, else any other."""
    pids = {d.pid for d in devices if d.chip is not None}
    ranked = sorted(
        parts.items(PROCESS).items(),
        key=lambda x: (number(x[0][0], PID_MOST) not in pids, str(x[0])[:TEXT_MOST]),
    )
    facts = [item.facts for _, item in ranked]
    return HostPlace(
        topology=_first(clean_labels.topology(f.get("topology")) for f in facts),
        worker=_first(number(f.get("worker")) for f in facts),
        accelerator_type=_first(text(f, "accelerator_type", NAME_MOST) for f in facts),
        wraps=_first(clean_labels.wraps(f.get("wrap")) for f in facts),
    )


def _first(values: Iterable[_T | None]) -> _T | None:
    return next((v for v in values if v is not None), None)


def notices_of(parts: HostParts) -> tuple[FleetNotice, ...]:
    """The notices, by their codes."""
    notices = []
    for (code, chip, device, pid), item in parts.items(NOTICE).items():
        label, problems = clean_or_none(code, NAME_MOST), item.values.get(PROBLEMS)
        if label is not None and problems:
            notices.append(
                FleetNotice(
                    code=label,
                    chip=number(chip),
                    device=clean_or_none(device, NAME_MOST),
                    pid=number(pid, PID_MOST),
                    problems=min(int(problems), PROBLEMS_MOST),
                    age_s=item.values.get(AGE),
                )
            )
    return tuple(sorted(notices, key=lambda n: (n.code, n.chip or -1, n.pid or -1, n.device or "")))


def links_of(parts: HostParts) -> tuple[Link, ...]:
    """The links, by their chips."""
    links = []
    for (chip_text, name), item in parts.items(LINK).items():
        chip, label, health = (
            number(chip_text),
            clean_or_none(name, NAME_MOST),
            item.values.get(HEALTH),
        )
        if chip is not None and label is not None and health is not None and health <= HEALTH_MOST:
            links.append(Link(chip=chip, name=label, health=int(health)))
    return tuple(sorted(links))
