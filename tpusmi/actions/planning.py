"""A plan for this host: the pure one, with what the kernel says about what may come back."""

from __future__ import annotations

from tpusmi.actions.me import me
from tpusmi.actions.plan import Plan, Refusal, Request, Target, make_plan
from tpusmi.actions.starters import starter_of
from tpusmi.model import Host, Snapshot
from tpusmi.sources.holders import procfs


def planned(host: Host, snapshot: Snapshot, request: Request) -> Plan:
    """What this process would do with that request."""
    asks = me(host)
    plan = make_plan(snapshot, request, asks)
    ours = {asks.pid, *asks.ancestors, *(t.process.pid for t in plan.targets)}

    def told(target: Target) -> Target:
        return target._replace(starter=starter_of(host, target.process.pid, ours))

    return plan._replace(
        targets=tuple(map(told, plan.targets)),
        refused=tuple(_explained(host, refused) for refused in plan.refused),
    )


def _explained(host: Host, refused: Refusal) -> Refusal:
    """Of a process that has ended and is still listed: who has to take note of that."""
    if refused.process is not None:
        return refused
    stat = procfs.read_stat(host.path(f"/proc/{refused.pid}"))
    if stat is None or not stat.is_gone:
        return refused
    reap = f"it has ended: its parent, pid {stat.parent}, has to reap it"
    return refused._replace(why=f"{refused.why}; {reap}")
