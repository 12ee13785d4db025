"""Feeds in which everything is known of the devices, and those in which little is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.feeds import FACTS, LIMIT, Job, ScriptedFeed
from tpusmi.chips import GIB, by_name
from tpusmi.merge.advice import notice
from tpusmi.model import (
    ABSENT,
    OK,
    Chip,
    ChipKey,
    Device,
    DeviceKey,
    Link,
    Number,
    Outcome,
    Subject,
)

EXECUTION_US = {"mean": 7.62e5, "p50": 7.24e5, "p90": 8.53e5, "p95": 9.75e5, "p999": 1.057e6}


class ToldJob(Job):
    """A job whose agent and libtpu tell all they can."""

    def measured(self, at_s: float) -> Iterator[tuple[Subject, str, Number]]:
        for subject, name, value in super().measured(at_s):
            yield subject, name, value
            if name == "hbm_used_bytes" and isinstance(subject, DeviceKey):
                yield subject, "hbm_largest_free_block_bytes", int((LIMIT - value) * 0.77)
        for d in self.devices():
            yield d.key, "hbm_reserved_bytes", 258 << 20
            yield d.key, "allocations", 48_211 + d.index
            for part, microseconds in EXECUTION_US.items():
                yield d.key, f"hlo_execution_time_us.{part}", microseconds
            if d.chip is not None:
                yield ChipKey(d.chip), "throttle_percent", 0.0


class PlainJob(Job):
    """A job on devices of JAX that are no TPU: only its agent tells, and of memory little."""

    def __init__(self, platform: str, kind: str, count: int, *, has_memory: bool) -> None:
        super().__init__(4321, "python train.py", 0, count)
        self._platform, self._kind, self._has_memory = platform, kind, has_memory

    def devices(self) -> tuple[Device, ...]:
        return tuple(
            d._replace(platform=self._platform, kind=self._kind, coords=None, core_on_chip=None)
            for d in super().devices()
        )

    def measured(self, at_s: float) -> Iterator[tuple[Subject, str, Number]]:
        for subject, name, value in super().measured(at_s):
            if self._has_memory or not name.startswith("hbm_"):
                yield subject, name, value


def chips(**how: Any) -> ScriptedFeed:
    """Eight v5e chips, four for each of two jobs; one link has a fault."""
    facts = {**FACTS, "device_count": 4}
    jobs = (
        ToldJob(
            *(41234, "python -m train.main --config=configs/gemma_2b.py --batch=256", 0, 4),
            fill=0.72,
            on_chips=True,
            facts=facts,
        ),
        ToldJob(
            *(52870, "python serve.py --model=/models/t5-large --port=8000", 4, 4),
            user="grace",
            fill=0.41,
            on_chips=True,
            facts=facts,
        ),
    )
    links = tuple(
        Link(chip, f"tray1.chip{chip}.ici{n}.int", 7 if (chip, n) == (1, 2) else 0)
        for chip in range(8)
        for n in range(4)
    )
    text = "ICI link tray1.chip1.ici2.int of chip 1 has a lasting fault (health 7)"
    warnings = (notice("ici_link", text, chip=1),)
    seen = {"chips": v5e_chips(8), "links": links, "warnings": warnings}
    changes = {**seen, **how.pop("changes", {})}
    return ScriptedFeed(jobs, past_s=how.pop("past_s", 560), changes=changes, **how)


def v5e_chips(count: int) -> tuple[Chip, ...]:
    generation = by_name("v5e")
    assert generation is not None
    return tuple(
        Chip(
            *(n, "v5e", generation.kind, (f"0000:00:{4 + n:02x}.0",), (f"/dev/vfio/{n}",), 1),
            numa_node=n // 4,
            pcie_link="16.0 GT/s x16",
            hbm_nominal_bytes=16 * GIB,
        )
        for n in range(count)
    )


def cpus() -> ScriptedFeed:
    """JAX on the CPU: no memory statistics, no libtpu."""
    return ScriptedFeed((PlainJob("cpu", "cpu", 4, has_memory=False),), past_s=400)


def gpus() -> ScriptedFeed:
    """JAX on GPUs."""
    job = PlainJob("gpu", "NVIDIA H100 80GB HBM3", 2, has_memory=True)
    return ScriptedFeed((job,), past_s=400)


def without_sdk() -> ScriptedFeed:
    """Nobody tells MXU, duty cycle and bandwidth, and libtpu's SDK says why."""
    message = "this Python has no libtpu"
    sources = (Outcome("agent", OK, "1 job"), Outcome("libtpu_sdk", ABSENT, message))
    job = ToldJob(41234, "python -m train.main", 0, 4, fill=0.72)
    return ScriptedFeed((job,), past_s=400, changes={"sources": sources})


__all__ = ["chips", "cpus", "gpus", "without_sdk"]
