"""The FLOPs and bytes of all operations of devices together, as XLA has counted them. Pure.

XLA does not look into custom kernels: they declare their own FLOPs, too many or none at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tpusmi.trace.core_trace import PS_PER_S, CoreTrace, OperationRow
from tpusmi.trace.rates import believed, percent, ratio

UNCOUNTED_MOST_PERCENT = 10.0
"""With more of the busy time in custom kernels of which nothing is counted, sums are too low."""
OVERCOUNTED_MOST_PERCENT = 1.0
"""With more of it in kernels that declare more than a core can do, sums are too high."""


class Work(NamedTuple):
    """What operations did; None when the trace does not say, or custom kernels hide or invent it.

    The percentages are shares of the busy time.
    """

    flops: float | None
    hbm_bytes: float | None
    uncounted_percent: float
    """In custom kernels without FLOPs."""
    overcounted_percent: float
    """In operations that declare more FLOPs than a core can do."""
    unmoved_percent: float
    """In custom kernels without bytes."""

    @property
    def is_doubtful(self) -> bool:
        """True where the FLOPs that are counted are not those of the program."""
        return (
            self.uncounted_percent > UNCOUNTED_MOST_PERCENT
            or self.overcounted_percent > OVERCOUNTED_MOST_PERCENT
        )


def work_of(cores: Sequence[CoreTrace]) -> Work:
    """The sum over all runs on these devices."""
    total_ps = sum(operation.self_ps for core in cores for operation in core.operations)

    def share(is_meant: Callable[[OperationRow, float | None], bool]) -> float:
        meant = (o.self_ps for c in cores for o in c.operations if is_meant(o, c.peak_flops_per_s))
        return percent(sum(meant), total_ps) or 0.0

    work = Work(
        flops=_sum(cores, "flops"),
        hbm_bytes=_sum(cores, "hbm_bytes"),
        uncounted_percent=share(lambda o, _: o.facts.is_custom and o.facts.flops is None),
        overcounted_percent=share(_claims_too_much),
        unmoved_percent=share(lambda o, _: o.facts.is_custom and o.facts.hbm_bytes is None),
    )
    has_bytes = work.unmoved_percent <= UNCOUNTED_MOST_PERCENT
    return work._replace(
        flops=None if work.is_doubtful else work.flops,
        hbm_bytes=work.hbm_bytes if has_bytes else None,
    )


def _sum(cores: Sequence[CoreTrace], name: str) -> float | None:
    amounts = [
        amount * operation.runs
        for core in cores
        for operation in core.operations
        if (amount := getattr(operation.facts, name)) is not None
    ]
    return sum(amounts) if amounts else None


def _claims_too_much(operation: OperationRow, peak: float | None) -> bool:
    flops = operation.facts.flops
    if flops is None:
        return False
    rate = ratio(flops * operation.runs, operation.self_ps / PS_PER_S)
    return rate is not None and believed(rate, peak) is None
