"""What a scrape of `tpusmi serve` costs: making the text of a snapshot, by the number of devices.

python tests/bench/exporter.py
"""

from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.snapshots import everything, machine, many

from tpusmi.exporter.exposition import Format, body
from tpusmi.exporter.families import Families
from tpusmi.exporter.of_snapshot import add_snapshot
from tpusmi.exporter.scrapes import GZIP_LEVEL
from tpusmi.model import Snapshot

ROUNDS = 20
VALUES = {
    "hbm_used_bytes": 12 << 30,
    "hbm_limit_bytes": 16 << 30,
    "duty_cycle_percent": 97.25,
    "tensorcore_utilization_percent": 54.5,
    "hbm_bandwidth_utilization_percent": 61.0,
    "idle_s": 0.0,
    "hlo_queue_size": 2,
}


def ms(work: Callable[[], object]) -> float:
    """The least time of some rounds, in milliseconds: others use the machine as well."""
    times = []
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        work()
        times.append(time.perf_counter() - began_s)
    return 1000 * min(times)


def families(s: Snapshot) -> Families:
    f = Families({"host": s.host.name})
    add_snapshot(f, s, with_processes=True)
    return f


def main() -> None:
    """Print a line for each size of a host."""
    print(f"{'':>12} {'samples':>8} {'KiB':>6} {'gzip':>6} | ms: families  text  OpenMetrics  gzip")
    hosts = {"everything": everything(), "machine": machine()}
    hosts |= {f"{count} devices": many(count, **VALUES) for count in (1, 4, 8, 64, 256)}
    for name, s in hosts.items():
        f = families(s).in_order()
        text = body(f, Format.TEXT)
        zipped = gzip.compress(text, GZIP_LEVEL)
        print(
            f"{name:>12} {sum(len(one.samples) for one in f):8} {len(text) / 1024:6.0f} "
            f"{len(zipped) / 1024:6.1f} | {ms(lambda s=s: families(s)):12.1f} "
            f"{ms(lambda f=f: body(f, Format.TEXT)):5.1f} "
            f"{ms(lambda f=f: body(f, Format.OPENMETRICS)):12.1f} "
            f"{ms(lambda t=text: gzip.compress(t, GZIP_LEVEL)):5.1f}"
        )


if __name__ == "__main__":
    main()
