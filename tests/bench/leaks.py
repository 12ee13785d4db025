"""What it costs to look for memory that only grows, in percent of one core.

    python tests/bench/leaks.py

Of a job on 8 devices whose profile has 1000 lines, of which some grow, and of 256 devices in 32
jobs. Each gives ten minutes of data, one look a second and a profile every four, as a dashboard
takes them; only what looks and what makes the notices is measured.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from support.memory_histories import MIB, SECONDS
from support.watched_memory import START_S, Moment, snapshot_of

from tpusmi.merge.memory_watch import MemoryWatch
from tpusmi.model import (
    Device,
    DeviceKey,
    History,
    MemoryProfile,
    Process,
    ProcessKey,
    Reading,
    Site,
)


def main() -> None:
    show("1 job, 8 devices, 1000 lines", jobs=1, devices=8, lines=1000)
    show("1 job, 8 devices, 1000 lines that all grow", 1, 8, 1000, leaking=1000)
    show("32 jobs, 256 devices, 30 lines each", jobs=32, devices=8, lines=30)
    show("64 jobs, 512 devices, 1000 lines each that all grow", 64, 8, 1000, leaking=1000)


def show(name: str, jobs: int, devices: int, lines: int, leaking: int = 3) -> None:
    """Print a line of what it costs."""
    watch, history = MemoryWatch(), History()
    spent, most, told = 0.0, 0.0, 0
    keys = [ProcessKey(1000 + n, 1) for n in range(jobs)]
    everywhere = tuple(_device(key, n, i) for n, key in enumerate(keys) for i in range(devices))
    profiles: dict[ProcessKey, MemoryProfile] = {}
    for t in range(SECONDS):
        now_s = START_S + t
        history.add(
            Reading(metric, d.key, (4000 + 0.5 * t + d.index % 7) * MIB, now_s, "agent", 5.0)
            for d in everywhere
            for metric in ("hbm_used_bytes", "live_array_bytes")
        )
        if t % 4 == 0:
            profiles = {key: MemoryProfile(now_s, _sites(t, lines, leaking)) for key in keys[:1]}
            profiles |= {key: profiles[keys[0]] for key in keys}
        processes = tuple(
            Process(key, "ada", "train.py", interval_s=1.0, uid=1000, profile=profiles[key])
            for key in keys
        )
        snapshot = snapshot_of(processes, everywhere, now_s, 9000.0 * MIB)
        started = time.process_time()
        watch.look(Moment(processes, (everywhere, ()), {}, {}), history, now_s)
        told = len(watch.on(snapshot).warnings)
        took = time.process_time() - started
        spent, most = spent + took, max(most, took)
    print(
        f"{name:<52} {100 * spent / SECONDS:7.4f} % of a core, {1e3 * most:6.1f} ms at most, "
        f"{told} notices"
    )


def _sites(t: int, lines: int, leaking: int) -> tuple[Site, ...]:
    sizes = ((100 + 8 * n + (t / 6 if n < leaking else 0)) * MIB for n in range(lines))
    return tuple(
        Site(f"make_{n}", f"/home/ada/llm/model_{n % 20}.py", n, "buffer", int(size), 8)
        for n, size in enumerate(sizes)
    )


def _device(key: ProcessKey, job: int, i: int) -> Device:
    index = 8 * job + i
    return Device(
        *(DeviceKey(key, i), index, index, "tpu", "TPU v5e", None, 0), chip=index, owners=(key,)
    )


if __name__ == "__main__":
    main()
