"""What a person can act on, of processes that still live and of the chips. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpusmi.merge.causes import warnings
from tpusmi.merge.witnesses import stopped
from tpusmi.model import (
    HOLDERS,
    LIBTPU,
    LOST_AFTER_S,
    LOST_CODES,
    OK,
    OTHER_MOUNTS,
    STALE_HOLDER,
    SUSPECT_HOLDER,
    Chip,
    Device,
    Link,
    LockState,
    Notice,
    Process,
    Snapshot,
    State,
    Verdict,
)
from tpusmi.model.several import fresh, least
from tpusmi.text import counted, elapsed

UNUSED_S = 300.0
PERSISTENT, UNUSABLE = 6, 10
"""Health of a link from which on it is more than a passing fault."""


def notices(s: Snapshot) -> tuple[Notice, ...]:
    """Every notice of a snapshot: of the chips first, then of each living process.

    None of a process that is not verified: its number may be another's.
    """
    collected = [*_of_sight(s), *_of_chips(s), *_of_strangers(s), *_of_lock_files(s)]
    for p in s.processes:
        if not p.is_dead and p.is_verified:
            collected += _of_verdict(p)
            collected += p.warnings
            collected += _of_use(s, p)
    return tuple(collected)


def _of_sight(s: Snapshot) -> Iterator[Notice]:
    """That a node may have a holder that cannot be seen."""
    held = {node for p in s.processes if not p.is_dead for node in p.holds}
    if s.visibility.reason and not held.issuperset(s.visibility.nodes):
        message = next((o.message for o in s.sources if o.source == HOLDERS), "")
        reason = s.visibility.reason
        yield Notice("unseen_holders", message if reason in message else reason)


def _of_verdict(p: Process) -> Iterator[Notice]:
    """That a holder is stale, or may be. A process just detached from its shell is not."""
    age_s = None if p.life is None else p.life.age_s
    is_new = p.stale_code in LOST_CODES and age_s is not None and age_s < LOST_AFTER_S
    may_be = p.verdict == Verdict.MAYBE and not is_new
    text = f"holds the TPU and {p.judgment}"
    if p.verdict == Verdict.STALE:
        yield Notice(STALE_HOLDER, text, p.pid)
    elif may_be or (p.verdict == Verdict.UNKNOWN and p.stale_code):
        yield Notice(SUSPECT_HOLDER, text, p.pid)


def _of_chips(s: Snapshot) -> Iterator[Notice]:
    for chip in s.chips:
        for note in chip.notes:
            yield Notice("chip", f"chip {chip.index}: {note}")
        throttle = s.value("throttle_percent", chip.key)
        if throttle:
            yield Notice("throttled", f"chip {chip.index} is throttled by {throttle:.0f} %")
    for link in s.links:
        if link.health:
            yield Notice("ici_link", _link(link, s.chips))


def _of_lock_files(s: Snapshot) -> Iterator[Notice]:
    """A lock file that keeps this user out, or that no longer keeps any process out."""
    for file in s.lock_files:
        if file.state in (LockState.BLOCKING, LockState.DELETED):
            yield Notice("lock_file", f"{file.path}: {file.message}")


def _of_strangers(s: Snapshot) -> Iterator[Notice]:
    """Servers on a machine where no TPU can be seen."""
    if s.chips or any(p.holds for p in s.processes):
        return
    for server in s.servers:
        if server.ids:
            yield Notice(
                "no_chips",
                f"{server.address} reports {counted(len(server.ids), 'device')}, but no TPU can be "
                "seen on this machine: a container, a tunnel to another one, or a simulator",
            )


def _link(link: Link, chips: Sequence[Chip]) -> str:
    state = "has passing faults"
    if link.health >= PERSISTENT:
        state = "cannot be used" if link.health >= UNUSABLE else "has a lasting fault"
    of = f" of chip {link.chip}" if any(c.index == link.chip for c in chips) else ""
    return f"ICI link {link.name}{of} {state} (health {link.health})"


def _of_use(s: Snapshot, p: Process) -> Iterator[Notice]:
    """That its agent is silent, and how the process uses the chips it has."""
    if p.state == State.SILENT:
        why = f"it is {stopped(p)}" if stopped(p) else "hung, stopped, or switched off"
        yield Notice("silent_agent", f"its agent has stopped writing: {why}", p.pid)
    devices = [d for d in s.devices if p.key in d.owners and d.chip is not None]
    wall = _wall(s, p)
    if p.holds and (notice := _why_no_metrics(s, p, devices, has_no_agent=not wall)):
        yield notice
    if p.holds and wall:
        yield Notice("other_mounts", wall, p.pid)
    idle_s = least(s, "idle_s", devices)
    if idle_s is not None and idle_s >= UNUSED_S and p.stale_code != "idle":
        yield Notice("unused", f"has held the TPU idle for {elapsed(idle_s)}", p.pid)
    yield from warnings(s, p)


def _wall(s: Snapshot, p: Process) -> str:
    """Why its agent cannot be seen, if it has one; empty where it can."""
    if p.interval_s is not None:
        return ""
    walls = (m for m in s.missing if m.code == OTHER_MOUNTS and m.process == p.key)
    return next((m.message.removeprefix(f"pid {p.pid} ") for m in walls), "")


def _why_no_metrics(
    s: Snapshot, p: Process, devices: Sequence[Device], has_no_agent: bool
) -> Notice | None:
    """Why a holder has no metrics, with what to do; None when it has some."""
    metrics = ("hbm_used_bytes", "duty_cycle_percent")
    if any(fresh(s, name, d) is not None for name in metrics for d in devices):
        return None
    held = f"holds {', '.join(p.holds[:2])}{'…' if len(p.holds) > 2 else ''}"
    servers = [server for server in s.servers if server.may_be_of(p)]
    if servers:
        empty = any(server.status == OK and not server.ids for server in servers)
        message = f"{held} and has no program loaded yet; metrics appear once one runs"
        return Notice("no_program", message, p.pid) if empty else None
    is_advised = p.interval_s is None and has_no_agent
    cure = " (call tpusmi.start() in it to see more)" if is_advised else ""
    return Notice("no_metrics", f"{held} and {_libtpus_reason(s, p)}{cure}", p.pid)


def _libtpus_reason(s: Snapshot, p: Process) -> str:
    """Why libtpu gave none: not served, not reachable, grpcio not installed."""
    about = f"pid {p.pid} "
    libtpu = [source for source in s.sources if source.source == LIBTPU]
    missing = [source.message for source in libtpu if "not installed" in source.message]
    own = [n.removeprefix(about) for o in libtpu for n in o.notes if n.startswith(about)]
    reason = (*missing, *own, "serves no metrics")[0]
    if p.environment.get("TPU_PROCESS_ADDRESSES") == "local" and not missing:
        reason = "serves no metrics: TPU_PROCESS_ADDRESSES=local (unset it)"
    return reason
