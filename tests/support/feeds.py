"""A feed that says what a script says: no clock, no thread, no TPU."""

from __future__ import annotations

import functools
import math
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tpusmi.model import (
    OK,
    Device,
    DeviceKey,
    History,
    HostFacts,
    MemoryProfile,
    Notice,
    Number,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    Site,
    Snapshot,
    Subject,
    Value,
)
from tpusmi.tui.feed import Deliver, Feed

GIB = 1 << 30
START_S = 100_000.0
"""The first snapshot's CLOCK_MONOTONIC, as after a day of uptime."""
LIMIT = int(15.75 * GIB)
KIND = "TPU v5 lite"

SITES = (
    Site("adamw_init", "train/optimizer.py", 48, "buffer", int(21.8 * GIB), 2016),
    Site("init_params", "train/model.py", 212, "buffer", int(13.9 * GIB), 1168),
    Site("train_step", "train/loop.py", 131, "buffer", int(5.7 * GIB), 192),
    Site("load_batch", "train/data.py", 77, "buffer", 2 * GIB, 64),
    Site("train_step", "train/loop.py", 131, "executable", None, 3),
    Site("eval_step", "train/loop.py", 188, "executable", None, 1),
)
FACTS = {
    "platform": "tpu",
    "device_kind": KIND,
    "process_index": 0,
    "process_count": 1,
    "python_version": "3.12.4",
    "jax_version": "0.7.2",
    "jaxlib_version": "0.7.2",
    "libtpu_version": "0.0.24",
}


BUSY = (
    "tensorcore_utilization_percent",
    "duty_cycle_percent",
    "hbm_bandwidth_utilization_percent",
)

TRAINING = {
    "tensorcore_utilization_percent": (57, 3),
    "duty_cycle_percent": (98, 1),
    "hbm_bandwidth_utilization_percent": (62, 5),
}
"""What a training job keeps its chips at, and how far it strays."""


UIDS = {"ada": 1000, "grace": 1001, "root": 0}


