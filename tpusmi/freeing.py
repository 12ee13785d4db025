"""Who holds the TPU, and getting it back, from Python: by the rules of `tpusmi ps` and `kill`."""

from __future__ import annotations

from collections.abc import Sequence
from signal import SIGTERM

from tpusmi.actions import is_readonly
from tpusmi.actions.end import carry_out
from tpusmi.actions.order import FREE_WITHIN_S, GRACE_S, Order
from tpusmi.actions.outcome import Report
from tpusmi.actions.plan import Plan, Request
from tpusmi.actions.planning import planned
from tpusmi.collect import LOOK_DEADLINE_S, look, this_host
from tpusmi.model import Process


def holders(deadline_s: float = LOOK_DEADLINE_S) -> tuple[Process, ...]:
    """The processes that hold a TPU of this host, each with a verdict: `stale`, `stale_reason`.

    Empty when nobody was seen to hold one, which is not proof that it is free: as an ordinary user
    ask `snapshot().hidden`, too, the number of processes that could not be inspected.
    """
    s = look(this_host(), deadline_s=deadline_s)
    return tuple(p for p in s.processes if p.holds and not p.is_dead)


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
    it, another user's unless `all_users`, nor a process that does not hold a TPU: `refused` says
    who was asked for and left alone, and `is_free` is True only when every node that was asked for
    was seen to be free. `stale` ends those alone that are certain to be stale. Takes up to
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
    plan = planned(host, snapshot, request)
    if dry_run:
        return plan
    return carry_out(host, snapshot.chips, plan, order)
