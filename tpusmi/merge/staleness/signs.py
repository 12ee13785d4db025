"""Signs that a holder is stale: from the kernel, and from how it uses the TPU. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.merge.staleness.work import BUSY, WORKING_CPU_PERCENT, Case, idle_s
from tpusmi.merge.witnesses import stopped
from tpusmi.model import FAILED, Phase, Sign, State
from tpusmi.model.several import fresh
from tpusmi.text import elapsed

QUIET_CPU_PERCENT = 5.0
"""Share of one core since its start: a program that ran for long has used more."""
NEVER_ENOUGH = ("quiet", "stopped")
"""Codes of signs that make a holder a suspect, whatever else is known."""
WITHOUT_WEIGHT = ("server_silent", "agent_silent")
"""Codes of signs that are only shown: a busy machine is silent for a while."""
_MEASURES = ("hbm_used_bytes", "idle_s", *BUSY)


def signs_of(c: Case) -> tuple[Sign, ...]:
    """Every sign that it is stale, the weightiest first."""
    signs = [*c.life.signs]
    stuck_s, rests_s = _stuck_s(c), idle_s(c)
    if stuck_s is not None and stuck_s >= c.limits.stuck_s:
        why = f"no program and no HBM in use for {elapsed(stuck_s)}: it is stuck while it starts, "
        signs.append(Sign("stuck", f"{why}or needs no TPU (JAX_PLATFORMS=cpu)"))
    if rests_s is not None and rests_s >= c.limits.idle_s:
        signs.append(Sign("idle", f"has left all its devices idle for {elapsed(rests_s)}"))
    return (*signs, *_quiet(c), *_silent(c))


def works_since_its_start(c: Case) -> str:
    """Its use of the processor since its start, where that is much; empty where it is not."""
    used = c.life.mean_cpu_percent
    if used is None or used < WORKING_CPU_PERCENT:
        return ""
    return f"it has used {used:.0f} % of a core since its start"


def _stuck_s(c: Case) -> float | None:
    """For how long at least it has held its nodes without loading a program; None when it may have
    loaded one, or cannot be asked.

    A runtime that starts begins threads: since the newest one began, none has started.
    """
    starting = c.has_agent and c.process.phase == Phase.STARTING
    if not (c.has_server or starting) or any(server.ids for server in c.servers):
        return None
    if any(fresh(c.snapshot, "hbm_used_bytes", d) for d in c.devices):
        return None
    return c.life.newest_thread_s


def _quiet(c: Case) -> Iterator[Sign]:
    """A sign about a holder without metrics that does no visible work."""
    thread_s, used = c.life.newest_thread_s, c.life.mean_cpu_percent
    if c.process.interval_s is not None or c.servers or c.life.client_ports:
        return
    if thread_s is None or used is None or c.is_measured(*_MEASURES):
        return
    if thread_s >= c.limits.stuck_s and used < QUIET_CPU_PERCENT:
        addresses = c.process.environment.get("TPU_PROCESS_ADDRESSES", "").split(",")
        several = len({address.rpartition(":")[0] for address in addresses}) > 1
        waits = ", or it waits for the other hosts" if several else ""
        yield Sign(
            "quiet",
            f"no metrics server, no agent, no new thread for {elapsed(thread_s)}, and "
            f"{used:.1f} % of a core since its start: still starting, or stuck{waits}",
        )


def _silent(c: Case) -> Iterator[Sign]:
    why = f": it is {stopped(c.process)}" if stopped(c.process) else ""
    for server in c.servers:
        if server.status == FAILED and server.is_service:
            yield Sign("server_silent", f"its metrics server: {server.message}")
    sampled_s = c.process.sampled_at_s
    if c.process.state == State.SILENT and sampled_s is not None:
        silent_s = max(0.0, c.snapshot.at_s - sampled_s)
        yield Sign("agent_silent", f"its agent has written nothing for {silent_s:.0f} s{why}")
