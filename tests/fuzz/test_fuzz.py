"""A fuzzer on every reader of what strangers write: no exception, no long time, no much memory.

A dozen seconds in all. `TPUSMI_FUZZ_S=3600 pytest tests/fuzz` goes on for an hour, and with
`TPUSMI_FUZZ_SEED` from another beginning. An input that fails is kept in `$TPUSMI_FUZZ_KEEP`.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fuzz import files, fleets, servers, texts, traces
from fuzz.mutator import Mutator
from fuzz.target import TARGETS, Target

MODULES = (files, fleets, servers, texts, traces)
"""Their targets are known once they are loaded."""
SECONDS = float(os.environ.get("TPUSMI_FUZZ_S", "12")) / len(TARGETS)
SEED = int(os.environ.get("TPUSMI_FUZZ_SEED", "1"))
KEEP = os.environ.get("TPUSMI_FUZZ_KEEP")
MOST_S = 3.0
"""Of processor time for one input: generous, the slowest that is known takes a tenth."""
MOST_KB = 96 * 1024
"""By which one input may raise the most memory that the process has had."""


@contextmanager
def only_new_garbage() -> Iterator[None]:
    """What the tests before have left is not looked through while the time is taken."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_takes_whatever_comes(name: str, tmp_path: Path) -> None:
    with TARGETS[name](tmp_path) as target, only_new_garbage():
        for data in target.inputs:  # what is real is read, whatever it takes to load
            target.run(data)
        mutator = Mutator(SEED, target.inputs, target.words)
        until_s, tried, slowest_s = time.monotonic() + SECONDS, 0, 0.0
        while tried <= SECONDS or time.monotonic() < until_s:
            tried += 1
            slowest_s = max(slowest_s, tried_s(name, target, mutator.next()))
    if KEEP:
        with open(os.path.join(KEEP, "summary"), "a", encoding="utf-8") as file:
            file.write(f"{name}: {tried} inputs, the slowest took {slowest_s:.3f} s\n")


def tried_s(name: str, target: Target, data: bytes) -> float:
    """Processor time that an input took. Raises when it took too much, and what it raised."""
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started_s = time.process_time()
    try:
        target.run(data)
        took_s = time.process_time() - started_s
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
        assert took_s < MOST_S, f"{took_s:.2f} s"
        assert grown_kb < MOST_KB, f"{grown_kb} KB"
    except BaseException as error:
        if KEEP:
            Path(KEEP, f"{name}-{len(data)}").write_bytes(data)
        error.args = (f"{name}, {len(data)} bytes, {data[:60]!r}: {error!r}",)
        raise
    return took_s
