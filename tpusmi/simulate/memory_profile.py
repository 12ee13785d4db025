"""What the lines of the simulated job keep alive on its devices, as JAX would report it."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tpusmi.pprof import packed_varint
from tpusmi.simulate.trace_bytes import field
from tpusmi.simulate.workload import LEAK_PER_S, LEAK_STEP_S, Workload

LIVE = 0.94
"""Share of the memory in use that is in arrays."""
DIRECTORY = "/home/user/llm"
EXECUTABLES = 7


class Line(NamedTuple):
    """A line of the job, and which share of which part of the memory it keeps."""

    part: str
    share: float
    function: str
    file: str
    line: int
    arrays: int


LINES = (
    Line("weights", 1 / 3, "init_params", "train.py", 41, 146),
    Line("weights", 2 / 3, "init_optimizer", "train.py", 58, 292),
    Line("results", 1.0, "gather_results", "evaluate.py", 33, 12),
    Line("activations", 0.85, "train_step", "train.py", 112, 64),
    Line("activations", 0.15, "next_batch", "data.py", 77, 4),
    Line("evaluation", 1.0, "evaluate", "evaluate.py", 19, 40),
    Line("saving", 1.0, "save", "checkpoint.py", 24, 8),
    Line("leaked", 1.0, "log_metrics", "metrics.py", 27, 1),
)  # fmt: skip
COMPILED = LINES[3]


class Kept(NamedTuple):
    """What a line keeps on a device."""

    line: Line
    bytes: int
    arrays: int


def kept(workload: Workload, t_s: float, device: int, limit_bytes: int) -> list[Kept]:
    """What each line keeps alive on a device with so much memory."""
    parts = workload.memory_parts(t_s, device)
    lines = []
    for line in LINES:
        share = parts.get(line.part, 0.0)
        if share > 0:
            leaks = round(share / (LEAK_PER_S * LEAK_STEP_S)) if line.part == "leaked" else 1
            size = int(LIVE * limit_bytes * share * line.share)
            lines.append(Kept(line, size, line.arrays * leaks))
    return lines


def profile(devices: Iterable[tuple[str, Iterable[Kept]]]) -> bytes:
    """A device memory profile: of each device its label and what is kept there."""
    table = _strings()
    samples = [
        _sample(table, k.line, "buffer", k.arrays, k.bytes, label)
        for label, lines in devices
        for k in lines
    ]
    # A TPU does not know the size of an executable, and reports minus one byte.
    samples.append(_sample(table, COMPILED, "executable", EXECUTABLES, -EXECUTABLES, None))
    packer = zlib.compressobj(level=1, wbits=31)
    places = [*_places(table)]
    data = b"".join((*samples, *places, *(field(6, text.encode()) for text in table)))
    return packer.compress(data) + packer.flush()


def _strings() -> dict[str, int]:
    """Numbers of the strings of a profile, each the next one at first use; the empty one is 0."""
    table: defaultdict[str, int] = defaultdict()
    table.default_factory = table.__len__
    table[""] = 0
    return table


def _sample(
    table: dict[str, int], line: Line, kind: str, count: int, size: int, device: str | None
) -> bytes:
    labels = {"kind": kind, **({"device": device} if device else {})}
    packed = b"".join(
        field(3, field(1, table[key]) + field(2, table[value])) for key, value in labels.items()
    )
    stack = field(1, packed_varint(LINES.index(line) + 1))
    return field(2, stack + field(2, packed_varint(count) + packed_varint(size)) + packed)


def _places(table: dict[str, int]) -> Iterator[bytes]:
    """Location and function of each line; both have its number."""
    for number, line in enumerate(LINES, 1):
        where = field(1, number) + field(2, line.line)
        yield field(4, field(1, number) + field(4, where))
        name, file = table[line.function], table[f"{DIRECTORY}/{line.file}"]
        yield field(5, field(1, number) + field(2, name) + field(4, file))
