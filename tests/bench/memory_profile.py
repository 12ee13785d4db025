"""Where JAX's memory profile should be decoded: what taking, summing and decoding one costs.

    python tests/bench/memory_profile.py

Taking it stops the interpreter, and so does everything that Python does to it in the job. Printed
are medians in milliseconds, of profiles taken here and of recorded ones.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tpusmi.memprofile import held_memory, totals

RECORDED = Path(__file__).parent.parent / "data"


def main() -> None:
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    import jax
    import jax.numpy as jnp

    kept = []
    for arrays in (1000, 5000, 20_000):
        while len(kept) < arrays:
            device = jax.devices()[len(kept) % 8]
            kept.append(jax.device_put(jnp.ones(len(kept) % 200 + 1), device))
        jax.block_until_ready(kept)
        take = milliseconds(jax.profiler.device_memory_profile)
        show(f"{arrays} live arrays", jax.profiler.device_memory_profile(), take)
    spread = jax.sharding.NamedSharding(jax.make_mesh((8,), ("all",)), jax.sharding.PartitionSpec())
    for line in range(300):
        scope: dict[str, Any] = {"put": lambda: jax.device_put(jnp.ones(100), spread)}
        exec(
            compile("\n" * line + f"def line_{line}(): return put()", f"{line % 9}.py", "exec"),
            scope,
        )
        kept.append(scope[f"line_{line}"]())
    jax.block_until_ready(kept)
    take = milliseconds(jax.profiler.device_memory_profile)
    show("300 lines, 8 devices", jax.profiler.device_memory_profile(), take)
    for path in sorted(RECORDED.glob("*.prof")):
        show(path.name, path.read_bytes(), None)


def show(name: str, profile: bytes, take_ms: float | None) -> None:
    """Print a line of what a profile costs."""
    taken = "   –  " if take_ms is None else f"{take_ms:6.2f}"
    summed, decoded = (
        milliseconds(lambda: totals(profile)),
        milliseconds(lambda: held_memory(profile)),
    )
    apart = milliseconds(lambda: held_memory(profile, by_device=True))
    print(
        f"{name:>20}: taken in {taken}, summed up in {summed:6.2f}, decoded in {decoded:6.2f}, "
        f"by device in {apart:6.2f} ms, {len(profile) / 1024:5.1f} KiB"
    )


def milliseconds(work: Callable[[], object]) -> float:
    """Median time of nine runs."""
    times = []
    for _ in range(9):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


if __name__ == "__main__":
    main()
