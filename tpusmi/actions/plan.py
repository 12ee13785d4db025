"""Which processes would be ended and which left alone, with the reasons. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from tpusmi.model import (
    DENIED,
    FAILED,
    HOLDERS,
    OTHER_MOUNTS,
    UNJUDGED,
    LockState,
    Process,
    Snapshot,
    Verdict,
)
from tpusmi.model.holding import blind
from tpusmi.text import noun, ranges


class Request(NamedTuple):
    """Which holders to end: those that match every filter given."""

    pids: tuple[int, ...] = ()
    chips: tuple[int, ...] = ()
    stale: bool = False
    all_users: bool = False
    """Also end holders of other users."""

    @property
    def is_empty(self) -> bool:
        """True when it has no filter: then no process is ended."""
        return not (self.pids or self.chips or self.stale)


class Me(NamedTuple):
    """The process that makes the request."""

    pid: int
    ancestors: frozenset[int]
    """The shell, the terminal, a notebook's kernel: everything that started us."""
    uids: frozenset[int]
    """Users whose processes are mine."""


class Starter(NamedTuple):
    """What may start a process again after its end."""

    kind: Literal["unit", "container", "parent"]
    name: str
    """The unit's name, the container's id, the parent's pid."""
    words: str
    """What it is, and how to stop it where that is known."""


class Target(NamedTuple):
    """A holder to end."""

    process: Process
    why: str
    starter: Starter | None = None


class Refusal(NamedTuple):
    """A process that matches the request, or may match it, and is left alone."""

    pid: int
    process: Process | None
    """None for a process that holds no TPU, or does not exist."""
    why: str
    nodes: tuple[str, ...] = ()
    """Nodes that were requested with it: its own, or those of its children."""

    @property
    def is_unjudged(self) -> bool:
        """True for a holder that may be stale: what could have settled it could not be read."""
        return self.process is not None and self.process.verdict in (None, Verdict.UNKNOWN)


class Plan(NamedTuple):
    """What would be done: the result of `tpusmi.free(dry_run=True)`.

    >>> plan = tpusmi.free([s.processes[0].pid], dry_run=True)
    >>> [target.process.pid for target in plan.targets] == [s.processes[0].pid], plan
    (True, <Plan: ends ..., leaves 0 alone>)
    """

    targets: tuple[Target, ...] = ()
    refused: tuple[Refusal, ...] = ()
    nodes: tuple[str, ...] = ()
    """Device nodes that were requested by pid or chip; with `stale` alone, those that no other
    holder is known to need.
    """
    also_held_by: tuple[int, ...] = ()
    """Holders of those nodes that are not targets: the nodes will not become free."""
    lock_files: tuple[str, ...] = ()
    """Lock files in the way of the next job; removed if no process holds the TPU after the end."""
    unseen: str = ""
    """What could not be inspected, in words: it may include holders."""
    blind: str = ""
    """Why it could not be determined at all which processes hold the TPU; empty when it was."""
    spared: tuple[Refusal, ...] = ()
    """Holders that may be stale, but not for certain: they are ended only by pid."""
    unasked: tuple[str, ...] = ()
    """What could not be read of the evidence that a holder works, and why."""
    uids: frozenset[int] = frozenset()
    """Users whose processes are those of the requester."""

    def __repr__(self) -> str:
        pids = ", ".join(f"{t.process.pid}" for t in self.targets)
        left = f", leaves {len(self.refused) + len(self.spared)} alone"
        return f"<Plan: ends {pids or 'no process'}{left}>"


def make_plan(s: Snapshot, request: Request, me: Me) -> Plan:
    """The plan for a request on that snapshot. An empty request ends no process."""
    holders = [p for p in s.processes if p.holds and p.is_verified and not p.is_dead]
    matching = [] if request.is_empty else _matching(s, request, holders)
    targets: list[Target] = []
    holder_pids = {p.pid for p in holders}
    others = (pid for pid in dict.fromkeys(request.pids) if pid not in holder_pids)
    refused = [_not_a_holder(s, pid, holders) for pid in others]
    for p in matching:
        why = _why_never(p, me) or _why_not_covered(s, p, request, me)
        if why:
            refused.append(Refusal(p.pid, p, why, nodes=p.holds))
        else:
            targets.append(Target(p, (p.judgment or UNJUDGED).removeprefix("is ")))
    requested = [*(t.process.holds for t in targets), *(r.nodes for r in refused)]
    nodes = _nodes(s, request, holders, requested)
    ending = {t.process.key for t in targets}
    left = [p for p in holders if p.key not in ending]
    refused += _elsewhere(s, request, holders)
    return Plan(
        targets=tuple(targets),
        refused=tuple(refused),
        nodes=nodes,
        also_held_by=_also(left, targets, refused, nodes),
        lock_files=tuple(
            f.path for f in s.lock_files if f.state == LockState.BLOCKING and not left
        ),
        unseen=s.visibility.reason,
        blind=blind(s),
        spared=tuple(_spared(holders, request, me)),
        unasked=_unasked(s),
        uids=me.uids,
    )


def _nodes(
    s: Snapshot, request: Request, holders: Sequence[Process], requested: Iterable[Sequence[str]]
) -> tuple[str, ...]:
    """The nodes that were requested."""
    here = dict.fromkeys((*(node for c in s.chips for node in c.nodes), *s.visibility.nodes))
    meant = dict.fromkeys(node for nodes in requested for node in nodes)
    if not request.pids and not request.is_empty:
        needed = {node for p in holders if request.stale and not p.stale for node in p.holds}
        meant.update(dict.fromkeys(node for node in here if node not in needed))
    named = _nodes_of(s, request.chips) if request.chips else meant.keys()
    return tuple(node for node in {**here, **meant} if node in meant and node in named)


