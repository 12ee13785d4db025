"""Jobs with a past to look at: phases that change, compilations, steps that get slower."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.feeds import FACTS, START_S, Job, ScriptedFeed
from tpusmi.model import PHASE, PHASES, Life, Notice, Number, Reading, Subject, Value

PID, OTHER = 41234, 52870
COMMAND = "python -m train.main --config=configs/gemma_2b.py --batch=256"
STORY = (
    (-560, "starting"),
    (-530, "compiling"),
    (-485, "running"),
    (-240, "idle"),
    (-210, "compiling"),
    (-200, "running"),
)
"""What the job began to do so many seconds before the first snapshot."""
LIFE = Life(
    *("S", 812, 41234, 812, 560.0, 212),
    ancestors=((812, "bash -l"), (640, "/usr/bin/tmux new -s train")),
    terminal="pts/3",
    cpu_percent=188.0,
    rss_bytes=29 << 30,
    cwd="/home/ada/gemma",
)


def phase_at(at_s: float) -> str | None:
    """Of the story."""
    begun = [phase for since_s, phase in STORY if START_S + since_s <= at_s]
    return begun[-1] if begun else None


class StoryJob(Job):
    """A job that has lived through the story. `changes` are values that are other than usual,
    None where nobody measures one; `recompiles` it has since two minutes ago.
    """

    def __init__(
        self,
        pid: int = PID,
        *,
        changes: dict[str, Number | None] | None = None,
        recompiles: bool = False,
        **fields: Any,
    ) -> None:
        usual: dict[str, Any] = {"life": LIFE, "holds": ("/dev/vfio/0", "/dev/vfio/1")}
        usual["environment"] = {"JAX_PLATFORMS": "tpu", "LIBTPU_INIT_ARGS": "--xla_tpu_x=1"}
        facts = {**FACTS, "recompiled": "train_step" if recompiles else None}
        options = {"first": 0, "count": 4, "fill": 0.72, "on_chips": True, "facts": facts}
        super().__init__(pid, **{"command": COMMAND, **options, **usual, **fields})
        self._changes, self._recompiles = changes or {}, recompiles

    def measured(self, at_s: float) -> Iterator[tuple[Subject, str, Number]]:
        """As usual, but for what is other than usual; no steps unless it runs."""
        phase = phase_at(at_s)
        if phase is None:
            return
        for subject, name, value in super().measured(at_s):
            if name in self._changes:
                changed = self._changes[name]
                if changed is not None:
                    yield subject, name, changed
            elif name == "compilations":
                yield subject, name, self._compilations(at_s)
            elif name == "recent_compilations" and self._recompiles:
                yield subject, name, 12
            elif not name.startswith("step") or phase == "running":
                yield subject, name, value

    def phase_at(self, at_s: float) -> str | None:
        """What it was doing; nothing that anybody knows where it has no agent."""
        return phase_at(at_s) if self.fields.get("interval_s", 1.0) is not None else None

    def _compilations(self, at_s: float) -> int:
        ago_s = at_s - START_S
        first = min(12, max(0, int(ago_s + 530) // 4))
        again = max(0, int(ago_s + 120) // 5) if self._recompiles else 0
        return first + (2 if ago_s >= -205 else 0) + again


class StoryFeed(ScriptedFeed):
    """Remembers the phases of its jobs, too."""

    def _remember(self, at_s: float) -> None:
        super()._remember(at_s)
        phases = [(j.key, j.phase_at(at_s)) for j in self.jobs if isinstance(j, StoryJob)]
        self.history.add(
            [
                Reading(PHASE, key, PHASES.index(phase), at_s, "agent", 5.0)
                for key, phase in phases
                if phase is not None
            ]
        )


def story(*others: Job, feed: dict[str, Any] | None = None, **fields: Any) -> StoryFeed:
    """One job with a story, and others beside it."""
    return StoryFeed((StoryJob(**fields), *others), past_s=590, **(feed or {}))


def recompiling() -> StoryFeed:
    """A job that compiles at every fifth second, and says which function."""
    text = "12 compilations in the last minute (train_step): shapes … make XLA compile again"
    return story(
        recompiles=True, feed={"changes": {"warnings": (Notice("recompiling", text, PID),)}}
    )


class Bare(StoryJob):
    """A process without an agent: of itself it tells nothing, and its devices do."""

    def __init__(self, pid: int = PID, **fields: Any) -> None:
        nothing = {"interval_s": None, "sampled_at_s": None, "phase": None, "profile": None}
        super().__init__(pid, **{**nothing, "facts": {}, **fields})

    def measured(self, at_s: float) -> Iterator[tuple[Subject, str, Number]]:
        """What libtpu says of its devices."""
        return (row for row in super().measured(at_s) if row[0] != self.key)


def on_cpu() -> StoryFeed:
    """A job on the devices of a CPU, whose peak nobody knows."""
    facts = {**FACTS, "platform": "cpu", "device_kind": "cpu", "libtpu_version": None}
    nothing = ("mfu_percent", "hbm_used_bytes", "hbm_limit_bytes", "hbm_peak_bytes")
    unknown = (*nothing, "duty_cycle_percent", "tensorcore_utilization_percent")
    bandwidth = ("hbm_bandwidth_utilization_percent", "idle_s", "hlo_queue_size")
    return story(
        facts=facts,
        holds=(),
        environment={"JAX_PLATFORMS": "cpu"},
        changes={**dict.fromkeys((*unknown, *bandwidth)), "flops_per_s": 3.1e10},
    )


def old_jobs() -> ScriptedFeed:
    """A job whose agent fell silent, and one that ended three minutes ago."""
    silent = Job(41234, "python train.py", 0, 4, state="silent", sampled_at_s=99_930.0)
    dead = Job(
        39001, "python old.py", 0, 4, state="dead", phase="ended", sampled_at_s=99_820.0, user="bob"
    )
    feed = ScriptedFeed((silent, dead), past_s=400)
    now = feed.snapshot()
    old = {key: Value(v.value, v.source, 70.0, True) for key, v in now.values.items()}
    message = "the job lives, but its agent has stopped writing"
    feed.change(
        devices=silent.devices(),
        dead_devices=dead.devices(),
        values=old,
        warnings=(Notice("silent_agent", message, 41234),),
    )
    return feed
