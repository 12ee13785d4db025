"""What would be ended and what not, with the reason for either. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tpusmi.model import LOCK_BLOCKING, Process, Snapshot
from tpusmi.model.holding import blind


class Request(NamedTuple):
    """Which holders to end: those that every filter given lets through."""

    pids: tuple[int, ...] = ()
    chips: tuple[int, ...] = ()
    stale: bool = False
    all_users: bool = False
    """Also those of other users."""

    @property
    def is_empty(self) -> bool:
        """True when it names nobody. It does not mean everybody."""
        return not (self.pids or self.chips or self.stale)


class Me(NamedTuple):
    """Who asks."""

    pid: int
    ancestors: frozenset[int]
    """The shell, the terminal, a notebook's kernel: whatever started us."""
    users: frozenset[str]
    """Whose processes are mine: with sudo those of the user before, too."""


class Target(NamedTuple):
    """A holder to end."""

    process: Process
    why: str


class Refusal(NamedTuple):
    """A process that was asked for and is left alone."""

    pid: int
    process: Process | None
    """None for one that holds nothing, or is not there."""
    why: str


class Plan(NamedTuple):
    """What to do, in order."""

    targets: tuple[Target, ...] = ()
    refused: tuple[Refusal, ...] = ()
    nodes: tuple[str, ...] = ()
    """Device nodes that the targets hold."""
    also_held_by: tuple[int, ...] = ()
    """Holders of those nodes that are not targets: the nodes will not be free."""
    lock_files: tuple[str, ...] = ()
    """In the way of the next job; removed if nobody holds the TPU by then."""
    unseen: str = ""
    """What could not be inspected, in words: holders may be among it."""
    blind: str = ""
    """Why holders could not be looked for at all; empty when they were."""


def make_plan(s: Snapshot, request: Request, me: Me) -> Plan:
    """The plan for a request on that snapshot. An empty request ends nobody."""
    holders = [p for p in s.processes if p.holds and p.state != "dead"]
    targets: list[Target] = []
    refused = [_not_a_holder(s, pid) for pid in _missing(request.pids, holders)]
    for p in [] if request.is_empty else _asked_for(s, request, holders):
        why = _why_not(s, p, request, me)
        if why:
            refused.append(Refusal(p.pid, p, why))
        else:
            targets.append(Target(p, _why(p)))
    nodes = tuple(dict.fromkeys(node for t in targets for node in t.process.holds))
    ending = {t.process.key for t in targets}
    others = [p for p in holders if p.key not in ending]
    return Plan(
        tuple(targets),
        tuple(refused),
        nodes,
        tuple(p.pid for p in others if set(p.holds) & set(nodes)),
        tuple(f.path for f in s.lock_files if f.state == LOCK_BLOCKING and not others),
        s.unseen,
        blind(s),
    )


def _missing(pids: Iterable[int], holders: Iterable[Process]) -> list[int]:
    known = {p.pid for p in holders}
    return [pid for pid in dict.fromkeys(pids) if pid not in known]


def _not_a_holder(s: Snapshot, pid: int) -> Refusal:
    known = next((p for p in s.processes if p.pid == pid and p.state != "dead"), None)
    if known is not None and known.loaded_only:
        return Refusal(pid, known, "has libtpu loaded, and holds no TPU")
    if blind(s):
        return Refusal(pid, known, blind(s))
    perhaps = ", or may not be seen" if s.hidden or s.own_namespace else ""
    return Refusal(pid, known, f"holds no TPU{perhaps}")


def _asked_for(s: Snapshot, request: Request, holders: Iterable[Process]) -> list[Process]:
    """The holders that a request is about. By pid they are asked for even if they are not stale."""
    nodes = _nodes_of(s, request.chips)
    return [
        p
        for p in holders
        if (not request.pids or p.pid in request.pids)
        and (not request.chips or set(p.holds) & nodes)
        and (not request.stale or p.stale or p.pid in request.pids)
    ]


def _why_not(s: Snapshot, p: Process, request: Request, me: Me) -> str:
    """Why this one is left alone; empty when it is not."""
    near = {1: "is the init process", me.pid: "is this process itself"}
    if p.pid in near or p.pid < 1:
        return near.get(p.pid, "is no process")
    if p.pid in me.ancestors:
        return "started this tpusmi, which would end with it (a notebook's kernel, a shell)"
    if p.life is not None and p.life.platform:
        return "is an agent of the platform"
    return _why_not_asked(s, p, request, me)


def _why_not_asked(s: Snapshot, p: Process, request: Request, me: Me) -> str:
    """Why the request does not reach this one; empty when it does."""
    if request.stale and not p.stale:
        return f"is not stale{f': {p.stale_reason}' if p.stale_reason else ''}"
    if p.user not in me.users and not request.all_users:
        return f"belongs to {p.user or 'an unknown user'}: only with --all-users"
    named = _nodes_of(s, request.chips)
    beyond = [node for node in p.holds if request.chips and node not in named]
    if beyond:
        return f"also holds {', '.join(beyond)}, of chips that were not named"
    return ""


def _why(p: Process) -> str:
    if p.stale:
        return f"stale ({p.stale_code}): {p.stale_reason}"
    return f"not stale: {p.stale_reason}" if p.stale_reason else "not stale, as far as is known"


def _nodes_of(s: Snapshot, chips: Iterable[int]) -> set[str]:
    return {node for chip in s.chips if chip.index in set(chips) for node in chip.nodes}
