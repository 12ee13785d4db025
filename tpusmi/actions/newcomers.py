"""Who has taken a node since the plan was made: what was ended, started again, or somebody else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tpusmi.actions.outcome import Newcomer
from tpusmi.actions.plan import Plan, Starter, Target
from tpusmi.actions.starters import starter_of
from tpusmi.model import Host, ProcessKey
from tpusmi.sources.holders import procfs
from tpusmi.sources.users import user_name


class Ended(NamedTuple):
    """A target that has ended."""

    target: Target
    at_s: float
    """By CLOCK_BOOTTIME, which counts the start ticks of processes, too."""


class _Seen(NamedTuple):
    """A holder that is not of the plan."""

    key: ProcessKey
    command: str
    starter: Starter | None


def newcomers(
    host: Host,
    plan: Plan,
    held: Mapping[str, tuple[int, ...]],
    ended: Sequence[Ended],
    since_s: float,
) -> tuple[Newcomer, ...]:
    """Those who hold a node now and are not of the plan, whose first signal went at `since_s`."""
    listed = (*plan.refused, *plan.spared)
    others = {*plan.also_held_by, *(r.pid for r in listed if r.process is not None)}
    found = []
    for seen in _seen(host, (pid for pids in held.values() for pid in pids)):
        if seen.key.pid in others or any(t.process.key == seen.key for t in plan.targets):
            continue
        nodes = tuple(node for node, pids in held.items() if seen.key.pid in pids)
        found.append(_newcomer(host, seen, nodes, ended, since_s))
    return tuple(found)


def _seen(host: Host, pids: Iterable[int]) -> Iterable[_Seen]:
    for pid in dict.fromkeys(pids):
        process = host.path(f"/proc/{pid}")
        stat = procfs.read_stat(process)
        if stat is not None:
            command = "" if stat.state == "D" else procfs.command(process)
            starter = starter_of(host, pid, ())
            yield _Seen(ProcessKey(pid, stat.start_ticks), command, starter)


def _newcomer(
    host: Host, seen: _Seen, nodes: tuple[str, ...], ended: Sequence[Ended], since_s: float
) -> Newcomer:
    uid = procfs.read_status(host.path(f"/proc/{seen.key.pid}")).uid
    tick_s = 1 / procfs.ticks_per_s()
    began_s = seen.key.start_ticks * tick_s  # or up to a tick later
    before = next((e for e in reversed(ended) if _is_like(seen, e.target)), None)
    is_later = before is not None and began_s + tick_s >= since_s
    return Newcomer(
        *seen.key[:2],
        uid,
        None if uid is None else user_name(uid),
        seen.command,
        nodes,
        None if before is None else before.target.process.pid,
        max(0.0, began_s - before.at_s) if before is not None and is_later else None,
        seen.starter if before is None else starter_of(host, seen.key.pid, (), again=True),
    )


def _is_like(seen: _Seen, target: Target) -> bool:
    """The same unit, container or parent starts it, or the command is the same."""
    old, new = target.starter, seen.starter
    if old is not None and new is not None and old[:2] == new[:2]:
        return True
    return bool(seen.command) and seen.command == target.process.command
