"""A job whose memory a test decides, second by second, under the eyes of a watch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from support.memory_histories import SECONDS
from tpusmi.merge.memory_watch import MemoryWatch
from tpusmi.model import (
    Device,
    DeviceKey,
    History,
    HostFacts,
    MemoryProfile,
    Notice,
    Process,
    ProcessKey,
    Reading,
    Site,
    Snapshot,
    Value,
)

START_S = 100_000.0
LIMIT = 16 << 30
KEY = ProcessKey(4321, 9)
USED, LIVE = "hbm_used_bytes", "live_array_bytes"


class Moment(NamedTuple):
    """What a watch looks at."""

    processes: tuple[Process, ...]
    devices: tuple[tuple[Device, ...], tuple[Device, ...]]
    readings: dict[object, Reading]
    owners: dict[object, tuple[ProcessKey, ...]]


def snapshot_of(
    processes: tuple[Process, ...], devices: tuple[Device, ...], now_s: float, used: float | None
) -> Snapshot:
    """A moment of these; `used` is what each device has in use."""
    values = {(d.key, "hbm_limit_bytes"): Value(LIMIT, "agent", 0.0, False) for d in devices}
    if used is not None:
        values |= {(d.key, USED): Value(used, "agent", 0.0, False) for d in devices}
    return Snapshot(
        tpusmi_version="",
        simulated=False,
        at_s=now_s,
        host=HostFacts("trainer", "", None, None),
        devices=devices,
        processes=processes,
        sources=(),
        warnings=(),
        values=values,
    )


class Machine:
    """A job on some devices, whose memory a test decides."""

    def __init__(self, count: int = 2, agent: bool = True) -> None:
        self.watch, self.history = MemoryWatch(), History()
        self.devices = tuple(
            Device(DeviceKey(KEY, i), i, i, "tpu", "TPU v5e", None, 0, chip=i, owners=(KEY,))
            for i in range(count)
        )
        self.process = Process(KEY, "ada", "train.py", interval_s=1.0 if agent else None, uid=1000)
        self.at = -1

    def look(
        self,
        lines: dict[str, float] | None = None,
        used: float | None = None,
        live: float | None = None,
        **changes: object,
    ) -> tuple[Notice, ...]:
        """The notices one second later. The amounts are those of one device."""
        self.at += 1
        now_s = START_S + self.at
        amounts = {USED: used, LIVE: live}
        readings = [
            Reading(name, d.key, value, now_s, "agent", 5.0)
            for name, value in amounts.items()
            if value is not None
            for d in self.devices
        ]
        self.history.add(readings)
        if lines is not None and self.at % 4 == 0:
            self.process = self.process._replace(profile=self.profiled(lines, now_s))
        process = self.process._replace(**changes)
        self.watch.look(Moment((process,), (self.devices, ()), {}, {}), self.history, now_s)
        self.snapshot = self.watch.on(snapshot_of((process,), self.devices, now_s, used))
        return self.snapshot.warnings

    def profiled(self, lines: dict[str, float], at_s: float | None = None) -> MemoryProfile:
        """A profile of these lines and their bytes; of the next second unless `at_s` says when."""
        sites = tuple(
            Site(name, f"/home/ada/llm/{name}.py", 7, "buffer", int(size), 1)
            for name, size in sorted(lines.items(), key=lambda line: -line[1])
        )
        return MemoryProfile(START_S + self.at + 1 if at_s is None else at_s, sites)

    def run(self, of: Callable[[int], dict[str, object]], seconds: int = SECONDS) -> list[Notice]:
        """The notices of that time, each message once."""
        notices = (n for t in range(seconds) for n in self.look(**of(t)))
        return [*{n.message: n for n in notices}.values()]
