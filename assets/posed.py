"""A simulated host that stands still for its picture: the same at each run, on every machine.

Everything measured is the simulator's, read by the real sources. What differs from run to run, as
pids, times and the Python it runs on, is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from tpusmi.collect import open_collector
from tpusmi.model import (
    LIBTPU_SDK,
    DeviceKey,
    History,
    Life,
    Process,
    ProcessKey,
    Reading,
    RowKey,
    Snapshot,
    Subject,
)
from tpusmi.simulate.host import HostPlan, start
from tpusmi.simulate.workload import Workload
from tpusmi.sources.segments import Segments

AT_S = 100_000.0
TIME = "2026-03-02T09:00:00Z"
TRAINING_S = 870.0
"""Age of the jobs: in the middle of a long phase of training."""
READ_WITHIN_S = 20.0
USERS, PIDS = ("ada", "grace"), (41_234, 52_870)
VERSIONS = {"python_version": "3.12.4", "jax_version": "0.10.2", "jaxlib_version": "0.10.2"}
MOVES = "hbm_used_bytes"
"""Never the same twice, but where time stands still."""
REPEATED_WITHIN_S = 0.5
"""The processes of one host sample at slightly different times."""
MXU = "tensorcore_utilization_percent"


class PosedFeed:
    """A feed of one moment of a simulated host, with ten minutes of history before it."""

    def __init__(
        self,
        machine: str,
        chips: int | None = None,
        processes: int = 2,
        faults: tuple[str, ...] = (),
    ) -> None:
        plan = HostPlan(
            machine,
            chips=chips,
            processes=processes,
            faults=faults,
            agent=True,
            freeze_s=TRAINING_S,
        )
        with start(plan) as host:
            collector = open_collector(host, True, detailed=True)
            collector.read_once(READ_WITHIN_S)  # the chips, for those that ask about them
            s = collector.read_once(READ_WITHIN_S)
            collector.stop()
            kept = Segments(host, with_past=True).read(s.at_s).past
        keys = {p.key: ProcessKey(pid, 100) for p, pid in zip(s.processes, PIDS, strict=False)}
        self.history = History()
        self.history.add(sorted(_past(s, kept, keys, plan.seed), key=lambda r: r.at_s))
        self._snapshot = _posed(s, keys)

    def snapshot(self) -> Snapshot:
        """The moment."""
        return self._snapshot


def _posed(s: Snapshot, keys: dict[ProcessKey, ProcessKey]) -> Snapshot:
    found: Snapshot = _renamed(s, keys)
    return found._replace(
        at_s=AT_S,
        host=found.host._replace(name="tpu-vm", time=TIME, boot_id=None),
        processes=tuple(map(_posed_process, found.processes, USERS)),
        values={
            (_renamed(key, keys), name): v._replace(age_s=0.4, stale=False)
            for (key, name), v in s.values.items()
        },
    )


def _posed_process(p: Process, user: str) -> Process:
    life = Life("S", 5203, p.pid, 5203, TRAINING_S + 40, 96, ancestors=((5203, "bash -l"),))
    return p._replace(
        user=user,
        command="python train.py --config=simulated",
        sampled_at_s=AT_S - 0.4,
        facts={**p.facts, **VERSIONS},
        profile=p.profile and p.profile._replace(at_s=AT_S - 4),
        life=life._replace(
            terminal="pts/3", cpu_percent=118.0, rss_bytes=9 << 30, cwd="/srv/train"
        ),
        environment={n: v for n, v in p.environment.items() if n != "TPU_RUNTIME_METRICS_PORTS"},
    )


def _renamed(value: Any, keys: dict[ProcessKey, ProcessKey]) -> Any:
    """The same with other processes, all the way down."""
    if isinstance(value, ProcessKey):
        return keys.get(value, value)
    if isinstance(value, RowKey):
        return value if value.server == "sdk" else value._replace(server="server")
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_renamed(v, keys) for v in value))
    return tuple(_renamed(v, keys) for v in value) if isinstance(value, tuple) else value


def _past(
    s: Snapshot, kept: Iterable[Reading], keys: dict[ProcessKey, ProcessKey], seed: int
) -> Iterator[Reading]:
    """What the jobs' agents have kept, and what an open dashboard would have kept of the MXU."""
    series: dict[tuple[Subject, str], list[Reading]] = {}
    moving = [*kept]
    until_s = _stood_still_at_s([r for r in moving if r.metric == MOVES])
    for r in moving:
        series.setdefault((r.subject, r.metric), []).append(r)
    # By samples and not by times: what a profile tells is as old as the profile.
    late = {key: sum(r.at_s > until_s for r in series[key, MOVES]) for key in keys}
    for (subject, name), readings in series.items():
        process = subject.process if isinstance(subject, DeviceKey) else subject
        for ago_s, r in enumerate(reversed(readings[: len(readings) - late[process]])):
            key = _renamed(subject, keys)
            yield Reading(name, key, r.value, AT_S - ago_s, r.source, r.fresh_s)
    load = Workload(seed)
    for d, ago_s in product(s.devices, range(600)):
        mxu = 100 * load.mxu(TRAINING_S - ago_s, d.id or 0)
        yield Reading(MXU, _renamed(d.key, keys), mxu, AT_S - ago_s, LIBTPU_SDK, 5.0)


def _stood_still_at_s(readings: Sequence[Reading]) -> float:
    """When the last sample was taken that is not a repetition of the one before it."""
    (subject, last), at_s = (readings[-1].subject, readings[-1].value), readings[-1].at_s
    for r in reversed([r for r in readings if r.subject == subject]):
        if r.value != last:
            return at_s
        at_s = r.at_s + REPEATED_WITHIN_S
    return at_s
