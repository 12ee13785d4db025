"""The files that a process of the simulated job keeps up to date."""

from __future__ import annotations

import math
import os
import time

from tpusmi.simulate import followed
from tpusmi.simulate.host_files import update_machine
from tpusmi.simulate.running import Running
from tpusmi.simulate.simulated_agent import SAMPLE_S, SimulatedAgent
from tpusmi.wire import identity, places
from tpusmi.wire.layout import SegmentError
from tpusmi.wire.reader import Sample, SegmentReader


class JobFiles:
    """The files that one process of the job keeps up to date: its segment, and, the first one, the
    state of the machine and what a real program does.
    """

    def __init__(self, running: Running, process: int) -> None:
        self._running = running
        self._process = process
        self._agent: SimulatedAgent | None = None
        self._next_s = -math.inf
        self._recent = followed.RecentSteps()

    def update(self) -> None:
        """Write what is due, and answer a request for a capture."""
        if self._agent is not None:
            self._agent.look()
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + SAMPLE_S
        if self._process == 0 and self._running.description["freeze_s"] is None:
            update_machine(self._running.directory, self._running.job_time_s)
        if self._process == 0 and self._running.is_followed:
            self._follow_program()
        if self._agent is None and self._running.has_agent:
            self._agent = SimulatedAgent(self._running, self._process)
            self._agent.write_past(now_s)
        if self._agent is not None:
            self._agent.write(now_s)

    def _follow_program(self) -> None:
        """Write what the agent of the real program measured last, while that program runs."""
        directory = self._running.directory
        try:
            files, _ = places.segments(self._running.description["segment_dir"], os.getuid())
        except OSError:
            return
        living = [f for f in files if identity.start_ticks("/proc", f.pid) == f.start_ticks]
        if not living:
            followed.write(directory, None)
        for file in living:
            if (sample := _newest(file.path)) is not None:
                followed.write(directory, self._measured(sample))

    def _measured(self, sample: Sample) -> followed.Measured:
        own = sample.process
        steps, since_s = own.get("steps", 0.0), own.get("since_last_step_s", 0.0)
        self._recent.look(sample.at_s - since_s, steps)
        present = self._recent.over_mean(own.get("steps_per_s", 0.0))
        mfu = own.get("mfu_percent", 0.0) / 100 * present
        live_bytes = (device.get("live_array_bytes", 0.0) for device in sample.devices)
        return followed.Measured(sample.at_s, steps, since_s, mfu, *live_bytes)


def _newest(path: str) -> Sample | None:
    try:
        reader = SegmentReader(path)
        try:
            return reader.newest()
        finally:
            reader.close()
    except SegmentError:
        return None
