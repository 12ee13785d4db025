"""Which holders will not do work again, and why: the kernel's signs against signs of work. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.merge.owned import fresh, fresh_mean, least
from tpusmi.model import (
    ENDING_CODES,
    OK,
    Device,
    History,
    Process,
    Sign,
    Snapshot,
    Verdict,
)
from tpusmi.model.history import WATCHED

IDLE_S = 30 * 60.0
STUCK_S = 10 * 60.0
WORKING_PERCENT = 0.05
WORKED_LATELY_S = 60.0
WORKING_CPU_PERCENT = 20.0
_WORKING_PHASES = ("compiling", "running")
_BUSY = (
    "duty_cycle_percent",
    "tensorcore_utilization_percent",
    "hbm_bandwidth_utilization_percent",
)


class Limits(NamedTuple):
    """For how long a holder may do nothing."""

    idle_s: float = IDLE_S
    stuck_s: float = STUCK_S


USUAL = Limits()


def judged(s: Snapshot, limits: Limits = USUAL, history: History | None = None) -> Snapshot:
    """The snapshot with a verdict on every holder: stale or not, and why."""
    return s._replace(
        processes=tuple(_verdict(s, p, limits, history) if p.holds else p for p in s.processes)
    )


def _verdict(s: Snapshot, p: Process, limits: Limits, history: History | None) -> Process:
    if p.state == "dead" or p.life is None:
        return p
    if p.life.platform:
        return _sound(p, "an agent of the platform")
    devices = [d for d in s.devices if p.key in d.owners]
    sign = next((sign for sign in p.life.signs if sign.code in ENDING_CODES), None)
    if sign is not None:
        return _stale(p, sign)
    works = _why_working(s, p, devices, min(WORKED_LATELY_S, limits.idle_s))
    signs = p.life.signs
    if works:
        return _sound(p, f"{signs[0].message}, but {works}" if signs else None)
    sign = next(iter((*signs, *_of_use(s, p, devices, limits, history))), None)
    return _stale(p, sign) if sign is not None else _sound(p, None)


def _stale(p: Process, sign: Sign) -> Process:
    return p._replace(verdict=Verdict.STALE, stale_code=sign.code, stale_reason=sign.message)


def _sound(p: Process, reason: str | None) -> Process:
    return p._replace(verdict=Verdict.NOT_STALE, stale_code=None, stale_reason=reason)


def _why_working(s: Snapshot, p: Process, devices: Sequence[Device], lately_s: float) -> str:
    """What shows that it works, in words; empty when nothing does."""
    if p.state == "live" and p.phase in _WORKING_PHASES and p.interval_s is not None:
        return f"its agent says that it is {p.phase}"
    idle_s = least(s, "idle_s", devices)
    if idle_s is not None:  # says it exactly; a duty cycle is of the last minute
        return f"one of its devices ran a program {idle_s:.0f} s ago" if idle_s < lately_s else ""
    for d in devices:
        for name in _BUSY:
            found = fresh(s, name, d)
            if found is not None and found.value > WORKING_PERCENT:
                return f"{d.name} is busy"
    return "" if _is_known_to_rest(s, devices) else _works_on_the_host(p)


def _is_known_to_rest(s: Snapshot, devices: Sequence[Device]) -> bool:
    """True when somebody measures its devices. What their process does on the host counts no more
    then: some spin while they wait.
    """
    return any(fresh(s, name, d) is not None for name in _BUSY for d in devices)


def _works_on_the_host(p: Process) -> str:
    used = None if p.life is None else p.life.recent_cpu_percent
    return "" if used is None or used < WORKING_CPU_PERCENT else f"it uses {used:.0f} % of a core"


def _of_use(
    s: Snapshot, p: Process, devices: Sequence[Device], limits: Limits, history: History | None
) -> list[Sign]:
    """That it has done nothing for too long, if that is known."""
    stuck_s = _stuck_s(s, p, devices)
    if stuck_s is not None and stuck_s >= limits.stuck_s:
        message = (
            f"no program and no HBM in use for {_minutes(stuck_s)}: it is stuck while it starts, "
            "or needs no TPU (JAX_PLATFORMS=cpu)"
        )
        return [Sign("stuck", message)]
    idle_s = _idle_s(s, p, devices, history)
    if idle_s is not None and idle_s >= limits.idle_s:
        return [Sign("idle", f"has run nothing on any of its devices for {_minutes(idle_s)}")]
    return []


def _stuck_s(s: Snapshot, p: Process, devices: Sequence[Device]) -> float | None:
    """For how long at least it has held its nodes without loading a program; None when it may have
    loaded one, or cannot be asked.

    A runtime that starts begins threads: since the newest one began, none has started.
    """
    servers = [server for server in s.servers if server.process == p.key]
    answers = [server for server in servers if server.status == OK]
    starting = p.state == "live" and p.phase == "starting"
    if not (answers or starting) or any(server.ids for server in servers) or p.life is None:
        return None
    if any(fresh(s, "hbm_used_bytes", d) for d in devices):
        return None
    return p.life.newest_thread_s


def _idle_s(
    s: Snapshot, p: Process, devices: Sequence[Device], history: History | None
) -> float | None:
    """For how long all its devices have run nothing; None when that is not known of every one."""
    told = least(s, "idle_s", devices)
    if told is not None:
        return told
    stepped = s.values.get((p.key, "since_last_step_s"))
    if p.phase == "idle" and p.state == "live" and stepped is not None and not stepped.stale:
        return stepped.value
    if history is None or fresh_mean(s, "duty_cycle_percent", devices) is None:
        return None
    quiet = [_quiet_since_s(s, d, history) for d in devices]
    known = [since_s for since_s in quiet if since_s is not None]
    return s.at_s - max(known) if known and len(known) == len(quiet) else None


def _quiet_since_s(s: Snapshot, d: Device, history: History) -> float | None:
    """Since when a device's duty cycle, or its chip's, is known to have been nothing."""
    chips = (c for c in s.chips if c.index == d.chip)
    subjects = [*d.filed(WATCHED), *(key for c in chips for key in c.filed(WATCHED))]
    known = (history.nothing_since_s(subject) for subject in subjects)
    return next((since_s for since_s in known if since_s is not None), None)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
