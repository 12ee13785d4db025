"""A moment of a host for every case of the table of notices, each made by the program itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from support.device_feeds import v5e_chips
from support.feeds import Job, MomentFeed, ScriptedFeed
from support.memory_histories import MIB
from support.watched_memory import Moment
from tpusmi.merge.advice import advised
from tpusmi.merge.memory_watch import MemoryWatch
from tpusmi.merge.notices import notices
from tpusmi.merge.sightings import Sightings
from tpusmi.model import (
    AGENT,
    FAILED,
    LIBTPU,
    OK,
    OTHER_MOUNTS,
    ChipKey,
    History,
    Life,
    Link,
    LockFile,
    LockState,
    MemoryProfile,
    Missing,
    Notice,
    Number,
    Outcome,
    Process,
    Reading,
    Server,
    Sign,
    Site,
    Snapshot,
    Value,
    Verdict,
    Visibility,
)

PID, OTHER = 41234, 52870
AGE_S = 185.0
"""For how long a viewer has seen what has no age of its own."""
PORT = "localhost:36203"
STOPPED = Life("T", 1, PID, PID, 600.0, 8, signs=(Sign("stopped", "stopped by SIGSTOP"),))
NODES = tuple(f"/dev/vfio/{n}" for n in range(8))
OF_LIBTPU = ("duty_cycle_percent", "hbm_bandwidth_utilization_percent", "idle_s", "hlo_queue_size")


@cache
def host() -> Snapshot:
    """Two jobs on the eight chips of a host, about which there is nothing to say."""
    jobs = (
        Job(PID, "python train.py", 0, 4, on_chips=True, holds=NODES[:4]),
        Job(OTHER, "python serve.py", 4, 4, on_chips=True, holds=NODES[4:], user="grace"),
    )
    return ScriptedFeed(jobs, changes={"chips": v5e_chips(8)}).snapshot()


@cache
def moment(case: str) -> Snapshot:
    """The host with what that notice is about, seen for some minutes."""
    s = MAKERS[case](host())
    s = s._replace(processes=tuple(map(advised, s.processes)))
    seen, sightings = (*s.warnings, *notices(s)), Sightings()
    sightings.aged(seen, s.at_s - AGE_S)
    return s._replace(warnings=sightings.aged(seen, s.at_s))


def feed_of(case: str) -> MomentFeed:
    """A feed of that moment."""
    return MomentFeed(moment(case))


def _job(**fields: Any) -> Callable[[Snapshot], Snapshot]:
    """With other fields of the first job."""

    def changed(s: Snapshot) -> Snapshot:
        first, *others = s.processes
        return s._replace(processes=(first._replace(**fields), *others))

    return changed


def _values(**values: Number | None) -> Callable[[Snapshot], Snapshot]:
    """With other values of the first job and of its devices; None is unknown."""

    def changed(s: Snapshot) -> Snapshot:
        subjects = {s.processes[0].key, *(d.key for d in s.devices[:4])}
        found = dict(s.values)
        for (subject, name), value in s.values.items():
            if subject in subjects and name in values:
                del found[subject, name]
                new = values[name]
                if new is not None:
                    found[subject, name] = value._replace(value=new)
        return s._replace(values=found)

    return changed


def _both(*changes: Callable[[Snapshot], Snapshot]) -> Callable[[Snapshot], Snapshot]:
    def changed(s: Snapshot) -> Snapshot:
        for change in changes:
            s = change(s)
        return s

    return changed


def _host(**fields: Any) -> Callable[[Snapshot], Snapshot]:
    return lambda s: s._replace(**fields)


def _agent(code: str, message: str) -> Callable[[Snapshot], Snapshot]:
    return _job(warnings=(Notice(code, message, PID),))


def _verdict(verdict: Verdict, reason: str) -> Callable[[Snapshot], Snapshot]:
    return _job(verdict=verdict, stale_code="orphaned", stale_reason=reason)


def _server(**fields: Any) -> Callable[[Snapshot], Snapshot]:
    """The first job's metrics server, which is the only source of its work."""

    def changed(s: Snapshot) -> Snapshot:
        server = Server(PORT, s.processes[0].key, status=FAILED, silent_s=12.0)
        s = _values(**dict.fromkeys(OF_LIBTPU))(s)
        failed = Outcome(LIBTPU, FAILED, fields["message"])
        return s._replace(servers=(server._replace(**fields),), sources=(*s.sources, failed))

    return changed


