"""What the host does in the trace of a simulated capture: the marks of steps, the calls that start
programs, reading input, compiling, and the memory that is allocated on each device.
"""

from __future__ import annotations

import os

from tpusmi.simulate.trace_bytes import Stats, TracedLine, TracedPlane
from tpusmi.simulate.trace_capture import LAUNCH, SimulatedCapture, context_of
from tpusmi.simulate.trace_timeline import TracedRun
from tpusmi.simulate.workload import (
    COMPILE_S,
    COMPILING,
    LOAD_S,
    SAVE,
    STALL,
)

AHEAD_S = 300e-6
"""How long before its program runs the host has begun a step."""
CALL_S, LAUNCH_S, BETWEEN_S = 250e-6, 20e-6, 50e-6
SAVED_S = 0.9
"""How much of each second of a checkpoint copies to the host."""
COMPILED_EACH_S = COMPILE_S / 6
MEMORY_LOOKS = 16


def host_plane(
    plane: TracedPlane, capture: SimulatedCapture, seen: list[TracedRun], memory_limit_bytes: int
) -> None:
    """Write the lines of the host's plane."""
    pid = os.getpid()
    main = _Thread(capture, plane.line(f"main/{pid}", number=pid))
    for number, run in enumerate(seen):
        _write_step(main, capture, run, number)
    beside = _Thread(capture, plane.line(f"input/{pid + 1}", number=pid + 1))
    for run in seen:
        _write_beside(beside, run)
    _write_compilations(_Thread(capture, plane.line(f"compiler/{pid + 2}", number=pid + 2)))
    line = plane.line(f"tfrt-dynamic-queue/{pid + 3}", number=pid + 3)
    for ordinal, device in enumerate(capture.devices):
        _write_memory(line, capture, (ordinal, device["id"]), memory_limit_bytes)


class _Thread:
    """One thread of the host. A profiler records what has begun and ended while it runs."""

    def __init__(self, capture: SimulatedCapture, line: TracedLine) -> None:
        self.capture = capture
        self._line = line

    def add(self, name: str, begin_s: float, end_s: float, stats: Stats | None = None) -> None:
        """Add what it did from then to then."""
        if self.capture.begin_s <= begin_s and end_s <= self.capture.end_s:
            place = self.capture.clipped_ps(begin_s, end_s)
            if place is not None:
                self._line.event(name, *place, stats)


def _write_step(main: _Thread, capture: SimulatedCapture, run: TracedRun, number: int) -> None:
    """The mark of a step around the call that starts its program on each device."""
    program = run.program
    at_s = run.begin_s - AHEAD_S
    if run.number is not None:
        stats = {"_r": 1, "step_num": run.number}
        main.add("train", at_s, run.end_s - AHEAD_S - BETWEEN_S, stats)
    main.add(f"PjitFunction({program.function})", at_s + 10e-6, at_s + CALL_S)
    each_s = min(LAUNCH_S, (CALL_S - 50e-6) / max(1, len(capture.devices)))
    for n, device in enumerate(capture.devices):
        begin_s = at_s + 30e-6 + n * each_s
        context = {"_pt": LAUNCH, "_p": context_of(number, device["index"])}
        main.add("tpu::System::Execute", begin_s, begin_s + 0.9 * each_s, context)


def _write_beside(thread: _Thread, run: TracedRun) -> None:
    """Reading the next batch, or copying a checkpoint."""
    if run.activity == STALL:
        thread.add("next_batch", run.begin_s, run.begin_s + 0.7 * run.length_s)
    elif run.activity == SAVE:
        end_s = run.begin_s + SAVED_S * run.length_s
        thread.add("tpu::System::TransferFromDevice", run.begin_s, end_s)
    elif run.number is not None:
        thread.add("next_batch", run.begin_s, run.begin_s + 0.1 * run.length_s)


def _write_compilations(thread: _Thread) -> None:
    """The programs that are compiled before the first step."""
    job = thread.capture.running.workload
    for n in range(6):
        begin_s = LOAD_S + n * COMPILED_EACH_S
        if job.activity(begin_s) == COMPILING:
            thread.add("backend_compile", begin_s, begin_s + 0.98 * COMPILED_EACH_S)


def _write_memory(
    line: TracedLine, capture: SimulatedCapture, device: tuple[int, int], limit_bytes: int
) -> None:
    """Allocations on one device: how much is in use at some moments."""
    most = 0
    for look in range(MEMORY_LOOKS):
        at_s = capture.begin_s + capture.length_s * look / MEMORY_LOOKS
        used = int(limit_bytes * capture.running.workload.memory(at_s, device[1]))
        most = max(most, used)
        stats = {
            "index_on_host": device[0],
            "bytes_reserved": 0,
            "bytes_allocated": used,
            "bytes_available": limit_bytes - used,
            "fragmentation": 0.0,
            "peak_bytes_in_use": most,
            "requested_bytes": 4096,
            "allocation_bytes": 4096,
            "addr": used,
        }
        line.event("MemoryAllocation", round((at_s - capture.begin_s) * 1e12), 0, stats)
