"""The holders of the TPU, and how to end them, from Python: `tpusmi ps` and `tpusmi kill`."""

from __future__ import annotations

from collections.abc import Sequence
from signal import SIGTERM

from tpusmi.actions import is_readonly
from tpusmi.actions.end import FREE_WITHIN_S, GRACE_S, Order, carry_out
from tpusmi.actions.outcome import Report
from tpusmi.actions.plan import Plan, Request
from tpusmi.actions.planning import planned
from tpusmi.collect import LOOK_DEADLINE_S, look, this_host
from tpusmi.model import Process


def holders(deadline_s: float = LOOK_DEADLINE_S) -> tuple[Process, ...]:
    """The processes that hold a TPU of this host, each with a verdict: `stale`, `stale_reason`.

    Empty when no process was seen to hold one, which does not prove that it is free: as an ordinary
    user also check `snapshot().visibility.not_inspected`, the number of processes that could not be
    inspected.
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

    Ends the holders that match every filter given; without a filter it raises ValueError. Returns
    what became of each, or the plan with `dry_run`. It never ends this process or one that started
    it, another user's process unless `all_users`, or a process that does not hold a TPU: `refused`
    lists the processes that were requested and left alone, and `is_free` is True only when every
    requested node was seen to be free. `stale` ends only holders that are certainly stale. Takes up
    to `grace_s + wait_s` seconds. Raises ValueError for invalid arguments, PermissionError under
    TPUSMI_MODE=readonly, and nothing else.
    """
    order = Order(signal, grace_s, wait_s)
    order.check()
    request = Request(tuple(pids), tuple(chips), stale, all_users)
    if request.is_empty:
        raise ValueError("specify pids, chips or stale=True")
    if is_readonly() and not dry_run:
        raise PermissionError("TPUSMI_MODE=readonly: free() is disabled")
    host = this_host()
    snapshot = look(host)
    plan = planned(host, snapshot, request)
    if dry_run:
        return plan
    return carry_out(host, snapshot.chips, plan, order)