class Job:
    """A process and what it would measure at a time."""

    def __init__(  # noqa: PLR0913  # a script reads best in one call
        self,
        pid: int,
        command: str,
        first: int,
        count: int,
        *,
        user: str = "ada",
        fill: float = 0.6,
        busy: bool = False,
        on_chips: bool = False,
        **fields: Any,
    ) -> None:
        self.key = ProcessKey(pid, pid * 100)
        self.command, self.user, self.fill, self.busy = command, user, fill, busy or on_chips
        self.on_chips = on_chips
        self.first, self.count = first, count
        self.fields: dict[str, Any] = {"state": "live", "phase": "running", **fields}

    def devices(self) -> tuple[Device, ...]:
        """Its devices, numbered on the host from `first`."""
        return tuple(self._device(i, self.first + i) for i in range(self.count))

    def _device(self, i: int, n: int) -> Device:
        return Device(
            *(DeviceKey(self.key, i), i, n, "tpu", KIND, (i % 4, i // 4, 0), 0),
            chip=n if self.on_chips else None,
            node=f"/dev/vfio/{n}" if self.on_chips else None,
            owners=(self.key,),
        )

    def process(self, at_s: float) -> Process:
        """The process as its agent tells it."""
        fields = {
            "sampled_at_s": at_s - 0.4,
            "interval_s": 1.0,
            "facts": FACTS,
            "profile": MemoryProfile(at_s - 4.0, SITES),
            "uid": UIDS.get(self.user),
            **self.fields,
        }
        return Process(self.key, self.user, self.command, **fields)

    def measured(self, at_s: float) -> Iterator[tuple[Subject, str, Number]]:
        """Every value of the job and its devices at that time."""
        used = 0
        for d in self.devices():
            wave = math.sin(at_s / (17 + d.index)) + math.sin(at_s * 0.9 + d.index) / 5
            here = int(LIMIT * (self.fill + 0.12 * wave))
            used += here
            yield d.key, "hbm_used_bytes", here
            yield d.key, "hbm_limit_bytes", LIMIT
            yield d.key, "hbm_peak_bytes", int(LIMIT * min(0.99, self.fill + 0.17))
            yield d.key, "live_array_bytes", int(here * 0.94)
            yield d.key, "live_arrays", 840 + int(at_s * 7 + d.index) % 60
            for n, name in enumerate(BUSY if self.busy else ()):
                middle, spread = TRAINING[name] if self.on_chips else (50, 40)
                yield d.key, name, middle + spread * math.sin(at_s * 0.7 + d.index + n)
            if self.on_chips:
                yield d.key, "idle_s", 0.004 + 0.003 * math.sin(at_s + d.index)
                yield d.key, "hlo_queue_size", 1 + int(at_s + d.index) % 3
        if self.on_chips:
            yield self.key, "mfu_percent", 51.3 + 2 * math.sin(at_s / 9 + self.first)
            yield self.key, "flops_per_s", 4.04e14
        yield self.key, "hbm_used_bytes", used
        yield self.key, "live_array_bytes", int(used * 0.94)
        yield self.key, "live_arrays", 860 * self.count
        yield from ((self.key, name, value) for name, value in self._steps(at_s))

    def _steps(self, at_s: float) -> Iterator[tuple[str, Number]]:
        step_s = 0.080 + 0.02 * self.fill + 0.003 * math.sin(at_s)
        yield "steps", int((at_s - START_S + 3600) * 11)
        yield "steps_per_s", 1 / step_s
        for part, factor in (
            ("min", 0.97),
            ("mean", 1.0),
            ("p50", 0.99),
            ("p95", 1.08),
            ("max", 1.31),
        ):
            yield f"step_time_s.{part}", step_s * factor
        yield "since_last_step_s", 0.04
        yield "compilations", 14
        yield "compile_s", 41.7
        yield "recent_compilations", 0
        yield "executables", 4
        yield "agent_cost_percent", 0.11 + 0.01 * math.sin(at_s)


class ScriptedFeed:
    """Jobs on a host. Time stands still unless `tick_s` moves it at each snapshot."""

    def __init__(
        self,
        jobs: tuple[Job, ...] = (),
        *,
        tick_s: float = 0.0,
        past_s: int = 0,
        changes: Mapping[str, Any] | None = None,
    ) -> None:
        self.jobs = jobs
        self.at_s = START_S
        self.history = History()
        self.asked = 0
        self._tick_s = tick_s
        self._changes = dict(changes or {})
        self.remember(past_s)

    def snapshot(self) -> Snapshot:
        """The present of the script."""
        self.asked += 1
        self.at_s += self._tick_s if self.asked > 1 else 0.0
        self._remember(self.at_s)
        fields: dict[str, Any] = {
            "tpusmi_version": "0.1.0",
            "simulated": False,
            "at_s": self.at_s,
            "host": HostFacts("trainer-7", _clock(self.at_s - START_S), "b00t", False),
            "devices": tuple(d for job in self.jobs for d in job.devices()),
            "processes": tuple(job.process(self.at_s) for job in self.jobs),
            "sources": (Outcome("segments", OK, f"{len(self.jobs)} jobs"),),
            "warnings": (),
            "values": {
                (s, name): Value(v, "agent", 0.4, False) for s, name, v in self._measured(self.at_s)
            },
        }
        return Snapshot(**{**fields, **self._changes})

    def remember(self, seconds: int) -> None:
        """Let there be a past of so many seconds."""
        for ago_s in range(seconds, 0, -1):
            self._remember(START_S - ago_s)

    def change(self, **fields: Any) -> None:
        """Let the snapshots to come have other fields."""
        self._changes.update(fields)

    def _measured(self, at_s: float) -> Iterator[tuple[Subject, str, Number]]:
        for job in self.jobs:
            yield from job.measured(at_s)

    def _remember(self, at_s: float) -> None:
        self.history.add([Reading(n, s, v, at_s, "agent", 5.0) for s, n, v in self._measured(at_s)])


class MomentFeed:
    """A feed of one snapshot, again and again."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.history = History()

    def snapshot(self) -> Snapshot:
        """The moment."""
        return self._snapshot


class Inline:
    """A reader without a thread: answers while it is asked."""

    def __init__(self, feed: Feed, deliver: Deliver) -> None:
        self._feed, self._deliver = feed, deliver

    def start(self) -> None:
        """Nothing to start."""

    def ask(self) -> None:
        """Answer now."""
        self._deliver(self._feed.snapshot())


def computed_once(build: Callable[..., ScriptedFeed]) -> Callable[..., ScriptedFeed]:
    """The builder of feeds whose past takes long to compute. Each call gets a feed of its own."""

    @functools.cache
    def pickled(*arguments: Any, **how: Any) -> bytes:
        return pickle.dumps(build(*arguments, **how))

    @functools.wraps(build)
    def built(*arguments: Any, **how: Any) -> ScriptedFeed:
        feed: ScriptedFeed = pickle.loads(pickled(*arguments, **how))
        return feed

    return built


def two_jobs(on_chips: bool = False, **how: Any) -> ScriptedFeed:
    """Eight devices, four for each of two jobs; on a machine whose chips are seen, or not."""
    jobs = (
        Job(
            41234,
            "python -m train.main --config=configs/gemma_2b.py --batch=256",
            0,
            4,
            fill=0.72,
            on_chips=on_chips,
        ),
        Job(
            52870,
            "python serve.py --model=/models/t5-large --port=8000",
            4,
            4,
            user="grace",
            fill=0.41,
            on_chips=on_chips,
        ),
    )
    return ScriptedFeed(jobs, past_s=400, **how)


@computed_once
def many_devices(count: int, busy: bool = False, **how: Any) -> ScriptedFeed:
    """Two jobs that share that many chips."""
    half = -(-count // 2)
    jobs = (
        Job(
            41234,
            "python -m train.main --config=configs/gemma_2b.py",
            0,
            half,
            fill=0.72,
            busy=busy,
        ),
        Job(
            52870,
            "python serve.py --model=/models/t5-large",
            half,
            count - half,
            user="grace",
            fill=0.41,
            busy=busy,
        ),
    )
    return ScriptedFeed(jobs, **how)


__all__ = ["GIB", "Inline", "Job", "Notice", "ScriptedFeed", "many_devices", "two_jobs"]


def _clock(seconds: float) -> str:
    at = int(seconds)
    return f"2026-03-02T{9 + at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z"
