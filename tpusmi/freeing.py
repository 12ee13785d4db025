"""Who holds the TPU, and getting it back: what the command line, the dashboard and Python share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from signal import SIGTERM

from tpusmi.actions.end import FREE_WITHIN_S, GRACE_S, Order, Report, Say, carry_out
from tpusmi.actions.me import me
from tpusmi.actions.plan import Plan, Request, make_plan
from tpusmi.collect import holding_collector, this_host
from tpusmi.merge.staleness import Limits, judged
from tpusmi.model import Host, Process, Snapshot

DEADLINE_S = 5.0
"""For one look: what does not answer by then has failed."""


def holders(deadline_s: float = DEADLINE_S) -> tuple[Process, ...]:
    """The processes that hold a TPU of this host, each with a verdict: `stale`, `stale_reason`.

    Empty when nobody was seen to hold one, which is not proof that it is free: as an ordinary user
    ask `snapshot().hidden`, too, the number of processes that could not be inspected.
    """
    s = look(this_host(), deadline_s=deadline_s)
    return tuple(p for p in s.processes if p.holds and p.state != "dead")


def free(  # noqa: PLR0913  # the options of `tpusmi kill`, by their names
    pids: Sequence[int] = (),
    *,
    chips: Sequence[int] = (),
    stale: bool = False,
    all_users: bool = False,
    signal: int = SIGTERM,
    grace_s: float = GRACE_S,
    wait_s: float = FREE_WITHIN_S,
    dry_run: bool = False,
) -> Report | Plan:
    """End holders of the TPU, as `tpusmi kill` does, and wait until their nodes are free.

    Those are meant that every filter given lets through; without one it raises ValueError. Returns
    what became of each, or with `dry_run` the plan. It never ends this process or one that started
    it, another user's unless `all_users`, nor a process that does not hold a TPU. Takes up to
    `grace_s + wait_s` seconds. Raises ValueError for an order that makes no sense, PermissionError
    under TPUSMI_MODE=readonly, and nothing else.
    """
    order = Order(signal, grace_s, wait_s)
    order.check()
    request = Request(tuple(pids), tuple(chips), stale, all_users)
    if request.is_empty:
        raise ValueError("name pids, chips or stale=True: nothing is ended unasked")
    if is_readonly() and not dry_run:
        raise PermissionError("TPUSMI_MODE=readonly: nothing is ended here")
    host = this_host()
    snapshot = look(host)
    plan = make_plan(snapshot, request, me(host))
    if dry_run:
        return plan
    return end(host, snapshot, plan, order)


def is_readonly() -> bool:
    """True where the environment forbids to end anything."""
    return os.environ.get("TPUSMI_MODE") == "readonly"


def look(host: Host, limits: Limits | None = None, deadline_s: float = DEADLINE_S) -> Snapshot:
    """The host as it matters here: chips, holders, what tells whether they work, the lock file."""
    collector = holding_collector(host)
    try:
        snapshot = collector.read_once(deadline_s)
    finally:
        collector.stop()
    return snapshot if limits is None else judged(snapshot, limits)


def end(host: Host, s: Snapshot, plan: Plan, order: Order, say: Say | None = None) -> Report:
    """Carry out a plan that was made on that snapshot."""
    return carry_out(host, s.chips, plan, order, say)
