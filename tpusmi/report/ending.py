"""A plan to end holders, and what became of them, as text and as plain objects."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

from tpusmi.actions.end import Order, Report, Result
from tpusmi.actions.plan import Plan
from tpusmi.model import SCHEMA, Process, Snapshot
from tpusmi.report import words
from tpusmi.report.holding import chips

COMMAND_MOST = 70


def plan_text(s: Snapshot, plan: Plan, order: Order) -> str:
    """What would be done and why, what not and why."""
    return "".join(f"{line}\n" for line in _plan(s, plan, order))


def _plan(s: Snapshot, plan: Plan, order: Order) -> Iterator[str]:
    for target in plan.targets:
        yield f"end {_named(s, target.process)}"
        yield f"    {target.why}"
    for refused in plan.refused:
        name = f"pid {refused.pid}" if refused.process is None else _named(s, refused.process)
        yield f"leave {name}"
        yield f"    {refused.why}"
    if plan.targets:
        yield what_happens(order)
    if plan.also_held_by:
        pids = ", ".join(map(str, plan.also_held_by))
        yield f"The nodes will not be free: pid {pids} holds them, too"
    for path in plan.lock_files:
        yield f"{path} is removed, if nobody holds the TPU by then: it is in the way"
    if not (plan.targets or plan.refused or plan.lock_files):
        yield "nothing to end: no holder that is meant"


def what_happens(order: Order) -> str:
    """How they are ended, in a sentence."""
    name = signal.Signals(order.signal).name
    forced = f", SIGKILL after {order.grace_s:.0f} s to whoever is left"
    forced = "" if order.signal == signal.SIGKILL else forced
    return f"{name}{forced}, then up to {order.free_within_s:.0f} s until the nodes are free"


def _named(s: Snapshot, p: Process) -> str:
    age = f", {words.duration(p.life.age_s)} old" if p.life is not None else ""
    held = f", chips {chips(s, p)}" if p.holds else ""
    command = words.shortened(words.command(p.command), COMMAND_MOST)
    return f"pid {p.pid} ({p.user or 'unknown user'}{age}{held}): {command}"


def report_text(report: Report) -> str:
    """What became of each process, of the nodes and of the lock file."""
    lines = [f"pid {r.process.pid}: {r.message} ({r.took_s:.1f} s)" for r in report.results]
    lines += [
        f"{node} is still held by pid {', '.join(map(str, pids))}"
        if pids
        else f"nobody can see whether {node} is free"
        for node, pids in report.still_held.items()
    ]
    lines += [f"{file.path}: {file.message}" for file in report.lock_files]
    lines += [f"whether the nodes are free: {report.unseen}"] if report.unseen else []
    lines += list(report.notes)
    return "".join(f"{line}\n" for line in lines)


def report_dict(plan: Plan, report: Report | None) -> dict[str, Any]:
    """The object of `tpusmi kill --json`; of a dry run without results."""
    return {
        "schema": SCHEMA,
        "plan": {
            "end": [{**_identity(t.process), "why": t.why} for t in plan.targets],
            "leave": [
                {**(_identity(r.process) if r.process else {"pid": r.pid}), "why": r.why}
                for r in plan.refused
            ],
            "nodes": list(plan.nodes),
            "also_held_by": list(plan.also_held_by),
            "lock_files": list(plan.lock_files),
        },
        "done": report is not None,
        "unseen": plan.unseen if report is None else report.unseen,
        "free": None if report is None else report.is_free,
        "results": [] if report is None else [_result(r) for r in report.results],
        "still_held": {} if report is None else {n: list(p) for n, p in report.still_held.items()},
        "lock_files": [] if report is None else [f._asdict() for f in report.lock_files],
        "notes": [] if report is None else list(report.notes),
    }


def _result(r: Result) -> dict[str, Any]:
    took = {"outcome": r.outcome, "message": r.message, "took_s": round(r.took_s, 3)}
    return {**_identity(r.process), **took}


def _identity(p: Process) -> dict[str, Any]:
    return {
        "pid": p.pid,
        "start_ticks": p.key.start_ticks,
        "user": p.user,
        "command": p.command,
        "holds": list(p.holds),
        "stale": p.stale,
        "stale_code": p.stale_code,
        "stale_reason": p.stale_reason,
    }
