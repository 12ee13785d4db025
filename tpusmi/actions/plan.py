"""What would be ended and what not, with the reason for either. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tpusmi.model import (
    DENIED,
    FAILED,
    HOLDERS,
    OTHER_MOUNTS,
    LockState,
    Process,
    Snapshot,
    Verdict,
)
from tpusmi.model.holding import blind

_UNJUDGED = "cannot be judged"


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
    uids: frozenset[int]
    """Whose processes are mine."""


class Starter(NamedTuple):
    """What may start a process again after its end."""

    kind: str
    """`unit`, `container` or `parent`."""
    name: str
    """The unit's name, the container's id, the parent's pid."""
    words: str
    """Which it is, and how it is stopped where that is known."""


class Target(NamedTuple):
    """A holder to end."""

    process: Process
    why: str
    starter: Starter | None = None


class Refusal(NamedTuple):
    """A process that was asked for, or could have been meant, and is left alone."""

    pid: int
    process: Process | None
    """None for one that holds nothing, or is not there."""
    why: str
    nodes: tuple[str, ...] = ()
    """Nodes that were asked for with it: its own, or those of its children."""

    @property
    def is_unjudged(self) -> bool:
        """True for a holder that may be stale: whoever could tell was not there to be asked."""
        return self.process is not None and self.process.verdict in (None, Verdict.UNKNOWN)


class Plan(NamedTuple):
    """What to do, in order."""

    targets: tuple[Target, ...] = ()
    refused: tuple[Refusal, ...] = ()
    nodes: tuple[str, ...] = ()
    """Device nodes that were asked for, by the pids or chips that were named; of stale holders
    alone those that no other holder is known to need.
    """
    also_held_by: tuple[int, ...] = ()
    """Holders of those nodes that are not targets: the nodes will not be free."""
    lock_files: tuple[str, ...] = ()
    """In the way of the next job; removed if nobody holds the TPU by then."""
    unseen: str = ""
    """What could not be inspected, in words: holders may be among it."""
    blind: str = ""
    """Why holders could not be looked for at all; empty when they were."""
    spared: tuple[Refusal, ...] = ()
    """Holders that may be stale, and are not certain to be: only their pid ends them."""
    unasked: tuple[str, ...] = ()
    """Witnesses of whether a holder works that could not be asked, and why."""
    uids: frozenset[int] = frozenset()
    """Whose processes are those of who asks."""


def make_plan(s: Snapshot, request: Request, me: Me) -> Plan:
    """The plan for a request on that snapshot. An empty request ends nobody."""
    holders = [p for p in s.processes if p.holds and p.is_verified and not p.is_dead]
    meant = [] if request.is_empty else _asked_for(s, request, holders)
    targets: list[Target] = []
    refused = [_not_a_holder(s, pid, holders) for pid in _missing(request.pids, holders)]
    for p in meant:
        why = _why_not(s, p, request, me)
        if why:
            refused.append(Refusal(p.pid, p, why, p.holds))
        else:
            targets.append(Target(p, _why(p)))
    asked = [*(t.process.holds for t in targets), *(r.nodes for r in refused)]
    nodes = _nodes(s, request, holders, asked)
    ending = {t.process.key for t in targets}
    others = [p for p in holders if p.key not in ending]
    return Plan(
        tuple(targets),
        tuple(refused),
        nodes,
        _also(others, targets, refused, nodes),
        tuple(f.path for f in s.lock_files if f.state == LockState.BLOCKING and not others),
        s.visibility.reason,
        blind(s),
        tuple(_spared(holders, request, me)),
        _unasked(s),
        me.uids,
    )


def _nodes(
    s: Snapshot, request: Request, holders: Sequence[Process], asked: Iterable[Sequence[str]]
) -> tuple[str, ...]:
    """The nodes that were asked for."""
    known = dict.fromkeys((*(node for c in s.chips for node in c.nodes), *s.visibility.nodes))
    found = dict.fromkeys(node for nodes in asked for node in nodes)
    if not request.pids and not request.is_empty:
        needed = {node for p in holders if request.stale and not p.stale for node in p.holds}
        found.update(dict.fromkeys(node for node in known if node not in needed))
    named = _nodes_of(s, request.chips) if request.chips else found.keys()
    return tuple(node for node in {**known, **found} if node in found and node in named)


def _also(
    others: Sequence[Process],
    targets: Sequence[Target],
    refused: Sequence[Refusal],
    nodes: Sequence[str],
) -> tuple[int, ...]:
    """Those who keep the nodes from being free, beside the refused, which are named anyway."""
    freed = {node for t in targets for node in t.process.holds}
    known = {r.pid for r in refused}
    return tuple(
        p.pid
        for p in others
        if set(p.holds) & freed or (p.pid not in known and set(p.holds) & set(nodes))
    )


def _missing(pids: Iterable[int], holders: Iterable[Process]) -> list[int]:
    known = {p.pid for p in holders}
    return [pid for pid in dict.fromkeys(pids) if pid not in known]


