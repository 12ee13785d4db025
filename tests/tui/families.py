"""Holders that started each other, as a script has them."""

from __future__ import annotations

from held import HEALTHY, SERVING, holders
from scripted import Job, ScriptedFeed

from tpusmi.model import Verdict

SERVER_SHELL = 52801
WORKERS = (52900, 52901)


def family() -> ScriptedFeed:
    """A healthy holder that a shell has started, two workers of it, and a stale holder."""
    line = ((HEALTHY, "python serve.py"), *SERVING.ancestors)
    workers = tuple(
        Job(
            *(pid, f"python -m worker --rank={rank}", 4 + rank, 0),
            user="grace",
            holds=(f"/dev/vfio/{4 + rank}",),
            verdict=Verdict.NOT_STALE,
            life=SERVING._replace(
                parent=HEALTHY,
                ancestors=line,
                age_s=9_000.0 - 3_000 * rank,
                cpu_percent=(7.0, 31.0)[rank],
                rss_bytes=(3 << 30, 1 << 30)[rank],
            ),
        )
        for rank, pid in enumerate(WORKERS)
    )
    return holders(*workers)
