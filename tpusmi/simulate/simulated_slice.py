"""The other hosts of a simulated slice: what the agent of this one would read of them.

They run the same job at the same time, each a little faster or slower than the others. Faults let
one of them fall silent or behind, have full memory, or another time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from zlib import crc32

from tpusmi.agent.segment import Values, doubles
from tpusmi.agent.slice_text import text_of
from tpusmi.simulate.accelerator import SimulatedDevice, parse
from tpusmi.simulate.running import Running
from tpusmi.wire.layout import DEVICE_FIELDS, SLICE_JSON
from tpusmi.wire.slice_summary import (
    DEVICES_MOST,
    PROCESSES_MOST,
    VERSION,
    Head,
    packed,
    period_s,
    row_of,
)
from tpusmi.wire.writer import SegmentWriter

GOLDEN = 0.6180339887498949
UNEVEN = 0.02
"""By how much the time of a step differs between hosts."""
SLOWER, FULL, AHEAD_S = 2.0, 0.985, 75.0
"""What faults do: to the time of a step, the share of memory in use, and the clock of a host."""
SILENT_MOST_S = 45.0
"""How long a host has been silent that was so from the start."""

Fields = Mapping[str, float | None]


class SimulatedSlice:
    """All processes of the job, as one process of this host reads them."""

    def __init__(self, running: Running, limit_bytes: int, kind: str) -> None:
        described = running.description
        self._running, self._limit_bytes, self._kind = running, limit_bytes, kind
        self._per_host = len(described["processes"])
        self.processes = min(described["hosts"] * self._per_host, PROCESSES_MOST)
        self._period_s = period_s(self.processes)
        self._job = crc32(
            f"{described['generation']} {described['hosts']} {described['seed']}".encode()
        )
        self._written_at_s = -math.inf
        self._sequence = 0
        self._facts: list[tuple[str, list[dict[str, Any]]]] = []
        """The name of the host of each process, and its devices."""
        self._silent: dict[int, tuple[float, Sequence[Any]]] = {}
        """When each silent process said something for the last time, and its line then."""
        self._slow: dict[int, float] = {}
        """How many steps each slow process had taken when it became slow."""

    def write(self, writer: SegmentWriter, process: Fields, now_s: float) -> None:
        """Write what is due; `process` are the fields of this process's own sample."""
        if self.processes < 2 or now_s - self._written_at_s < self._period_s:
            return
        self._written_at_s = now_s
        self._sequence += 1
        if not self._facts:
            self._facts = [*islice(self._others(), self.processes)]
        own = self._running.description["worker"] * self._per_host
        blob = (VERSION, self.processes, own, self._job, self._period_s)
        lines = (self._line(index, own, process) for index in range(self.processes))
        writer.slice.write(SLICE_JSON, packed(blob, lines), now_s)

    def _others(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """The processes of all hosts, this one too: each host has the same chips for each."""
        described = self._running.description
        chips_here = len(described["chips"]) if described.get("chips_chosen") else None
        for worker in range(described["hosts"]):
            devices = parse(described["accelerator_type"], worker, chips_here).devices
            for p in described["processes"]:
                mine = [d for d in devices if d.chip in p["chips"]]
                yield f"simulated-w-{worker}", [_facts(d) for d in mine[:DEVICES_MOST]]

    def _line(self, index: int, own: int, process: Fields) -> Sequence[Any]:
        """A LINE of the blob."""
        if not self._has("silent-host", index):
            self._silent.pop(index, None)
            return self._current_line(index, own, process)
        now_s = time.monotonic()
        if index not in self._silent:
            is_first = self._sequence == 1
            before_s = min(SILENT_MOST_S, self._running.job_time_s) if is_first else 0.0
            self._silent[index] = now_s - before_s, self._current_line(index, own, process)
        since_s, (_, age_s, *rest) = self._silent[index]
        return index, round(age_s + now_s - since_s, 3), *rest

    def _has(self, fault: str, index: int) -> bool:
        """Whether the host of that process has the fault; this one itself has none."""
        host = self._running.faults.get(fault)
        number = index // self._per_host
        own = self._running.description["worker"]
        return host is not None and int(host) == number and number != own

    def _current_line(self, index: int, own: int, process: Fields) -> Sequence[Any]:
        name, devices = self._facts[index]
        share = index * GOLDEN % 1.0
        at_s = (share + self._sequence * GOLDEN) % 1.0 * self._period_s
        age_s = 0.0 if index == own else at_s
        ahead_s = AHEAD_S if self._has("clock-host", index) else share / 50
        head = Head(
            version=VERSION,
            sequence=self._sequence,
            wall_s=time.time() - age_s,
            period_s=self._period_s,
            place=index + 1,
        )
        full = self._has("full-host", index)
        rows = [self._device(d["id"], full) for d in devices]
        values = doubles(0.0, self._paced(index, own, process), rows)
        row = row_of(text_of(head, values, 0.0, {"device_kind": self._kind, "devices": devices}))
        assert row is not None
        row[len(Head._fields)] = name
        return index, round(age_s, 3), 0.0 if index == own else round(ahead_s, 3), row

    def _paced(self, index: int, own: int, process: Fields) -> dict[str, float | None]:
        """The fields of a process with the time of its own steps."""
        paced = {**process}
        step_s, steps = process.get("step_time_s.mean"), process.get("steps")
        if step_s is None or index == own:
            return paced
        paced["step_time_s.mean"] = step_s * (1 + UNEVEN * (index * GOLDEN % 1.0 - 0.5))
        if not self._has("slow-host", index):
            self._slow.pop(index, None)
            return paced
        paced["step_time_s.mean"] = SLOWER * step_s
        if steps is not None:
            before = self._slow.setdefault(index, steps)
            paced["steps"] = before + (steps - before) // SLOWER
        return paced

    def _device(self, number: int, is_full: bool) -> Values:
        job, t_s = self._running.workload, self._running.job_time_s
        used = job.memory(t_s, number)
        fields = {
            "hbm_used_bytes": int(self._limit_bytes * (FULL if is_full and used else used)),
            "hbm_limit_bytes": self._limit_bytes,
            "duty_cycle_percent": 100 * job.duty(t_s, number),
            "idle_s": job.idle_s(t_s, number),
        }
        return tuple(fields.get(name) for name in DEVICE_FIELDS)


def _facts(d: SimulatedDevice) -> dict[str, Any]:
    return {"id": d.id, "coords": [*d.coords], "core_on_chip": d.core}
