"""`tpusmi.free()` ends holders of the TPU from Python, as `tpusmi kill` does."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from signal import SIGTERM

from tpusmi.actions import is_readonly
from tpusmi.actions.end import FREE_WITHIN_S, GRACE_S, Order, carry_out
from tpusmi.actions.outcome import Report
from tpusmi.actions.plan import Plan, Request
from tpusmi.actions.planning import planned
from tpusmi.collect import look, this_host


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
    what became of each, a `Report`; with `dry_run` a `Plan`, and nothing is ended. It never ends
    this process or one that started it, another user's process unless `all_users`, or a process
    that does not hold a TPU: `refused` lists the processes that were requested and left alone, and
    `is_free` is True only when every requested node was seen to be free. `stale` ends only holders
    that are certainly stale. Takes up to `grace_s + wait_s` seconds. Raises TypeError and
    ValueError for wrong arguments, PermissionError under TPUSMI_MODE=readonly, and nothing else.

    >>> tpusmi.free(stale=True, dry_run=True)
    <Plan: ends no process, leaves 0 alone>
    >>> report = tpusmi.free(stale=True)
    >>> report.is_free, [(result.process.pid, result.outcome) for result in report.results]
    (None, [])
    """
    request = Request(_numbers("pids", pids), _numbers("chips", chips), stale, all_users)
    order = Order(signal, grace_s, wait_s)
    order.check()
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


def _numbers(name: str, given: Sequence[int]) -> tuple[int, ...]:
    """The pids or chips. Raises TypeError with what was expected."""
    try:
        if isinstance(given, (str, bytes)):
            raise TypeError
        return tuple(map(index, given))
    except TypeError:
        raise TypeError(f"{name} must be a list of whole numbers, not {given!r}") from None
