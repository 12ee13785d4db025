"""`tpusmi.profile()`: what the cores of a job really did, from a short trace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import overload

from tpusmi.actions import is_readonly
from tpusmi.collect import look_for_jobs, this_host
from tpusmi.profiler.capture import COST_MOST_S, COST_S, ProfiledTarget, ProfileSettings, profiled
from tpusmi.profiler.capture_target import ProfileTarget, are_paths, target_of
from tpusmi.profiler.requests import DURATION_LEAST_MS, DURATION_MOST_MS, CaptureRequest
from tpusmi.profiler.which_job import awaited_jobs
from tpusmi.trace.figures import TraceProfile

OneTarget = int | str | os.PathLike[str]
Targets = list[OneTarget] | tuple[OneTarget, ...]

PUBLISHED_S = 10.0
"""How long an agent that was just started in this process has to write its segment."""


@overload
def profile(
    target: OneTarget | None = None,
    duration_ms: int = 1000,
    *,
    xprof: bool = True,
    cost_s: float = COST_S,
    simulate: str | os.PathLike[str] | None = None,
) -> TraceProfile: ...


@overload
def profile(
    target: Targets,
    duration_ms: int = 1000,
    *,
    xprof: bool = True,
    cost_s: float = COST_S,
    simulate: str | os.PathLike[str] | None = None,
) -> list[TraceProfile]: ...


def profile(
    target: OneTarget | Targets | None = None,
    duration_ms: int = 1000,
    *,
    xprof: bool = True,
    cost_s: float = COST_S,
    simulate: str | os.PathLike[str] | None = None,
) -> TraceProfile | list[TraceProfile]:
    """What the cores of a job really did: captures a trace of it, as `tpusmi profile` does.

    `target` is a pid, the address of a profiler service (`"localhost:9012"`), or the path of a
    trace, a log folder or a saved profile; without one it is the only job that runs here. Returns a
    `TraceProfile`; for a list of targets, a list with one for each host, all of which are captured
    at the same moment. Unknown is None, never 0.

    A capture disturbs the job: `capture.cost` says what it cost, measured for `cost_s` seconds
    after it. `duration_ms` is from 10 to 60000. With `xprof=False` only tpusmi's own reading of the
    trace is used. `simulate`: as for `snapshot()`. Raises `CaptureError`, whose `trouble` is its
    kind, when there is no trace or it cannot be read; ValueError for wrong arguments, several jobs
    to choose from, and a target with several hosts that is not in a list; and PermissionError for a
    capture under TPUSMI_MODE=readonly.

    >>> p = tpusmi.profile(duration_ms=100, simulate="v5e-8", xprof=False, cost_s=0)
    >>> print(p.device_type, len(p.cores), p.duty_cycle_percent, p.mxu_percent, p.steps)
    TPU ... 8 ...
    """
    settings = _settings(duration_ms, xprof, cost_s)
    several = isinstance(target, (list, tuple))
    named = _named(target)
    targets = [target_of(os.fspath(t) if isinstance(t, os.PathLike) else str(t)) for t in named]
    if several and not targets:
        raise ValueError("the list of targets is empty")
    _check_readonly(targets)
    profiles = _profiles(targets, settings, simulate)
    if several:
        return profiles
    if len(profiles) != 1:
        hint = f"profile([{named[0]!r}])" if named else "a list of their pids"
        raise ValueError(f"there are {len(profiles)} hosts or processes: {hint} returns all")
    return profiles[0]


def _profiles(
    targets: list[ProfileTarget],
    settings: ProfileSettings,
    simulate: str | os.PathLike[str] | None,
) -> list[TraceProfile]:
    from tpusmi.api.reading import _simulated

    with ExitStack() as opened:
        host = this_host() if simulate is None else _simulated(simulate, opened)
        if not targets:
            jobs = awaited_jobs(lambda: look_for_jobs(host), host.simulated)
            targets = [target_of(str(p.pid)) for p in jobs]
        elif any(target.pid == os.getpid() for target in targets) and not host.simulated:
            from tpusmi.agent import wait_until_published

            wait_until_published(PUBLISHED_S)
        answers = profiled(host, targets, settings, lambda: look_for_jobs(host))
    return [_profile(answer) for answer in answers]


def _profile(answer: ProfiledTarget) -> TraceProfile:
    """The profile. Raises CaptureError."""
    if answer.profile is None:
        assert answer.error is not None
        raise answer.error
    return answer.profile


def _named(target: OneTarget | Targets | None) -> list[OneTarget]:
    """The targets. Raises TypeError for what cannot be one."""
    if target is None:
        return []
    named = list(target) if isinstance(target, (list, tuple)) else [target]
    for one in named:
        if isinstance(one, bool) or not isinstance(one, (int, str, os.PathLike)):
            raise TypeError(f"a target must be a pid, an address or a path, not {one!r}")
    return named


def _settings(duration_ms: int, xprof: bool, cost_s: float) -> ProfileSettings:
    if isinstance(duration_ms, bool) or not hasattr(duration_ms, "__index__"):
        raise TypeError(f"duration_ms must be a whole number, not {duration_ms!r}")
    if not DURATION_LEAST_MS <= duration_ms <= DURATION_MOST_MS:
        least, most = DURATION_LEAST_MS, DURATION_MOST_MS
        raise ValueError(f"duration_ms must be from {least} to {most}, not {duration_ms!r}")
    if isinstance(cost_s, (bool, str)) or not 0 <= cost_s <= COST_MOST_S:
        raise ValueError(f"cost_s must be from 0 to {COST_MOST_S:.0f} seconds, not {cost_s!r}")
    return ProfileSettings(
        CaptureRequest(duration_ms=int(duration_ms)), with_xprof=xprof, cost_s=cost_s
    )


def _check_readonly(targets: Sequence[ProfileTarget]) -> None:
    if is_readonly() and not are_paths(targets):
        raise PermissionError("TPUSMI_MODE=readonly: profile() only reads files")
