"""What the simulated job does: a pure function of seed, device and time since its start.

It loads, compiles, then trains for ever: steps, an input stall now and then, an evaluation, a
checkpoint. Every number comes from the same schedule, so that they agree with each other. Standard
library only, and little of it: the stand-in for libtpu's SDK must start faster than it is asked.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

LOAD_S = 4.0
"""No program is loaded: libtpu answers with nothing."""
COMPILE_S = 14.0
"""Weights fill the memory, nothing runs."""

TRAIN, STALL, EVALUATE, SAVE = "training", "input stall", "evaluation", "checkpoint"
LOADING, COMPILING = "loading", "compiling"
IDLE, HUNG = "idle", "hung"
"""Only by fault: nothing runs, or one program never ends."""

CYCLE = (
    (TRAIN, 52.0), (STALL, 7.0), (TRAIN, 34.0), (EVALUATE, 9.0), (TRAIN, 58.0), (SAVE, 8.0),
    (TRAIN, 47.0), (STALL, 5.0), (TRAIN, 20.0),
)  # fmt: skip
CYCLE_S = sum(seconds for _, seconds in CYCLE)

BUSY = {TRAIN: 0.985, STALL: 0.27, EVALUATE: 0.9, SAVE: 0.03, HUNG: 1.0}
"""Share of the time that a program runs; nothing does in the other phases."""
MXU = {TRAIN: 0.53, STALL: 0.15, EVALUATE: 0.41, SAVE: 0.01}
BANDWIDTH = {TRAIN: 0.61, STALL: 0.17, EVALUATE: 0.55, SAVE: 0.08}
MODEL_SHARE = 0.93
"""Share of the MXUs' work that is the model's: the rest recomputes, to save memory."""
STEPS_PER_S = {TRAIN: 1.25, STALL: 0.34, EVALUATE: 2.2, SAVE: 0.0}
GAPS_S = {STALL: 0.9, SAVE: 3.0}
"""The longest time without a program; in other phases next to none."""
QUEUE = {TRAIN: 3, STALL: 1, EVALUATE: 2, HUNG: 4}
PROGRAMS = {
    TRAIN: "main.579", STALL: "main.579", HUNG: "main.579", EVALUATE: "main.1204", SAVE: "main.37",
}  # fmt: skip

WINDOW_S = 4.0
"""Over which the duty cycle is a mean."""
WINDOW_SAMPLES = 8
WEIGHTS, ACTIVATIONS, EVALUATION, FIRST_DEVICE = 0.52, 0.24, 0.09, 0.06
"""Shares of the memory; the first device of a slice keeps the results for all of them."""
LEAK_PER_S, LEAK_MOST = 0.0002, 0.13
"""Share of the memory that a leak takes each second, and in the end: a job of this one survives."""
LEAK_STEP_S = 4.0
PULSE_S = 7.0
"""How fast the noise moves."""
PAST_MOST = 16
"""Earlier workloads that one remembers, each with other faults."""


class Workload:
    """One job. Times are seconds since its start; shares are 0 to 1.

    `forced` is what it does for ever since a moment, whatever the schedule says; it leaks memory
    since `leaking_s`. It works at `speed`, 1 being that of healthy hardware. `since` is when it
    began to be so, and what it was before: a workload that has done steps of its own.
    """

    program_s = 0.76
    """How long the program of a step runs on healthy hardware: the median."""

    def __init__(
        self,
        seed: int = 0,
        forced: tuple[str, float] | None = None,
        leaking_s: float | None = None,
        speed: float = 1.0,
        since: tuple[float, Workload] | None = None,
    ) -> None:
        self.seed = seed
        self.forced = forced
        self.leaking_s = leaking_s
        self._speed = speed
        self._before: Workload | None = None
        self._since_s = 0.0
        if since is not None:
            self._since_s, self._before = since
        self._done = 0.0
        """Steps until `since_s`, where what it was before is forgotten."""
        self._turned_s = seed * 37.0 % CYCLE_S
        """Other seeds are at other places of the schedule."""
        self._forget()

    def _forget(self) -> None:
        """Drop what it was before the last few changes; the steps of that time still count."""
        oldest = self
        for _ in range(PAST_MOST):
            if oldest._before is None:
                return
            oldest = oldest._before
        oldest._done = oldest.steps_and_part(oldest._since_s)
        oldest._before = None

    def _at(self, t_s: float) -> Workload:
        """The workload that was in force then."""
        workload = self
        while workload._before is not None and t_s < workload._since_s:
            workload = workload._before
        return workload

    def changes(self) -> list[float]:
        """When it became what it is now, and what it was before; as far as it remembers."""
        before = self._before
        return [] if before is None else [*before.changes(), self._since_s]

    def follow(self, faults: Collection[str], speed: float) -> None:
        """Look what the real program does, which a workload of its own has not."""

    def activity(self, t_s: float) -> str:
        """What the job is doing."""
        return self.moment(t_s)[0]

    def speed(self, t_s: float) -> float:
        """How fast the job works: less than 1 where a chip or a link slows all of it down."""
        return self._at(t_s)._speed

    def moment(self, t_s: float) -> tuple[str, float, float]:
        """What the job is doing, since how long, and how long it will go on."""
        forced = self._at(t_s).forced
        if forced and t_s >= forced[1]:
            return forced[0], t_s - forced[1], math.inf
        if t_s < LOAD_S:
            return LOADING, t_s, LOAD_S - t_s
        if t_s < LOAD_S + COMPILE_S:
            return COMPILING, t_s - LOAD_S, LOAD_S + COMPILE_S - t_s
        into_s = (t_s - LOAD_S - COMPILE_S + self._turned_s) % CYCLE_S
        for activity, seconds in CYCLE:
            if into_s < seconds:
                return activity, into_s, seconds - into_s
            into_s -= seconds
        return TRAIN, 0.0, 1.0  # the sum of floats fell short

    def duty(self, t_s: float, device: int) -> float:
        """Share of the last seconds in which a program ran."""
        total = 0.0
        for i in range(WINDOW_SAMPLES):
            at_s = t_s - WINDOW_S * i / WINDOW_SAMPLES
            total += BUSY.get(self.activity(at_s), 0.0) if at_s > 0 else 0.0
        return self._shaken(total / WINDOW_SAMPLES, 0.012, "duty", device, t_s)

    def mxu(self, t_s: float, device: int) -> float:
        """Share of the peak matrix throughput."""
        return self._shaken(self.mxu_mean(t_s), 0.09, "mxu", device, t_s)

    def mxu_mean(self, t_s: float) -> float:
        """The same over all devices, without noise."""
        return MXU.get(self.activity(t_s), 0.0) * self.speed(t_s)

    def bandwidth(self, t_s: float, device: int) -> float:
        """Share of the peak memory bandwidth."""
        share = BANDWIDTH.get(self.activity(t_s), 0.0) * self.speed(t_s)
        return self._shaken(share, 0.07, "bw", device, t_s)

    def idle_s(self, t_s: float, device: int) -> float:
        """Since when no program has run."""
        activity, since_s, _ = self.moment(t_s)
        if activity in (COMPILING, LOADING, IDLE):
            return since_s
        if activity == HUNG:
            return 0.0
        gap_s = GAPS_S.get(activity, 0.02)
        return min(since_s, gap_s * self._wave("idle", device, t_s))

    def queue(self, t_s: float, device: int) -> int:
        """Programs enqueued."""
        most = QUEUE.get(self.activity(t_s), 0)
        if self.activity(t_s) == HUNG:
            return most
        return round(most * (0.4 + 0.6 * self._wave("queue", device, t_s)))

    def memory(self, t_s: float, device: int) -> float:
        """Share of the memory in use."""
        return sum(self.memory_parts(t_s, device).values())

    def memory_parts(self, t_s: float, device: int) -> dict[str, float]:
        """Shares of the memory in use, by what for."""
        activity, since_s, left_s = self.moment(t_s)
        if activity == LOADING:
            return {}
        kept = {
            "weights": WEIGHTS + 0.004 * self._wave("weights", device, 0.0),
            "results": FIRST_DEVICE if device == 0 else 0.0,
        }
        if activity == COMPILING:
            loaded = math.floor(8 * since_s / (since_s + left_s)) / 8
            return {what: share * loaded for what, share in kept.items()}
        kept["leaked"] = self._leaked(t_s)
        if activity == EVALUATE:
            return {**kept, "evaluation": EVALUATION}
        if activity == SAVE:
            return {**kept, "saving": 0.02}
        if left_s == math.inf:
            since_s, left_s = 1.0, 1.0
        growing = 0.5 + 0.5 * since_s / (since_s + left_s)  # fragments, until the next pause
        step = 0.8 + 0.2 * self._wave("activations", device, t_s)
        return {**kept, "activations": ACTIVATIONS * growing * step}

    def _leaked(self, t_s: float) -> float:
        """Share of the memory that is leaked: a little more with every few steps."""
        leaking_s = self._at(t_s).leaking_s
        if leaking_s is None or t_s < leaking_s:
            return 0.0
        lost_s = math.floor((t_s - leaking_s) / LEAK_STEP_S) * LEAK_STEP_S
        return min(LEAK_MOST, LEAK_PER_S * lost_s)

    def steps(self, t_s: float) -> int:
        """Programs run since the start."""
        return int(self.steps_and_part(t_s))

    def steps_and_part(self, t_s: float) -> float:
        """The same, with the part of the step that is under way."""
        return sum(steps for _, steps in self.paces(t_s))

    def paces(self, t_s: float) -> list[tuple[float, float]]:
        """How fast the job has worked so far: each speed with the steps that it did."""
        workload = self._at(t_s)
        before, since_s = workload._before, workload._since_s
        past = [(1.0, workload._done)] if before is None else before.paces(since_s)
        more = workload._scheduled(max(t_s, since_s)) - workload._scheduled(since_s)
        return [*past, (workload._speed, workload._speed * more)]

    def steps_per_s(self, t_s: float) -> float:
        """How many a second there are at that moment."""
        return STEPS_PER_S.get(self.activity(t_s), 0.0) * self.speed(t_s)

    def since_step_s(self, t_s: float) -> float:
        """How long ago the last step ended."""
        per_s, part = self.steps_per_s(t_s), self.steps_and_part(t_s) % 1
        return self.moment(t_s)[1] if per_s == 0 else min(part / per_s, t_s)

    def _scheduled(self, t_s: float) -> float:
        """Steps until then at full speed, had the job always been this one."""
        if self.forced and t_s > self.forced[1]:
            more = STEPS_PER_S.get(self.forced[0], 0.0) * (t_s - self.forced[1])
            return Workload(self.seed)._scheduled(self.forced[1]) + more
        trained_s = t_s - LOAD_S - COMPILE_S
        if trained_s <= 0:
            return 0.0
        turned_s = trained_s + self._turned_s
        return max(1.0, _steps_until(turned_s) - _steps_until(self._turned_s))

    def program(self, t_s: float) -> str | None:
        """Name of the running program; None when there is none."""
        return PROGRAMS.get(self.activity(t_s))

    def instruction(self, t_s: float, device: int) -> int:
        """Number of the operation that is running."""
        return int(1 + 899 * chance(self.seed, device, int(t_s * 20)))

    def _shaken(self, share: float, by: float, what: str, device: int, t_s: float) -> float:
        """That share with noise; 0 stays 0."""
        noise = 2.0 * self._wave(what, device, t_s) - 1.0
        return min(1.0, max(0.0, share * (1.0 + by * noise)))

    def _wave(self, what: str, device: int, t_s: float) -> float:
        """Smooth noise, 0 to 1, of its own for each quantity and device."""
        kind = sum(map(ord, what))
        beat = math.floor(t_s / PULSE_S)
        part = t_s / PULSE_S - beat
        before = chance(self.seed + kind, device, beat)
        after = chance(self.seed + kind, device, beat + 1)
        return before + (after - before) * part * part * (3 - 2 * part)


def _steps_until(turned_s: float) -> float:
    cycles, into_s = divmod(turned_s, CYCLE_S)
    steps = cycles * sum(STEPS_PER_S[activity] * seconds for activity, seconds in CYCLE)
    for activity, seconds in CYCLE:
        part_s = min(seconds, into_s)
        steps += STEPS_PER_S[activity] * part_s
        into_s -= part_s
    return steps


def chance(seed: int, device: int, beat: int) -> float:
    """A number from 0 to 1 that looks like chance and is always the same."""
    # The finalizer of SplitMix64: good enough noise, and no import.
    x = (seed * 0x9E3779B97F4A7C15 + device * 0xBF58476D1CE4E5B9 + beat * 0x94D049BB133111EB) % _64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % _64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % _64
    return (x ^ (x >> 31)) / _64


_64 = 1 << 64
