"""The agent's thread: waits for a JAX backend, then samples it into a segment.

Quiet, and cheap by measurement.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from tpusmi import memprofile
from tpusmi.agent import jaxread, own_process
from tpusmi.agent.activity import Activity, Compilations
from tpusmi.agent.flops import mfu_percent
from tpusmi.agent.own_captures import LOOK_S, OwnCaptures, published
from tpusmi.agent.own_slice import OwnSlice
from tpusmi.agent.profiler_server import ProfilerServer
from tpusmi.agent.segment import Segment, Values, doubles, live_values
from tpusmi.agent.steps import Steps
from tpusmi.agent.threads import PROFILE_SHARE, SAMPLE_SHARE, Event, Pace, Thread
from tpusmi.agent.utilization import Busy, Utilization, begin
from tpusmi.model import PHASES
from tpusmi.pprof import ProfileError
from tpusmi.text import counted
from tpusmi.wire.layout import PROFILE_PPROF, PROFILE_SITES

POLL_S = 0.1
"""How often to look for a backend that does not exist yet, which takes two dictionary look-ups."""
PROFILE_COST_MOST_S = 1.0
"""A profile pauses the interpreter; after one that takes longer than this, none is taken again."""
COST_WINDOW = 60
NO_MEMORY = (None,) * len(jaxread.MEMORY_KEYS)


class Sampler(Thread):
    """Samples this process until it is stopped. Raises nothing into the job."""

    def __init__(
        self,
        interval_s: float,
        steps: Steps,
        override: str | None,
        mode: int,
        on_backend: Callable[[], None],
    ) -> None:
        super().__init__()
        self._on_backend = on_backend
        """Called once, in this thread, when the job has made a backend."""
        self.compilations = Compilations()
        self.segment = Segment(override, mode)
        self.server = ProfilerServer()
        self.slice = OwnSlice()
        self._captures = OwnCaptures(override)
        self.failure: str | None = None
        """Why the agent switched itself off; None while it works."""
        self._steps = steps
        self._activity = Activity(steps, self.compilations)
        self._end = Event()
        self._samples = Pace(interval_s, SAMPLE_SHARE)
        self._profiles = Pace(interval_s, PROFILE_SHARE)
        self._profiling = True
        self._profile_at_s: float | None = None
        self._states: list[jaxread.DeviceState] = []
        self._totals = memprofile.Totals({}, 0)
        self._device_ids: list[int | None] = []
        self._spent: deque[tuple[float, float]] = deque(maxlen=COST_WINDOW)
        self._peak_flops_per_s: float | None = None
        self._utilization = Utilization([], None, interval_s)
        """Reads libtpu's metrics; started when there are devices."""

    def run(self) -> None:
        """The thread. Ends when it is stopped, or at the first unexpected error."""
        try:
            own_process.block_signals()
            self._wait_for_backend()
            while not self._end.is_set():
                self.server.serve(self.segment)
                self._tick()
                self.slice.publish(self.segment)
                self._captures.look(self.segment.path, self.segment.who)
                self._end.wait(self._wait_s(time.monotonic()))
        except Exception as error:  # noqa: BLE001  # the job goes on without an agent
            self._switch_off(error)

    @property
    def state(self) -> str:
        """What it does, in words: where it publishes, or what it waits for."""
        if self.failure is not None:
            return f"switched off: {self.failure}"
        if not self.is_alive():
            return "ended"
        if self.segment.trouble is not None:
            return f"tries again later: {self.segment.trouble}"
        path = self.segment.path
        devices = len(self._device_ids)
        what = counted(devices, "device") if devices else "waits for JAX"
        return what if path is None else f"publishing to {path}, {what}"

    def finish(self, keep: bool, wait_s: float = 2.0) -> None:
        """Stop the thread and close the segment: kept as a black box, or removed."""
        self._end.set()
        self._utilization.stop()
        self.slice.stop()
        self.join(wait_s)
        self._captures.finish()
        self._utilization.stop()  # another one may have been started in between
        self.slice.stop()
        if not self.is_alive():
            works = keep and self.failure is None
            last = self._values(time.monotonic(), "ended") if works else None
            self.segment.end(keep, last)
        self.compilations.close()

    def _wait_s(self, now_s: float) -> float:
        """Seconds until something is due. Where nothing can be written, nothing is read."""
        wait_s = self.segment.wait_s(now_s)
        if self.segment.trouble is not None:
            return wait_s
        return min(wait_s, self._samples.wait_s(now_s), LOOK_S)

    def _switch_off(self, error: Exception) -> None:
        self.failure = f"{type(error).__name__}: {error}"
        self.compilations.close()
        self._utilization.stop()
        # The segment stays open and locked: this process lives, and viewers call it silent.
        own_process.say(f"agent switched off: {self.failure}")
        try:
            self.segment.warn("agent_off", f"the agent switched itself off: {self.failure}")
        except Exception:  # noqa: BLE001  # often the very reason
            pass

    def _wait_for_backend(self) -> None:
        """Poll until the job has made a backend, showing the process as starting meanwhile."""
        argv = own_process.command()
        version = ".".join(map(str, sys.version_info[:3]))
        self.segment.facts = {"argv": argv, "python_version": version, "captures": published()}
        if not own_process.is_helper(argv):
            self.segment.open(0)
        while (backend := jaxread.backend()) is None:
            if not jaxread.backend_is_visible():
                raise RuntimeError("this JAX does not show whether a backend exists")
            self.compilations.listen()
            self._sample_without_backend()
            self._captures.look(self.segment.path, self.segment.who)
            if self._end.wait(POLL_S):
                return
        self.compilations.listen()
        self._on_backend()
        self._adopt_backend(backend)

    def _sample_without_backend(self) -> None:
        """Sample the process itself: a job may never use JAX."""
        if not self.segment.was_opened:
            if self._steps.last_at_s is None:
                return
            self.segment.open(0)  # a worker that is more than a helper
        now, cpu = time.monotonic(), time.thread_time()
        if not (self.segment.keep(now) and self._samples.is_due(now)):
            return
        self._spent.append((now, cpu))
        self.segment.append(self._values(now))
        self.segment.note_changes([], [], self._notes())
        if self._samples.spent(now, time.thread_time() - cpu):
            self.segment.append(self._values(now))

    def _adopt_backend(self, backend: Any) -> None:
        """Make a segment for the devices that the backend has now."""
        self._activity.has_backend = True
        facts = self.segment.facts
        facts.update(jaxread.static_facts(backend))
        facts["warnings"] = own_process.fallback_warning(facts["platform"])
        kind = facts["device_kind"]
        self._peak_flops_per_s = jaxread.peak_flops_per_s(kind, facts["device_count"])
        self._device_ids = [d["id"] for d in facts["devices"]]
        self._states = []
        self.segment.open(len(self._device_ids), self.slice.find())
        self._utilization.stop()
        period_s = self._samples.asked_s
        self._utilization = begin(self._device_ids, facts["platform"], kind, period_s)
        if self._end.is_set():  # finish() may not have seen this one
            self._utilization.stop()
        self._samples = Pace(period_s, SAMPLE_SHARE)
        self._spent.clear()
        self.slice.begin(self.segment)

    def _tick(self) -> None:
        """Take the sample that is due. While the job has cleared its backend, there is none.

        A profile waits for the next sample, which has its sums: viewers show both side by side.
        """
        started = time.monotonic()
        if not self.segment.keep(started) or not self._samples.is_due(started):
            return
        cpu = time.thread_time()
        backend = jaxread.backend()
        if self._profiles.is_due(started):
            if backend is not None and self._profiling:
                self._profile(backend, started)
            spent_s = time.thread_time() - cpu
            self._profiles.spent(started, spent_s)
            cpu += spent_s
        if backend is not None:
            self._sample(backend, started)
        if self._samples.spent(started, time.thread_time() - cpu) and backend is not None:
            self.segment.append(self._values(started))

    def _profile(self, backend: Any, now_s: float) -> None:
        cpu = time.thread_time()
        try:
            profile = jaxread.memory_profile(backend)
            self._totals = memprofile.totals(profile)
        except (RuntimeError, ValueError, ProfileError) as error:  # not every plugin can
            self._stop_profiling(f"cannot be taken: {error}")
            return
        self._profile_at_s = now_s
        if not self.segment.write_profile(PROFILE_PPROF, profile, now_s):
            self.segment.write_profile(PROFILE_SITES, memprofile.packed_sites(profile), now_s)
        took_s = time.thread_time() - cpu
        if took_s > PROFILE_COST_MOST_S:
            self._stop_profiling(f"would pause the job for {took_s:.1f} s each time; disabled")

    def _stop_profiling(self, reason: str) -> None:
        self._profiling = False
        self.segment.warn("no_memory_profile", f"the memory profile {reason}")

    def _sample(self, backend: Any, now_s: float) -> None:
        self.compilations.listen()
        states = [*map(jaxread.device_state, backend.local_devices())]
        if [s.id for s in states] != self._device_ids or self.slice.has_moved():
            self._adopt_backend(backend)  # the job made another backend
        self._states = states
        cpu_s = time.thread_time() + self._utilization.cpu_s + self.slice.cpu_s
        self._spent.append((now_s, cpu_s))
        self.segment.append(self._values(now_s))
        errors, compiled = [s.error for s in states], self.compilations.recent(now_s)
        self.segment.note_changes(errors, compiled, self._notes())

    def _notes(self) -> dict[str, str]:
        """Sentences to publish as warnings, by code."""
        notes = {**self._steps.flops.notes, **self.compilations.notes, **self.slice.notes}
        if failure := self._utilization.failure:
            notes["no_utilization"] = f"libtpu's metrics of this job are no longer read: {failure}"
        return notes

    def _values(self, now_s: float, phase: str | None = None) -> list[float]:
        """The doubles of one slot, in the order of the layout."""
        busy = self._utilization.busy
        devices = []
        for i, device_id in enumerate(self._device_ids):
            memory = self._states[i].memory if i < len(self._states) else NO_MEMORY
            live: Values = (None, None)
            if self._profile_at_s is not None:
                live = live_values(self._totals, device_id, len(self._device_ids))
            devices.append(memory + live + busy.values(i))
        return doubles(now_s, self._process_fields(now_s, phase, busy), devices)

    def _process_fields(
        self, now_s: float, phase: str | None, busy: Busy
    ) -> dict[str, float | None]:
        times = self._steps.times(now_s)
        last = self._steps.last_at_s
        flops_per_s = self._steps.flops.per_s(now_s, None if times is None else times.since_s)
        if phase is None:
            allocations = sum(s.memory[-1] or 0 for s in self._states)
            phase = self._activity.phase(now_s, allocations, times)
        fields: dict[str, float | None] = {
            "phase": PHASES.index(phase),
            "interval_s": self._samples.period_s,
            "steps": self._steps.count if last is not None else None,
            "since_last_step_s": None if last is None else max(0.0, now_s - last),
            "compilations": self.compilations.total,
            "compile_s": self.compilations.total_s,
            "recent_compilations": self.compilations.recent_count(now_s),
            "executables": None if self._profile_at_s is None else self._totals.executables,
            "agent_cost_percent": self._cost_percent(),
            "agent_sample_s": self._samples.cost_s,
            "profile_at_s": self._profile_at_s,
            "profile_period_s": self._profiles.period_s,
            "profile_cost_s": self._profiles.cost_s,
            "flops_per_s": flops_per_s,
            "mfu_percent": mfu_percent(flops_per_s, self._peak_flops_per_s),
            "utilization_at_s": busy.at_s,
            "utilization_period_s": busy.period_s,
        }
        if times is not None:
            fields["steps_per_s"] = times.per_s
            fields.update((f"step_time_s.{k}", v) for k, v in times.period._asdict().items())
            body = {} if times.body is None else times.body._asdict()
            fields.update((f"step_body_s.{k}", v) for k, v in body.items())
        return fields

    def _cost_percent(self) -> float | None:
        """CPU time of this thread over wall time, in the last minute; None before two samples."""
        if len(self._spent) < 2:
            return None
        (first_at, first_cpu), (last_at, last_cpu) = self._spent[0], self._spent[-1]
        return 100.0 * (last_cpu - first_cpu) / (last_at - first_at)
