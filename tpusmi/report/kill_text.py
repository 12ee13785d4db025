"""A plan to end holders, and its report, as text and as plain objects: `tpusmi kill`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

from tpusmi.actions.end import Order
from tpusmi.actions.outcome import Newcomer, Report, Result
from tpusmi.actions.plan import Plan, Starter
from tpusmi.model import Process, Snapshot
from tpusmi.report import words
from tpusmi.report.ps_text import chips_or_nodes
from tpusmi.report.which_process import identity

COMMAND_MOST = 70


def plan_text(s: Snapshot, plan: Plan, order: Order) -> str:
    """Which processes would be ended and which left alone, with the reasons."""
    return "".join(f"{line}\n" for line in _plan(s, plan, order))


def _plan(s: Snapshot, plan: Plan, order: Order) -> Iterator[str]:
    for target in plan.targets:
        yield f"end {_named(s, target.process)}"
        yield f"    {target.why}"
        if target.starter is not None:
            yield f"    {may_come_back(target.starter)}"
    for left in (*plan.refused, *plan.spared):
        name = f"pid {left.pid}:" if left.process is None else f"{_named(s, left.process)}\n   "
        yield f"skip {name} {left.why}"
    if plan.targets:
        yield what_happens(order)
    if plan.also_held_by:
        pids = ", ".join(map(str, plan.also_held_by))
        yield f"The nodes will not be free: pid {pids} also holds them"
    for path in plan.lock_files:
        yield f"{path} is removed if no process then holds the TPU: it is in the way"
    if not (plan.targets or plan.refused or plan.spared or plan.lock_files):
        pids = ", ".join(str(p.pid) for p in s.processes if p.holds and not p.is_dead)
        held = f"; the TPU is held by pid {pids}" if pids else ""
        yield f"nothing to do: no holder matches{held}"
    yield from _unknown(plan)


def _unknown(plan: Plan) -> Iterator[str]:
    """What could not be seen or read."""
    if plan.unseen:
        yield f"not everything could be seen: {plan.unseen}"
    yield from (f"could not be read: {message}" for message in plan.unasked)


def may_come_back(starter: Starter) -> str:
    """That the process may be started again, and by what."""
    return f"may come back: started by {starter.words}"


def what_happens(order: Order) -> str:
    """How processes are ended, in a sentence."""
    name = signal.Signals(order.signal).name
    forced = f"; after {order.grace_s:.0f} s, SIGKILL to any still running"
    forced = "" if order.signal == signal.SIGKILL else forced
    return f"Sends {name}{forced}; then waits up to {order.free_within_s:.0f} s for the nodes"


def _named(s: Snapshot, p: Process) -> str:
    age = f", {words.duration(p.life.age_s)} old" if p.life is not None else ""
    held = f", {chips_or_nodes(s, p)}" if p.holds else ""
    state = standstill(p)
    state = f", {state}" if state and state not in (p.stale_reason or "") else ""
    command = words.shortened(words.command(p.command), COMMAND_MOST)
    return f"pid {p.pid} ({p.user or 'unknown user'}{age}{held}{state}): {command}"


def standstill(p: Process) -> str:
    """Why it does nothing, by its state letter; empty for a process that runs or waits."""
    states = {
        "T": "stopped (state T): SIGSTOP or Ctrl-Z",
        "t": "stopped (state t): by a debugger",
        "D": "in an uninterruptible sleep (state D)",
        "Z": "its main thread has ended (state Z)",
    }
    return states.get(p.life.state, "") if p.life is not None else ""


def report_text(report: Report) -> str:
    """What became of each process, of the nodes and of the lock file."""
    lines = [f"pid {r.process.pid}: {_became(r)}" for r in report.results]
    lines += [_came_back(newcomer) for newcomer in report.came_back]
    new = {newcomer.pid for newcomer in report.came_back}
    for node, pids in report.still_held.items():
        old = [str(pid) for pid in pids if pid not in new]
        if old:
            lines.append(f"{node} is still held by pid {', '.join(old)}")
        elif not pids:
            lines.append(f"cannot tell whether {node} is free")
    lines += [f"{file.path}: {file.message}" for file in report.lock_files]
    lines += [f"not everything could be seen: {report.unseen}"] if report.unseen else []
    lines += list(report.notes)
    return "".join(f"{line}\n" for line in lines)


def _became(result: Result) -> str:
    """`ended by SIGTERM (0.1 s); zombie until its parent, pid 1, collects it`."""
    end, semicolon, rest = result.message.partition(";")
    return f"{end} ({result.took_s:.1f} s){semicolon}{rest}"


def _came_back(n: Newcomer) -> str:
    """`pid 12 is new: it took /dev/accel0 0.3 s after pid 11 ended, started by …: python x.py`."""
    after = "meanwhile"
    if n.replaces is not None and n.after_s is not None:
        after = f"{n.after_s:.1f} s after pid {n.replaces} ended"
    by = "" if n.starter is None else f", started by {n.starter.words}"
    whose = f"pid {n.pid} ({n.user or 'unknown user'}) is new"
    return f"{whose}: it took {words.nodes(n.nodes)} {after}{by}"


def report_dict(plan: Plan, report: Report | None) -> dict[str, Any]:
    """The object of `tpusmi kill --json`; a dry run has no results."""
    from tpusmi.model.jsonkeys import SCHEMA

    done = Report((), {}, (), (), unseen=plan.unseen) if report is None else report
    return {
        "schema": SCHEMA,
        "plan": {
            "end": [
                {**_identity(t.process), "why": t.why, "starter": _starter(t.starter)}
                for t in plan.targets
            ],
            "leave": [
                {**(_identity(r.process) if r.process else {"pid": r.pid}), "why": r.why}
                for r in (*plan.refused, *plan.spared)
            ],
            "nodes": list(plan.nodes),
            "also_held_by": list(plan.also_held_by),
            "lock_files": list(plan.lock_files),
            "not_asked": list(plan.unasked),
        },
        "done": report is not None,
        "unseen": done.unseen,
        "free": done.is_free,
        "results": [_result(r) for r in done.results],
        "still_held": {node: list(pids) for node, pids in done.still_held.items()},
        "came_back": [_newcomer(n) for n in done.came_back],
        "lock_files": [f._asdict() for f in done.lock_files],
        "notes": list(done.notes),
    }


def _result(r: Result) -> dict[str, Any]:
    took = {"outcome": r.outcome.value, "message": r.message, "took_s": round(r.took_s, 3)}
    return {**_identity(r.process), **took}


def _newcomer(n: Newcomer) -> dict[str, Any]:
    after_s = None if n.after_s is None else round(n.after_s, 3)
    return {**n._asdict(), "after_s": after_s, "starter": _starter(n.starter)}


def _starter(starter: Starter | None) -> dict[str, str] | None:
    return None if starter is None else starter._asdict()


def _identity(p: Process) -> dict[str, Any]:
    return {
        **identity(p),
        "holds": list(p.holds),
        "stale": p.stale,
        "verdict": None if p.verdict is None else p.verdict.value,
        "stale_code": p.stale_code,
        "stale_reason": p.stale_reason,
    }