def _not_a_holder(s: Snapshot, pid: int, holders: Iterable[Process]) -> Refusal:
    same = (p for p in s.processes if p.pid == pid and p.is_verified and not p.is_dead)
    known = next(same, None)
    below = [p for p in holders if p.life is not None and _is_below(p, pid)]
    nodes = tuple(dict.fromkeys(node for p in below for node in p.holds))
    if known is not None and known.loaded_only and not below:
        return Refusal(pid, known, "has libtpu loaded, and holds no TPU")
    if blind(s):
        return Refusal(pid, known, blind(s))
    holds_none = "is not seen to hold a TPU" if not s.visibility.is_complete else "holds no TPU"
    children = ", ".join(f"{p.pid}" for p in below)
    but = f": pid {children}, which it started, holds {', '.join(nodes)}" if below else ""
    return Refusal(pid, known, f"{holds_none}{but}", nodes)


def _is_below(p: Process, pid: int) -> bool:
    return p.life is not None and pid in (p.life.parent, *(a for a, _ in p.life.ancestors))


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


def _spared(holders: Iterable[Process], request: Request, me: Me) -> Iterable[Refusal]:
    """Those within reach that `stale` would mean if only it were certain."""
    for p in holders if request.stale and not request.pids else ():
        doubtful = p.stale is None and not _why_never(p, me)
        if doubtful and (request.all_users or p.uid in me.uids):
            yield Refusal(p.pid, p, f"{doubt(p) or _UNJUDGED}; end it by pid", p.holds)


def doubt(p: Process) -> str:
    """Why it is not certain that it is stale; empty where it is, or certain not to be."""
    if p.verdict not in (Verdict.MAYBE, Verdict.UNKNOWN):
        return ""
    what = "is only suspected" if p.verdict is Verdict.MAYBE else "cannot be judged"
    return f"{what}: {p.stale_reason}" if p.stale_reason else what


def _why_not(s: Snapshot, p: Process, request: Request, me: Me) -> str:
    """Why this one is left alone; empty when it is not."""
    return _why_never(p, me) or _why_not_asked(s, p, request, me)


def _why_never(p: Process, me: Me) -> str:
    """Why no request ends this one; empty when one may."""
    near = {1: "is the init process", me.pid: "is this process itself"}
    if p.pid in near or p.pid < 1:
        return near.get(p.pid, "is not a process")
    if p.pid in me.ancestors:
        return "started this tpusmi, which would end with it (a notebook's kernel, a shell)"
    if p.life is not None and p.life.platform:
        return "is an agent of the platform"
    return ""


def _why_not_asked(s: Snapshot, p: Process, request: Request, me: Me) -> str:
    """Why the request does not reach this one; empty when it does."""
    if request.stale and not p.stale:
        reason = f": {p.stale_reason}" if p.stale_reason else ""
        return f"is not stale{reason}" if p.stale is False else doubt(p) or _UNJUDGED
    if p.uid not in me.uids and not request.all_users:
        return f"belongs to {_user(p)}: only with --all-users"
    named = _nodes_of(s, request.chips)
    beyond = [node for node in p.holds if request.chips and node not in named]
    if beyond:
        return f"also holds {', '.join(beyond)}, of chips that were not named"
    if request.stale and p.pid not in request.pids and not _holds_a_chip(s, p):
        nodes = ", ".join(p.holds)
        its = f"the kernel shows no PCI bus here: {nodes} may be another device's"
        return f"{its}; end it by pid"
    return ""


def _user(p: Process) -> str:
    return f"user {p.user}" if p.user else "an unknown user"


def _holds_a_chip(s: Snapshot, p: Process) -> bool:
    """True when the kernel shows that a node of its is a TPU's: /dev/vfio/96 may be any device's,
    and the name of /dev/accel0 is no proof either.
    """
    return any(set(c.nodes) & set(p.holds) for c in s.chips)


def _why(p: Process) -> str:
    if p.stale:
        return f"stale{p.why_judged}"
    if p.stale is None:
        return (doubt(p) or _UNJUDGED).removeprefix("is ")
    return f"not stale: {p.stale_reason}" if p.stale_reason else "not stale, as far as is known"


def _unasked(s: Snapshot) -> tuple[str, ...]:
    """Each witness that could not be asked, once."""
    failed = [
        f"{o.source}: {o.message}"
        for o in s.sources
        if o.status in (FAILED, DENIED) and o.source != HOLDERS
    ]
    # A process in a container is no news, unless it is a holder.
    concern = [
        m for m in s.missing if m.code != OTHER_MOUNTS or any(m.concerns(p) for p in s.processes)
    ]
    return tuple(dict.fromkeys((*failed, *(f"{m.source}: {m.message}" for m in concern))))


def _nodes_of(s: Snapshot, chips: Iterable[int]) -> set[str]:
    return {node for chip in s.chips if chip.index in set(chips) for node in chip.nodes}
