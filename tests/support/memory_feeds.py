"""Jobs whose memory profiles tell what each device holds, as a script changes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.feeds import LIMIT, Job, ScriptedFeed
from tpusmi.model import Allocation, MemoryProfile, Number, Site, Subject

MIB = 1 << 20
HERE = (
    ("init_optimizer", "train/optimizer.py", 48, 5581, 504),
    ("init_params", "train/model.py", 212, 3558, 292),
    ("train_step", "train/loop.py", 131, 820, 40),
    ("train_step", "train/loop.py", 188, 310, 8),
    ("load_batch", "train/data.py", 77, 512, 16),
)
"""What each device holds: function, file, line, MiB, buffers."""
PROGRAMS = (
    Allocation("train_step", "train/loop.py", 131, "executable", None, None, 3),
    Allocation("eval_step", "train/loop.py", 188, "executable", None, None, 1),
)


def held(devices: int, *more: tuple[str, str, int, int, int]) -> tuple[Allocation, ...]:
    """The allocations of that many devices, each with those of HERE and some more."""
    buffers = [
        Allocation(function, file, line, "buffer", device, size * MIB, count)
        for function, file, line, size, count in (*HERE, *more)
        for device in range(devices)
    ]
    return (*sorted(buffers, key=lambda a: -(a.bytes or 0)), *PROGRAMS)


def sums(allocations: tuple[Allocation, ...]) -> tuple[Site, ...]:
    """The same, of all devices together."""
    found: dict[tuple[str, str, int, str], Site] = {}
    for a in allocations:
        before = found.get(a[:4])
        if before is None or before.bytes is None or a.bytes is None:
            found[a[:4]] = Site(*a[:4], a.bytes, a.count)
        else:
            found[a[:4]] = Site(*a[:4], before.bytes + a.bytes, before.count + a.count)
    return tuple(found.values())


def profile(at_s: float, allocations: tuple[Allocation, ...], **left_out: int) -> MemoryProfile:
    """A profile of that time."""
    return MemoryProfile(at_s, sums(allocations), allocations, **left_out)


class MemoryJob(Job):
    """A job whose profile a test sets, and whose agent tells of free blocks."""

    def __init__(self, pid: int, first: int, count: int, **fields: Any) -> None:
        command = "python -m train.main --config=configs/gemma_2b.py --batch=256"
        super().__init__(pid, command, first, count, fill=0.72, **fields)
        self.take(profile(99_996.0, held(count)))

    def take(self, profile: MemoryProfile | None) -> None:
        """This is its newest profile."""
        self.fields["profile"] = profile

    def measured(self, at_s: float) -> Iterator[tuple[Subject, str, Number]]:
        """Every value, and those of free memory."""
        yield from super().measured(at_s)
        for d in self.devices():
            yield d.key, "hbm_largest_free_block_bytes", int(LIMIT * (0.08 + 0.01 * d.index))
            yield d.key, "hbm_reserved_bytes", 258 * MIB


def trainer(**how: Any) -> ScriptedFeed:
    """A job with a profile on four devices, another on four more, and one without an agent."""
    other = MemoryJob(52870, 4, 4, user="grace")
    bare = Job(60001, "python notebook.py", 8, 0, profile=None, interval_s=None)
    return ScriptedFeed((MemoryJob(41234, 0, 4), other, bare), **{"past_s": 30, **how})
