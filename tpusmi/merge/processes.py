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
)


def proven(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """The outcomes without what segments say of a process that the kernel shows as another user's.

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
    if isinstance(subject, DeviceKey):
        return subject.process
    return subject if isinstance(subject, ProcessKey) else None


def joined(processes: Iterable[Process]) -> tuple[Process, ...]:
    """One for each key: who it is and what it holds by the kernel; the rest by its agent."""
    found: dict[ProcessKey, Process] = {}
    for p in processes:
        known = found.get(p.key)
        if known is None:
            found[p.key] = p
            continue
        told, seen = (known, p) if known.interval_s is not None else (p, known)
        if seen.interval_s is not None:
            continue  # two segments of one process
        # A leader may have ended, for its agent, and leave threads that hold: the kernel sees them.
        lives = seen.holds and told.is_dead
        found[p.key] = told._replace(
            user=seen.user,
            uid=seen.uid,
            command=seen.command or told.command,
            state=State.SILENT if lives else told.state,
            holds=seen.holds,
            environment=seen.environment,
            loaded_only=seen.loaded_only,
            life=seen.life,
        )
    return tuple(found.values())


def by_process(devices: Iterable[Device]) -> dict[ProcessKey | None, list[Device]]:
    """The devices that agents tell of, by the process of each."""
    found: dict[ProcessKey | None, list[Device]] = {}
    for d in devices:
        found.setdefault(d.key.process, []).append(d)
    return found


def is_claim(key: ProcessKey | None) -> bool:
    """True for a process of which only a file says that it is there."""
    return key is not None and bool(key.claim)


def of_claims(
    claimed: Mapping[ProcessKey | None, list[Device]], processes: Iterable[Process], has_own: bool
) -> tuple[list[Device], list[Device]]:
    """Of the devices that only files name: those to show as the machine's, and all others.

    They are the machine's only where it has none of its own that are known, as in a container
    beside that of the job, and only while the job lives, as far as anything tells.
    """
    live = {p.key for p in processes if p.is_living and not has_own}
    shown = [d for key, own in claimed.items() if key in live for d in own]
    return shown, [d for key, own in claimed.items() if key not in live for d in own]


def told_apart(devices: Iterable[Device]) -> list[Device]:
    """The devices, no two of the same name. Those of the chips have their index in it where their
    ids are not unique. Any other bears its pid or port, where another device has its name.
    """
    found = list(devices)
    numbers = [d.number for d in found if d.chip is not None]
    if len(set(numbers)) < len(numbers):
        found = [d._replace(by_index=d.chip is not None) for d in found]
    for mark in (_pid_or_port, _pid_and_start):
        names = Counter(d.name for d in found)
        found = [d if names[d.name] == 1 else d._replace(apart_by=mark(d)) for d in found]
    return found


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