def _also(
    others: Sequence[Process],
    targets: Sequence[Target],
    refused: Sequence[Refusal],
    nodes: Sequence[str],
) -> tuple[int, ...]:
    """Pids that keep the nodes from becoming free, without the refused, which are listed anyway."""
    freed = {node for t in targets for node in t.process.holds}
    listed = {r.pid for r in refused}
    return tuple(
        p.pid
        for p in others
        if set(p.holds) & freed or (p.pid not in listed and set(p.holds) & set(nodes))
    )


def _not_a_holder(s: Snapshot, pid: int, holders: Iterable[Process]) -> Refusal:
    same = (p for p in s.processes if p.pid == pid and p.is_verified and not p.is_dead)
    process = next(same, None)
    below = [
        p
        for p in holders
        if p.life is not None and pid in (p.life.parent, *(a for a, _ in p.life.ancestors))
    ]
    nodes = tuple(dict.fromkeys(node for p in below for node in p.holds))
    if process is not None and process.loaded_only and not below:
        return Refusal(pid, process, "has libtpu loaded, and holds no TPU")
    if blind(s):
        return Refusal(pid, process, f"may hold a TPU: {blind(s)}")
    holds_none = "holds no TPU" if s.visibility.is_complete else "is not seen to hold a TPU"
    children = ", ".join(f"{p.pid}" for p in below)
    but = f": pid {children}, which it started, holds {', '.join(nodes)}" if below else ""
    return Refusal(pid, process, f"{holds_none}{but}", nodes=nodes)


def _elsewhere(s: Snapshot, request: Request, holders: Iterable[Process]) -> Iterator[Refusal]:
    """The holders that a request names by pid, and that hold none of the chips it names."""
    nodes = _nodes_of(s, request.chips)
    for p in holders:
        if request.chips and p.pid in request.pids and not set(p.holds) & nodes:
            chips = sorted(c.index for c in s.chips if set(c.nodes) & set(p.holds))
            held = _chips(chips) if chips else ", ".join(p.holds)
            yield Refusal(p.pid, p, f"holds {held}, not {_chips(sorted({*request.chips}))}")


def _chips(numbers: Sequence[int]) -> str:
    """`chip 0`, `chips 4-7`."""
    return f"{noun(len(numbers), 'chip')} {ranges(numbers)}"


def _matching(s: Snapshot, request: Request, holders: Iterable[Process]) -> list[Process]:
    """The holders that a request is about. A holder named by pid need not be stale."""
    nodes = _nodes_of(s, request.chips)
    return [
        p
        for p in holders
        if (not request.pids or p.pid in request.pids)
        and (not request.chips or set(p.holds) & nodes)
        and (not request.stale or p.stale or p.pid in request.pids)
    ]


def _spared(holders: Iterable[Process], request: Request, me: Me) -> Iterable[Refusal]:
    """Holders that `stale` would match if it were certain that they are."""
    for p in holders if request.stale and not request.pids else ():
        doubtful = p.stale is None and not _why_never(p, me)
        if doubtful and (request.all_users or p.uid in me.uids):
            yield Refusal(p.pid, p, f"{p.judgment or UNJUDGED}; end it by pid", nodes=p.holds)


def _why_never(p: Process, me: Me) -> str:
    """Why no request ends this process; empty when one may."""
    near = {1: "is the init process", me.pid: "is this process itself"}
    if p.pid in near or p.pid < 1:
        return near.get(p.pid, "is not a process")
    if p.pid in me.ancestors:
        return "started this tpusmi, which would end with it (a shell, a notebook kernel)"
    if p.life is not None and p.life.platform:
        return "is an agent of the platform"
    return ""


def _why_not_covered(s: Snapshot, p: Process, request: Request, me: Me) -> str:
    """Why the request does not cover this holder; empty when it does."""
    if request.stale and not p.stale:
        return p.judgment or UNJUDGED
    if p.uid not in me.uids and not request.all_users:
        user = f"user {p.user}" if p.user else "an unknown user"
        return f"belongs to {user}: add --all-users to end it"
    named = _nodes_of(s, request.chips)
    beyond = [node for node in p.holds if request.chips and node not in named]
    if beyond:
        return f"also holds {', '.join(beyond)}, of chips that you did not name"
    # Only the bus shows that a node is a TPU's: /dev/vfio/96 may be any device's, and the name
    # /dev/accel0 proves nothing either.
    holds_a_chip = any(set(c.nodes) & set(p.holds) for c in s.chips)
    if request.stale and p.pid not in request.pids and not holds_a_chip:
        nodes = ", ".join(p.holds)
        return f"no PCI bus is visible here: {nodes} may be another device's; end it by pid"
    return ""


def _unasked(s: Snapshot) -> tuple[str, ...]:
    """Each piece of evidence that could not be read, once."""
    failed = [
        f"{o.source}: {o.message}"
        for o in s.sources
        if o.status in (FAILED, DENIED) and o.source != HOLDERS
    ]
    # Every process in a container is missing so: only holders matter.
    concern = [
        m for m in s.missing if m.code != OTHER_MOUNTS or any(m.concerns(p) for p in s.processes)
    ]
    return tuple(dict.fromkeys((*failed, *(f"{m.source}: {m.message}" for m in concern))))


def _nodes_of(s: Snapshot, chips: Iterable[int]) -> set[str]:
    return {node for chip in s.chips if chip.index in set(chips) for node in chip.nodes}
