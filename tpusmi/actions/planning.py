"""A plan for this host: the requester, the pure plan, and what the kernel shows of its targets."""

from __future__ import annotations

import os
from collections.abc import Collection

from tpusmi.actions.outcome import zombie_until
from tpusmi.actions.plan import Me, Plan, Refusal, Request, make_plan
from tpusmi.actions.restarts import starter_of
from tpusmi.model import Host, Snapshot
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.life import ancestors
from tpusmi.sources.users import user_before_sudo

ANCESTORS_MOST = 100_000
"""All ancestors: whatever started us is never ended."""


def planned(host: Host, snapshot: Snapshot, request: Request) -> Plan:
    """What this process would do with that request."""
    requester = me(host)
    plan = make_plan(snapshot, request, requester)
    if host.simulated and not _belongs_to(host.root, requester.uids):
        plan = _without_targets(plan)
    ours = {requester.pid, *requester.ancestors, *(t.process.pid for t in plan.targets)}
    return plan._replace(
        targets=tuple(
            t._replace(starter=starter_of(host, t.process.pid, ours)) for t in plan.targets
        ),
        refused=tuple(_explained(host, refused) for refused in plan.refused),
    )


def me(host: Host) -> Me:
    """This process. Mine are the processes of its effective uid; under sudo also those of the user
    who called it, if the kernel shows that user above us: sudo's variable alone gives no rights.
    """
    uids = {os.geteuid()}
    if (before := user_before_sudo()) is not None:
        uids.add(before)
    started_us = ancestors(host.path("/proc"), os.getppid(), most=ANCESTORS_MOST)
    return Me(os.getpid(), frozenset(pid for pid, _ in started_us), frozenset(uids))


def _belongs_to(directory: str, uids: Collection[int]) -> bool:
    try:
        return os.stat(directory).st_uid in uids
    except OSError:
        return False


def _without_targets(plan: Plan) -> Plan:
    """The plan for a simulated host of another user: its processes are real, and what it says about
    them is only that user's claim.
    """
    why = "is listed by a simulated host of another user"
    left = (Refusal(t.process.pid, t.process, why, nodes=t.process.holds) for t in plan.targets)
    return plan._replace(targets=(), refused=(*plan.refused, *left), lock_files=())


def _explained(host: Host, refused: Refusal) -> Refusal:
    """The refusal, with what the kernel shows: it is not running, or has ended and is a zombie."""
    if refused.process is not None:
        return refused
    stat = procfs.read_stat(host.path(f"/proc/{refused.pid}"))
    if stat is None and not refused.nodes and _is_certainly_unused(refused.pid):
        return refused._replace(why="is not running")
    if stat is None or not stat.is_gone:
        return refused
    return refused._replace(why=f"{refused.why}; it has ended: {zombie_until(stat.parent)}")


def _is_certainly_unused(pid: int) -> bool:
    """True if the kernel says that no process has that pid: /proc may hide those of others."""
    try:
        os.getpgid(pid)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
