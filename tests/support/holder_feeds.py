"""Holders of a TPU as a script has them, and an end that goes as a test says."""

from __future__ import annotations

import queue
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from support.dashboards import dashboard
from support.feeds import UIDS, Job, ScriptedFeed
from tpusmi.actions.end import Order
from tpusmi.actions.outcome import Report, Result
from tpusmi.actions.plan import Me, Plan, Request, Starter, make_plan
from tpusmi.actions.targets import OnProgress
from tpusmi.model import (
    Chip,
    Host,
    Life,
    LockFile,
    Number,
    Process,
    ProcessKey,
    Snapshot,
    Subject,
    Verdict,
    Visibility,
)

STALE, HEALTHY, BESIDE, LOADED = 41234, 52870, 53911, 60017
ME = "ada"
SHELL = 812
SERVER_SHELL = 52801
WORKERS = (52900, 52901)
STEP_WITHIN_S = 20.0

ORPHANED = Life(
    *("S", 1, 41230, 41230, 10_820.0, 212),
    cpu_percent=0.2,
    rss_bytes=29 << 30,
    cwd="/home/ada/gemma",
)
SERVING = Life(
    *("S", 52801, 52801, 52801, 266_400.0, 96),
    container="3f6c1f0b9a52" + "0" * 52,
    inner_pid=17,
    ancestors=((52801, "bash -l"), (52644, "/usr/bin/tmux new -s serve")),
    terminal="pts/3",
    cpu_percent=98.0,
    rss_bytes=12 << 30,
    cwd="/srv/t5",
)
WHY_STALE = "its launcher, pid 41230, has ended, and its TensorCores have been idle for 3h00m"
WHY_NOT = "its TensorCores are busy"
LOCK = LockFile("/tmp/libtpu_lockfile", "blocking", "grace", (), "left by grace, in the way")


class _Bare(Job):
    """A process without an agent: nobody measures anything of it."""

    def measured(self, at_s: float) -> Iterator[tuple[Subject, str, Number]]:
        """Nothing."""
        return iter(())


def holders(*others: Job, **changes: Any) -> ScriptedFeed:
    """A stale holder of four chips that is mine, a healthy one of another user, and a monitor."""
    jobs = (
        _Bare(
            *(STALE, "python -m train.main --config=configs/gemma_2b.py --batch=256", 0, 4),
            **_without_agent(_nodes(0, 4)),
            verdict=Verdict.STALE,
            stale_code="orphaned",
            stale_reason=WHY_STALE,
            life=ORPHANED,
        ),
        Job(
            *(HEALTHY, "python serve.py --model=/models/t5-large --port=8000", 4, 4),
            user="grace",
            fill=0.41,
            holds=_nodes(4, 8),
            verdict=Verdict.NOT_STALE,
            stale_reason=WHY_NOT,
            life=SERVING,
        ),
        _Bare(
            *(LOADED, "tpu-info --streaming --rate 1", 0, 0),
            **_without_agent(()),
            loaded_only=True,
        ),
        *others,
    )
    chips = tuple(
        Chip(n, "v5e", "TPU v5 lite", (f"0000:00:0{n}.0",), _nodes(n, n + 1), 1) for n in range(8)
    )
    visibility = Visibility(nodes=_nodes(0, 8))
    return ScriptedFeed(jobs, changes={"chips": chips, "visibility": visibility, **changes})


def beside() -> Job:
    """A helper of the healthy one, which has its nodes open, too."""
    return _Bare(
        *(BESIDE, "python -c from multiprocessing.forkserver import main", 4, 0),
        user="grace",
        **_without_agent(_nodes(4, 8)),
    )


class ScriptedEnder:
    """Plans as the real one does. An end goes step by step as it is told; any other fails."""

    def __init__(self, *started_us: int) -> None:
        self.orders: list[tuple[tuple[int, ...], Order]] = []
        """Pids and order of each end that was begun."""
        self._me = Me(1000, frozenset(started_us), frozenset({UIDS[ME]}))
        self.starter: Starter | None = None
        """What may start again what is ended."""
        self._steps: dict[int, queue.Queue[str | Report | Exception]] = {}
        self._snapshot: Snapshot | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Options of a dashboard that ends processes by this script."""
        return {"host": Host(), "planner": self.plan, "carry_out": self.carry_out}

    def plan(self, host: Host, snapshot: Snapshot, request: Request) -> Plan:
        """The plan for that request."""
        self._snapshot = snapshot
        plan = make_plan(snapshot, request, self._me)
        targets = (t._replace(starter=self.starter) for t in plan.targets)
        return plan._replace(targets=tuple(targets))

    def expect(self, pid: int) -> None:
        """Allow the end of that process, and of those that are ended with it and come after it."""
        self._steps[pid] = queue.Queue()

    def step(self, pid: int, what: str | Report | Exception) -> None:
        """Let its end say this, or be over with it."""
        self._steps[pid].put(what)

    def carry_out(
        self,
        host: Host,
        chips: Iterable[Chip],
        plan: Plan,
        order: Order,
        on_progress: OnProgress,
    ) -> Report:
        """What the test says."""
        keys = [target.process.key for target in plan.targets]
        steps = self._steps[keys[0].pid]
        assert self._snapshot is not None
        assert chips == self._snapshot.chips
        assert all(t.process in self._snapshot.processes for t in plan.targets)
        self.orders.append((tuple(key.pid for key in keys), order))
        while True:
            what = steps.get(timeout=STEP_WITHIN_S)
            if isinstance(what, str):
                on_progress(dict.fromkeys(keys, what))
            elif isinstance(what, Exception):
                raise what
            else:
                return what


def report(
    pid: int, outcome: str, message: str, held: Mapping[str, Sequence[int]] | None = None
) -> Report:
    """What became of one process."""
    process = Process(ProcessKey(pid, pid * 100), None, "", "live", None, None, None, {})
    still = {node: tuple(pids) for node, pids in (held or {}).items()}
    return Report((Result(process, outcome, message, 1.23),), still, (), ())


def _without_agent(holds: tuple[str, ...]) -> dict[str, Any]:
    none = {"phase": None, "sampled_at_s": None, "interval_s": None, "facts": {}, "profile": None}
    return {**none, "holds": holds}


def _nodes(first: int, end: int) -> tuple[str, ...]:
    return tuple(f"/dev/vfio/{n}" for n in range(first, end))


@asynccontextmanager
async def armed(
    feed: ScriptedFeed,
    ender: ScriptedEnder,
    size: tuple[int, int] = (100, 35),
    **options: object,
) -> AsyncIterator[Pilot[None]]:
    """A dashboard that may end processes."""
    async with dashboard(feed, size, **ender.options, user=ME, **options) as pilot:
        yield pilot


def family() -> ScriptedFeed:
    """A healthy holder that a shell has started, two workers of it, and a stale holder."""
    line = ((HEALTHY, "python serve.py"), *SERVING.ancestors)
    workers = tuple(
        Job(
            *(pid, f"python -m worker --rank={rank}", 4 + rank, 0),
            user="grace",
            holds=(f"/dev/vfio/{4 + rank}",),
            verdict=Verdict.NOT_STALE,
            life=SERVING._replace(
                parent=HEALTHY,
                ancestors=line,
                age_s=9_000.0 - 3_000 * rank,
                cpu_percent=(7.0, 31.0)[rank],
                rss_bytes=(3 << 30, 1 << 30)[rank],
            ),
        )
        for rank, pid in enumerate(WORKERS)
    )
    return holders(*workers)