def _mute(**fields: Any) -> Callable[[Snapshot], Snapshot]:
    """Nothing is known of the devices of the first job, which has no agent."""
    names = (*OF_LIBTPU, "hbm_used_bytes", "tensorcore_utilization_percent")
    none = {"interval_s": None, "sampled_at_s": None, "phase": None, "profile": None}
    return _both(_values(**dict.fromkeys(names)), _job(**{**none, **fields}))


def _wall(s: Snapshot) -> Snapshot:
    text = f"pid {PID} does not share this command's /dev/shm: try sudo"
    p: Process = s.processes[0]
    return s._replace(missing=(Missing(AGENT, text, p.uid, p.key, OTHER_MOUNTS),))


def _throttled(s: Snapshot) -> Snapshot:
    value = Value(40.0, "libtpu_sdk", 1.0, False)
    return s._replace(values={**s.values, (ChipKey(1), "throttle_percent"): value})


def _growing(**fields: Any) -> Callable[[Snapshot], Snapshot]:
    """What a watch says of the first job after six minutes in which it kept 120 MiB a minute more:
    in a line of code, in its live arrays, or only in its memory in use. `keeps` says which of them.
    """
    keeps: tuple[str, ...] = fields.pop("keeps")

    def changed(s: Snapshot) -> Snapshot:
        first, *others = s.processes
        watch, history, devices = MemoryWatch(), History(), s.devices[:4]
        for ago_s in range(360, -1, -4):
            at_s, size = s.at_s - ago_s, (9000 - 2 * ago_s) * MIB
            history.add(
                Reading(name, d.key, size // 4, at_s, AGENT, 5.0)
                for name in keeps
                if name != "lines"
                for d in devices
            )
            site = Site("log_metrics", "/home/ada/llm/metrics.py", 27, "buffer", size, 9)
            profile = MemoryProfile(at_s, (site,) if "lines" in keeps else ())
            first = first._replace(profile=profile, **fields)
            watch.look(Moment((first,), (devices, ()), {}, {}), history, at_s)
        return watch.on(s._replace(processes=(first, *others)))

    return changed


def _lock(state: LockState, message: str, pids: tuple[int, ...] = ()) -> LockFile:
    return LockFile("/tmp/libtpu_lockfile", state, owner="grace", pids=pids, message=message)


_SILENT = "port 36203 has not answered for 12 s"
_ADDRESSES = {"TPU_PROCESS_ADDRESSES": "local"}
_BUSY, _MXU = "duty_cycle_percent", "tensorcore_utilization_percent"
_BANDWIDTH = "hbm_bandwidth_utilization_percent"
_ORPHANED = "its launcher, process 41230, has ended; its chips have run nothing for 3h00m"
MAKERS: Mapping[str, Callable[[Snapshot], Snapshot]] = {
    "stale_holder": _verdict(Verdict.STALE, _ORPHANED),
    "suspect_holder": _verdict(Verdict.MAYBE, _ORPHANED),
    "unseen_holders": _host(
        visibility=Visibility((*NODES, "/dev/vfio/8"), (), 3, False, "3 processes not inspected"),
        sources=(Outcome("holders", OK, "2 holders (3 processes not inspected)"),),
    ),
    "chip": lambda s: s._replace(
        chips=(*s.chips[:7], s.chips[7]._replace(notes=("has no device node",)))
    ),
    "throttled": _throttled,
    "ici_link": _host(links=(Link(1, "tray1.chip1.ici0.int", 10),)),
    "ici_link.passing": _host(links=(Link(1, "tray1.chip1.ici0.int", 3),)),
    "lock_file": _host(
        lock_files=(_lock(LockState.BLOCKING, "left by grace, not locked, and in the way"),)
    ),
    "lock_file.deleted": _host(
        lock_files=(_lock(LockState.DELETED, f"deleted while pid {OTHER} locks it", (OTHER,)),)
    ),
    "no_chips": lambda s: s._replace(
        chips=(),
        processes=tuple(p._replace(holds=()) for p in s.processes),
        servers=(Server("localhost:8431", None, ids=(0, 1, 2, 3)),),
    ),
    "silent_agent": _job(state="silent", sampled_at_s=99_930.0),
    "silent_agent.stopped": _job(state="silent", sampled_at_s=99_930.0, life=STOPPED),
    "silent_server": _server(message=_SILENT),
    "silent_server.stopped": _both(
        _server(message=f"{_SILENT}: pid {PID} is stopped by SIGSTOP"), _job(life=STOPPED)
    ),
    "silent_server.stranger": _server(
        message="port 36203 answers HTTP/1, not gRPC", is_service=False
    ),
    "silent_server.unowned": _server(message=_SILENT, process=None),
    "other_mounts": _both(_job(interval_s=None, sampled_at_s=None, profile=None), _wall),
    "no_program": _both(_mute(), lambda s: s._replace(servers=(Server(PORT, s.processes[0].key),))),
    "no_metrics": _mute(),
    "no_metrics.local": _mute(environment=_ADDRESSES),
    "no_metrics.package": _both(
        _mute(), _host(sources=(Outcome(LIBTPU, OK, "protobuf is not installed"),))
    ),
    "no_metrics.agent": _both(_mute(), _job(interval_s=1.0, sampled_at_s=99_999.6)),
    "unused": _values(idle_s=400.0, duty_cycle_percent=0.0),
    "memory_grows": _growing(keeps=("lines", "live_array_bytes", "hbm_used_bytes")),
    "memory_grows.lines": _growing(keeps=("live_array_bytes", "hbm_used_bytes")),
    "memory_grows.programs": _growing(keeps=("hbm_used_bytes",)),
    "memory_grows.bare": _growing(keeps=("hbm_used_bytes",), interval_s=None, sampled_at_s=None),
    "cpu_fallback": _agent(
        "cpu_fallback", "JAX runs on the CPU although 8 TPU functions are on the PCI bus"
    ),
    "agent_off": _agent("agent_off", "the agent switched itself off: ValueError: x"),
    "no_memory_profile": _agent(
        "no_memory_profile",
        "the memory profile would pause the job for 1.2 s each time; disabled",
    ),
    "no_utilization": _agent(
        "no_utilization", "libtpu's metrics of this job are no longer read: too slow"
    ),
    "no_profiler_server": _agent(
        "no_profiler_server", "port 9012 is in use: Address already in use"
    ),
    "compilations_missed": _agent(
        "compilations_missed", "a library has cleared JAX's monitoring listeners"
    ),
    "flops_ignored": _agent("flops_ignored", "step(flops=) was given no number of FLOPs"),
    "flops_unknown": _agent("flops_unknown", "track(train_step): XLA reports no FLOPs"),
    "flops_incomplete": _agent("flops_incomplete", "track(train_step): has loops"),
    "flops_estimated": _agent("flops_estimated", "track(train_step): an estimate"),
    "busy_for_nothing": _values(**{_BUSY: 100.0, _MXU: 0.0, _BANDWIDTH: 0.0}),
    "recompiling": _values(recent_compilations=12),
    "starved": _values(**{_BUSY: 21.0, _MXU: 9.0}),
    "busy_without_mxu": _values(**{_BUSY: 97.0, _MXU: 3.0, _BANDWIDTH: 75.0}),
}
"""By case: what makes a host on which nothing is wrong one that has this notice."""
