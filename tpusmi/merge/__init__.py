"""Many readings into one Snapshot, each value with its witness and age. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tpusmi.model import (
    HOLDERS,
    NOMINAL,
    PHASE,
    Chip,
    ChipKey,
    Device,
    HostFacts,
    Latency,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    Snapshot,
    Value,
    Visibility,
)
from tpusmi.model.history import Key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.merge.join import Join
    from tpusmi.model.slice_hosts import Slice

__all__ = ["snapshot_of"]


def snapshot_of(
    join: "Join",
    host: HostFacts,
    version: str,
    judge: Callable[[Snapshot], Snapshot] | None = None,
) -> Snapshot:
    """The snapshot of one moment. `judge` says of every holder whether it is stale; None is
    `staleness.judged`.
    """
    # Here: a fleet view needs some modules of this package, and no snapshot.
    from tpusmi.merge.notices import notices
    from tpusmi.merge.staleness import judged
    from tpusmi.merge.witnesses import explained, missing_witnesses

    chips = join.chips
    living, others = join.devices
    processes = tuple(map(_advised, _ordered(join.processes)))
    outcomes, servers = explained(join.outcomes, processes)
    values = _values(join.readings, join.at_s)
    _add_nominal(values, living, chips)
    order = {p.key: rank for rank, p in enumerate(processes)}
    snapshot = Snapshot(
        tpusmi_version=version,
        simulated=join.simulated,
        at_s=join.at_s,
        host=_with_versions(host, outcomes, processes, chips),
        devices=tuple(sorted(living, key=lambda d: _place(d, order))),
        processes=processes,
        sources=tuple(_bare(o, join.notes.get(o.source, ())) for o in outcomes),
        warnings=(),
        values=values,
        dead_devices=tuple(sorted(others, key=lambda d: _place(d, order))),
        chips=chips,
        servers=servers,
        latencies=_latencies(outcomes, join),
        links=tuple(link for o in outcomes for link in o.links),
        cores=tuple(core for o in outcomes for core in o.cores if core.server not in join.ignored),
        lock_files=tuple(file for o in outcomes for file in o.lock_files),
        # HOLDERS is the only source that looks for holders.
        visibility=next((o.visibility for o in outcomes if o.source == HOLDERS), Visibility()),
        missing=missing_witnesses(outcomes),
        slices=_slices(outcomes, processes, join.at_s),
    )
    snapshot = (judge or judged)(snapshot)
    return snapshot._replace(warnings=notices(snapshot))


def _advised(p: Process) -> Process:
    """The process with advice in what its agent warns of."""
    if not p.warnings:
        return p
    from tpusmi.merge.advice import advised

    return advised(p)


def _slices(
    outcomes: Sequence[Outcome], processes: Sequence[Process], now_s: float
) -> "tuple[Slice, ...]":
    reported = [x for o in outcomes for x in o.slices]
    if not reported:
        return ()
    from tpusmi.merge.slices import slices

    return slices(reported, processes, now_s)


def _latencies(outcomes: Sequence[Outcome], join: "Join") -> tuple[Latency, ...]:
    """The latencies of this machine's servers, and those of the SDK that no server reports."""
    latencies = [x for o in outcomes for x in o.latencies if x.server not in join.ignored]
    served = {latency.name for latency in latencies if latency.server is not None}
    return tuple(x for x in latencies if x.server is not None or x.name not in served)


def _place(d: Device, order: Mapping[ProcessKey, int]) -> tuple[int, int, int]:
    """Devices of the machine in its order, then those of processes in theirs."""
    if d.chip is not None or d.key.process is None:
        return (-1, d.index, 0)
    return (order.get(d.key.process, -1), d.key.index, d.index)


def _bare(o: Outcome, notes: Sequence[str]) -> Outcome:
    """How the source did, without its results."""
    return Outcome(
        source=o.source,
        status=o.status,
        message=o.message,
        took_s=o.took_s,
        notes=(*o.notes, *notes),
    )


def _with_versions(
    host: HostFacts,
    outcomes: Iterable[Outcome],
    processes: Iterable[Process],
    chips: Iterable[Chip],
) -> HostFacts:
    """The host with the versions of its TPUs' software."""
    driven = next((c for c in chips if c.driver is not None), None)
    return host._replace(
        libtpu_version=host.libtpu_version or _libtpu_version(outcomes, processes),
        tpu_driver=host.tpu_driver if driven is None else driven.driver,
        tpu_driver_version=host.tpu_driver_version if driven is None else driven.driver_version,
    )


def _libtpu_version(outcomes: Iterable[Outcome], processes: Iterable[Process]) -> str | None:
    """The SDK's, else that of a living job."""
    versions = [o.libtpu_version for o in outcomes]
    living = (p for p in processes if not p.is_dead and p.is_verified)
    versions += [p.facts.get("libtpu_version") for p in living]
    return next((version for version in versions if version), None)


def _add_nominal(
    values: dict[Key, Value], devices: Iterable[Device], chips: Sequence[Chip]
) -> None:
    """The chip table's memory where no limit was measured."""
    by_index = {c.index: c for c in chips}
    for d in devices:
        chip = by_index.get(d.chip) if d.chip is not None else None
        if chip is None or chip.hbm_nominal_bytes is None:
            continue
        keys = ((d.key, "hbm_limit_bytes"), (ChipKey(chip.index), "hbm_limit_bytes"))
        if not any(key in values for key in keys):
            values[keys[0]] = Value(chip.hbm_nominal_bytes // chip.devices, NOMINAL, 0.0, False)


def _ordered(processes: Sequence[Process]) -> tuple[Process, ...]:
    """Verified living processes by their start, then other living ones; then those that are dead or
    may be, the newest first.
    """
    living = sorted(
        (p for p in processes if p.is_living),
        key=lambda p: (not p.is_verified, p.key.start_ticks, p.pid),
    )
    dead = sorted((p for p in processes if not p.is_living), key=lambda p: -(p.sampled_at_s or 0.0))
    return (*living, *dead)


def _values(readings: Mapping[Key, Reading], now_s: float) -> dict[Key, Value]:
    """The readings as values; not the phase, which the process itself has."""
    values = {}
    for key, (metric, _, value, at_s, source, fresh_s) in readings.items():
        if metric != PHASE:
            age_s = now_s - at_s
            values[key] = Value(value, source, age_s if age_s > 0 else 0.0, age_s > fresh_s)
    return values
