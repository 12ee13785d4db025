"""The processes of one moment: the kernel says who each is, and its agent what it does. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tpusmi.model import (
    HOLDERS,
    Device,
    DeviceKey,
    Outcome,
    Process,
    ProcessKey,
    State,
    Subject,
    TracedKey,
)


def proven(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """The outcomes without the segments of a process that the kernel shows as another user's.

    The agents' source has asked the kernel as well, but at another moment.
    """
    users = {p.key: p.uid for o in outcomes if o.source == HOLDERS for p in o.processes}
    wrong = {
        p.key
        for o in outcomes
        if o.source != HOLDERS
        for p in o.processes
        if p.key in users and users[p.key] != p.uid
    }
    return (
        [o if o.source == HOLDERS else _without(o, wrong) for o in outcomes] if wrong else outcomes
    )


def _without(o: Outcome, wrong: set[ProcessKey]) -> Outcome:
    return o._replace(
        readings=tuple(r for r in o.readings if process_of(r.subject) not in wrong),
        devices=tuple(d for d in o.devices if d.key.process not in wrong),
        processes=tuple(p for p in o.processes if p.key not in wrong),
    )


def process_of(subject: Subject | None) -> ProcessKey | None:
    """The process that a reading is about, itself or with its devices."""
    if isinstance(subject, (DeviceKey, TracedKey)):
        return subject.process
    return subject if isinstance(subject, ProcessKey) else None


def joined(processes: Iterable[Process]) -> tuple[Process, ...]:
    """One for each key: who it is and what it holds by the kernel; the rest by its agent."""
    by_key: dict[ProcessKey, Process] = {}
    for p in processes:
        other = by_key.setdefault(p.key, p)
        if other is p:
            continue
        agent, kernel = (other, p) if other.interval_s is not None else (p, other)
        if kernel.interval_s is not None:
            continue  # two segments of one process
        # A leader may have ended, for its agent, and leave threads that hold: the kernel sees them.
        lives = kernel.holds and agent.is_dead
        by_key[p.key] = agent._replace(
            user=kernel.user,
            uid=kernel.uid,
            command=kernel.command or agent.command,
            state=State.SILENT if lives else agent.state,
            holds=kernel.holds,
            environment=kernel.environment,
            loaded_only=kernel.loaded_only,
            life=kernel.life,
        )
    return tuple(by_key.values())


def by_process(devices: Iterable[Device]) -> dict[ProcessKey | None, list[Device]]:
    """The devices that agents report, by the process of each."""
    grouped: dict[ProcessKey | None, list[Device]] = {}
    for d in devices:
        grouped.setdefault(d.key.process, []).append(d)
    return grouped


def is_claim(key: ProcessKey | None) -> bool:
    """True for a process of which only a file says that it is there."""
    return key is not None and bool(key.claim)


def of_claims(
    claimed: Mapping[ProcessKey | None, list[Device]], processes: Iterable[Process], has_own: bool
) -> tuple[list[Device], list[Device]]:
    """The devices that only files name: those to show as the machine's, and all others.

    They are the machine's only where it has none of its own that are known, as in a container
    beside that of the job, and only while the job lives, as far as anything tells.
    """
    live = {p.key for p in processes if p.is_living and not has_own}
    believed = [d for key, own in claimed.items() if key in live for d in own]
    return believed, [d for key, own in claimed.items() if key not in live for d in own]


def with_names(devices: Iterable[Device]) -> list[Device]:
    """The devices, no two of the same name. Those of the chips have their index in it where their
    ids are not unique. Any other bears its pid or port, where another device has its name.
    """
    named = [*devices]
    numbers = [d.number for d in named if d.chip is not None]
    if len(set(numbers)) < len(numbers):
        named = [d._replace(by_index=d.chip is not None) for d in named]
    for mark in (_pid_or_port, _pid_and_start):
        names = Counter([d.name for d in named])
        if len(names) == len(named):
            break
        named = [d if names[d.name] == 1 else d._replace(apart_by=mark(d)) for d in named]
    return named


def _pid_or_port(d: Device) -> str:
    """The port of the server that numbers it, else its job's pid; empty for a device of the chips,
    which needs neither.
    """
    if d.chip is not None:
        return ""
    return d.key.server.rpartition(":")[2] if d.key.process is None else str(d.key.process.pid)


def _pid_and_start(d: Device) -> str:
    """Processes of several containers can have the same pid."""
    own = d.key.process
    return _pid_or_port(d) if own is None else f"{own.pid}-{own.start_ticks}"
