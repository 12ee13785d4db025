"""The slices of a moment: one for each job of several hosts that runs here. Pure."""

from collections.abc import Iterable, Sequence

from tpusmi.model import Process
from tpusmi.model.slice_hosts import Slice

SLICES_MOST = 4
"""More jobs of several hosts than one machine has."""


def slices(
    reported: Iterable[Slice], processes: Sequence[Process], now_s: float
) -> tuple[Slice, ...]:
    """The slices of living processes, each job's once, as they are at that time. Those of processes
    that hold the TPU come first, then those of most hosts: anyone can write a segment.
    """
    living = {p.key: p for p in processes if p.is_living and (p.is_verified or p.elsewhere)}
    newest: dict[tuple[int, int | None], Slice] = {}
    for x in sorted(reported, key=lambda x: x.at_s):
        reader = None if x.process is None else living.get(x.process)
        if reader is not None:
            newest[x.job, reader.uid] = x

    def rank(x: Slice) -> tuple[bool, int, int]:
        holds = x.process is not None and bool(living[x.process].holds)
        return not holds, -x.process_count, x.pid or 0

    return tuple(x.aged(now_s) for x in sorted(newest.values(), key=rank)[:SLICES_MOST])
