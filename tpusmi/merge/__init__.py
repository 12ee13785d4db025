"""Many readings into one Snapshot, each value with its witness and age. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tpusmi.merge.join import Join
from tpusmi.merge.notices import notices
from tpusmi.merge.processes import process_of, proven
from tpusmi.merge.staleness import judged
from tpusmi.merge.witnesses import explained, missing_witnesses
from tpusmi.model import (
    HOLDERS,
    METRICS,
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
    Subject,
    Value,
    Visibility,
)

DROP_AFTER_S = 60.0
"""A value this much older than it may be believed is no longer shown, unless its process is dead.
"""

Values = dict[tuple[Subject, str], Value]

_RANK = {(m.name, source): rank for m in METRICS for rank, source in enumerate(m.trust)}


def merge(
    outcomes: Sequence[Outcome],
    host: HostFacts,
    now_s: float,
    version: str,
    simulated: bool = False,
    judge: Callable[[Snapshot], Snapshot] = judged,
) -> Snapshot:
    """The snapshot of one moment: of every metric the first fresh reading in its order of trust.

    `judge` says of every holder whether it is stale.
    """
    outcomes = proven(outcomes)
    join = Join(outcomes, simulated)
    known, others = join.devices
    processes = _ordered(join.processes)
    outcomes, servers = explained(outcomes, processes)
    dead = frozenset(p.key for p in processes if p.is_dead)
    readings = ((join.subject(r), r) for o in outcomes for r in o.readings)
    chips = join.chips
    values = _values(readings, now_s, dead)
    _add_nominal(values, known, chips)
    shown = {p.key: rank for rank, p in enumerate(processes)}
    devices = sorted(known, key=lambda d: _place(d, shown))
    snapshot = Snapshot(
        tpusmi_version=version,
        simulated=simulated,
        at_s=now_s,
        host=_with_versions(host, outcomes, processes, chips),
        devices=tuple(devices),
        processes=processes,
        sources=tuple(_bare(o, join.notes.get(o.source, ())) for o in outcomes),
        warnings=(),
        values=values,
        dead_devices=tuple(sorted(others, key=lambda d: _place(d, shown))),
        chips=chips,
        servers=servers,
        latencies=_latencies(outcomes, join),
        links=tuple(link for o in outcomes for link in o.links),
        cores=tuple(core for o in outcomes for core in o.cores if core.server not in join.ignored),
        lock_files=tuple(file for o in outcomes for file in o.lock_files),
        visibility=_visibility(outcomes),
        missing=missing_witnesses(outcomes),
    )
    snapshot = judge(snapshot)
    return snapshot._replace(warnings=notices(snapshot))


def _visibility(outcomes: Iterable[Outcome]) -> Visibility:
    """That of the only source that looks for holders."""
    return next((o.visibility for o in outcomes if o.source == HOLDERS), Visibility())


def _latencies(outcomes: Sequence[Outcome], join: Join) -> tuple[Latency, ...]:
    """Those of this machine's servers, and of the SDK what no server tells."""
    every = [x for o in outcomes for x in o.latencies if x.server not in join.ignored]
    served = {latency.name for latency in every if latency.server is not None}
    return tuple(x for x in every if x.server is not None or x.name not in served)


def _place(d: Device, shown: Mapping[ProcessKey, int]) -> tuple[int, int, int]:
    """Devices of the machine in its order, then those of processes in theirs."""
    if d.chip is not None:
        return (-1, d.index, 0)
    return (shown.get(d.key.process, -1) if d.key.process else -1, d.key.index, d.index)


def _bare(o: Outcome, notes: Sequence[str]) -> Outcome:
    """How the source did, without what it found."""
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
    """The host with what is known of its TPUs' software."""
    driven = next((c for c in chips if c.driver is not None), None)
    return host._replace(
        libtpu_version=host.libtpu_version or _libtpu_version(outcomes, processes),
        tpu_driver=host.tpu_driver if driven is None else driven.driver,
        tpu_driver_version=host.tpu_driver_version if driven is None else driven.driver_version,
    )


def _libtpu_version(outcomes: Iterable[Outcome], processes: Iterable[Process]) -> str | None:
    """What the SDK says, else what a living job says of its own."""
    said = [o.libtpu_version for o in outcomes]
    living = (p for p in processes if not p.is_dead and p.is_verified)
    said += [p.facts.get("libtpu_version") for p in living]
    return next((version for version in said if version), None)


def _add_nominal(values: Values, devices: Iterable[Device], chips: Sequence[Chip]) -> None:
    """The table's memory where nobody measured a limit."""
    by_index = {c.index: c for c in chips}
    for d in devices:
        chip = by_index.get(d.chip) if d.chip is not None else None
        if chip is None or chip.hbm_nominal_bytes is None:
            continue
        keys = ((d.key, "hbm_limit_bytes"), (ChipKey(chip.index), "hbm_limit_bytes"))
        if not any(key in values for key in keys):
            values[keys[0]] = Value(chip.hbm_nominal_bytes // chip.devices, NOMINAL, 0.0, False)


def _ordered(processes: Iterable[Process]) -> tuple[Process, ...]:
    """Living ones first, each group by start; then those that are not verified, then the dead and
    those that may be, the newest first.
    """
    found = list(processes)
    living = sorted(
        (p for p in found if p.is_living),
        key=lambda p: (not p.is_verified, p.key.start_ticks, p.pid),
    )
    dead = sorted((p for p in found if not p.is_living), key=lambda p: -(p.sampled_at_s or 0.0))
    return (*living, *dead)


def _values(
    readings: Iterable[tuple[Subject | None, Reading]], now_s: float, dead: frozenset[ProcessKey]
) -> Values:
    """The best reading of every metric of every subject. Those of nobody knows what are left out,
    and the phase, which the process itself has.

    This runs for every number on the screen at every tick: most have one witness and no rival.
    """
    best: dict[tuple[Subject, str], Reading] = {}
    for subject, r in readings:
        if subject is None or r.metric == PHASE:
            continue
        if now_s - r.at_s > r.fresh_s + DROP_AFTER_S and process_of(subject) not in dead:
            continue
        key = (subject, r.metric)
        rival = best.get(key)
        if rival is None or _rank(r, now_s) < _rank(rival, now_s):
            best[key] = r
    return {
        key: Value(r.value, r.source, max(0.0, now_s - r.at_s), now_s - r.at_s > r.fresh_s)
        for key, r in best.items()
    }


def _rank(r: Reading, now_s: float) -> tuple[bool, int, float]:
    """Fresh before stale, then by trust, then the newer."""
    age_s = now_s - r.at_s
    return (age_s > r.fresh_s, _RANK.get((r.metric, r.source), len(_RANK)), age_s)
