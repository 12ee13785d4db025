"""Many readings into one Snapshot, each value with its witness and age. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tpusmi.model import (
    METRICS,
    DeviceKey,
    HostFacts,
    Notice,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    Snapshot,
    Subject,
    Value,
)

DROP_AFTER_S = 60.0
"""A value this much older than it may be believed is no longer shown, unless its process is dead.
"""
RECOMPILATIONS_LEAST = 2

Values = Mapping[tuple[Subject, str], Value]

_RANK = {(m.name, source): rank for m in METRICS for rank, source in enumerate(m.trust)}


def merge(
    outcomes: Sequence[Outcome],
    host: HostFacts,
    now_s: float,
    version: str,
    simulated: bool = False,
) -> Snapshot:
    """The snapshot of one moment: of every metric the first fresh reading in its order of trust."""
    processes = _ordered(p for o in outcomes for p in o.processes)
    dead = frozenset(p.key for p in processes if p.state == "dead")
    values = _values((r for o in outcomes for r in o.readings), now_s, dead)
    shown = {p.key: rank for rank, p in enumerate(processes)}
    devices = sorted(
        (d for o in outcomes for d in o.devices),
        key=lambda d: (shown.get(d.key.process, -1) if d.key.process else -1, d.index),
    )
    living = tuple(d for d in devices if d.key.process not in dead)
    last = tuple(d for d in devices if d.key.process in dead)
    bare = tuple(o._replace(readings=(), past=(), devices=(), processes=()) for o in outcomes)
    notices = _notices(processes, values)
    return Snapshot(version, simulated, now_s, host, living, processes, bare, notices, values, last)


def _ordered(processes: Iterable[Process]) -> tuple[Process, ...]:
    """Living ones first, each group by start; the newest of the dead first."""
    found = list(processes)
    living = sorted(
        (p for p in found if p.state != "dead"), key=lambda p: (p.key.start_ticks, p.pid)
    )
    dead = sorted((p for p in found if p.state == "dead"), key=lambda p: -(p.sampled_at_s or 0.0))
    return (*living, *dead)


def _values(readings: Iterable[Reading], now_s: float, dead: frozenset[ProcessKey]) -> Values:
    best: dict[tuple[Subject, str], tuple[tuple[bool, int, float], Reading]] = {}
    for r in readings:
        age_s = now_s - r.at_s
        stale = age_s > r.fresh_s
        if age_s > r.fresh_s + DROP_AFTER_S and _process_of(r.subject) not in dead:
            continue
        rank = (stale, _RANK.get((r.metric, r.source), len(_RANK)), age_s)
        known = best.get((r.subject, r.metric))
        if known is None or rank < known[0]:
            best[r.subject, r.metric] = (rank, r)
    return {
        key: Value(r.value, r.source, max(0.0, now_s - r.at_s), stale)
        for key, ((stale, _, _), r) in best.items()
    }


def _process_of(subject: Subject) -> ProcessKey | None:
    if isinstance(subject, DeviceKey):
        return subject.process
    return subject if isinstance(subject, ProcessKey) else None


def _notices(processes: Iterable[Process], values: Values) -> tuple[Notice, ...]:
    """What a person can act on, of processes that still live."""
    found: list[Notice] = []
    for p in processes:
        if p.state == "dead":
            continue
        found += p.warnings
        recent = values.get((p.key, "recent_compilations"))
        if recent is not None and not recent.stale and recent.value >= RECOMPILATIONS_LEAST:
            found.append(_recompiling(p, int(recent.value)))
        if p.state == "silent":
            message = "its agent has stopped writing: hung, stopped, or switched off"
            found.append(Notice("silent_agent", message, p.pid))
    return tuple(found)


def _recompiling(p: Process, count: int) -> Notice:
    names = p.facts.get("recompiled")
    what = f" ({names})" if names else ""
    return Notice(
        "recompiling",
        f"{count} compilations in the last minute{what}: "
        "shapes or static arguments that change make XLA compile again",
        p.pid,
    )
