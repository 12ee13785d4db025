"""A plan for this host: the pure one, with what the kernel says about what may come back."""

from __future__ import annotations

import os
from collections.abc import Collection

from tpusmi.actions.me import me
from tpusmi.actions.plan import Plan, Refusal, Request, Target, make_plan
from tpusmi.actions.starters import starter_of
from tpusmi.model import Host, Snapshot
from tpusmi.sources.holders import procfs


def planned(host: Host, snapshot: Snapshot, request: Request) -> Plan:
    """What this process would do with that request."""
    asks = me(host)
    plan = make_plan(snapshot, request, asks)
    if host.simulated and not _is_of(host.root, asks.uids):
        plan = _without_targets(plan)
    ours = {asks.pid, *asks.ancestors, *(t.process.pid for t in plan.targets)}

    def told(target: Target) -> Target:
        return target._replace(starter=starter_of(host, target.process.pid, ours))

    return plan._replace(
        targets=tuple(map(told, plan.targets)),
        refused=tuple(_explained(host, refused) for refused in plan.refused),
    )


def _is_of(directory: str, uids: Collection[int]) -> bool:
    try:
        return os.stat(directory).st_uid in uids
    except OSError:
        return False


def _without_targets(plan: Plan) -> Plan:
    """The plan for a simulated host that another user has made: its processes are real, and what it
    says of them is that user's word.
    """
    why = "the simulated host that names it belongs to another user"
    left = (Refusal(t.process.pid, t.process, why, t.process.holds) for t in plan.targets)
    return plan._replace(targets=(), refused=(*plan.refused, *left), lock_files=())


def _explained(host: Host, refused: Refusal) -> Refusal:
    """Of a process that has ended and is still listed: who has to take note of that."""
    if refused.process is not None:
        return refused
    stat = procfs.read_stat(host.path(f"/proc/{refused.pid}"))
    if stat is None or not stat.is_gone:
        return refused
    reap = f"it has ended: its parent, pid {stat.parent}, has to reap it"
    return refused._replace(why=f"{refused.why}; {reap}")
