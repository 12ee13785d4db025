"""The slices of a moment: one for each job of several hosts that runs here. Pure."""

from collections.abc import Iterable, Sequence

from tpusmi.model import Process
from tpusmi.model.slice_hosts import READ_PERIODS, Slice

SLICES_MOST = 4
"""More jobs of several hosts than one machine has."""


def slices(
    reported: Iterable[Slice], processes: Sequence[Process], now_s: float
) -> tuple[Slice, ...]:
    """The slices of living processes, each job's once, as they are at that time. Those of processes
    that hold the TPU come first, then those of most hosts: anyone can write a segment.

    A job has several readers where its containers have a /dev/shm each: the same one counts at each
    look, although the others may have read later.
    """
    living = {p.key: p for p in processes if p.is_living and (p.is_verified or p.elsewhere)}
    chosen: dict[tuple[int, int | None], Slice] = {}
    for x in sorted(reported, key=lambda x: _preference(x, now_s)):
        reader = None if x.process is None else living.get(x.process)
        if reader is not None:
            chosen.setdefault((x.job, reader.uid), x)

    def rank(x: Slice) -> tuple[bool, int, int]:
        holds = x.process is not None and bool(living[x.process].holds)
        return not holds, -x.process_count, x.pid or 0

    return tuple(x.aged(now_s) for x in sorted(chosen.values(), key=rank)[:SLICES_MOST])


def _preference(x: Slice, now_s: float) -> tuple[bool, float, float]:
    """Sorts readers: those that have read in time by their number, then the others by when they
    have read, the last first.
    """
    is_late = now_s - x.at_s > READ_PERIODS * x.period_s
    return is_late, -x.at_s if is_late else x.process_index, -x.at_s
