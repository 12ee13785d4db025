"""Which holders will do no more work, and why: one function gives the verdict. Pure.

`verdict.py` weighs what `signs.py` has against what `work.py` knows. A verdict is certain only when
everything that could have changed it was asked, and has answered.
"""

from tpusmi.model import History, Snapshot
from tpusmi.model.process import USUAL, Limits


def judged(s: Snapshot, limits: Limits = USUAL, history: History | None = None) -> Snapshot:
    """The snapshot with a verdict on every holder, its signs, and why."""
    if not any(p.holds for p in s.processes):
        return s  # where nothing holds a TPU nothing of this needs to be imported
    from tpusmi.merge.staleness.verdict import with_verdict

    return s._replace(
        processes=tuple(with_verdict(s, p, limits, history) if p.holds else p for p in s.processes)
    )
