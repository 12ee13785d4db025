"""From targets to profiles: captures each, reads its trace, and joins xprof's figures.

All targets are captured at the same moment, and read one after the other. If a target fails, the
others are captured all the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tpusmi.model import Host, Snapshot
from tpusmi.profiler.at_once import at_once
from tpusmi.profiler.capture_target import ProfileTarget, TargetKind, are_paths
from tpusmi.profiler.private_folder import private_folder
from tpusmi.profiler.requests import CapturedTrace, CaptureRequest, Progress
from tpusmi.profiler.trace_files import contents_of
from tpusmi.trace.figures import FILE, Capture, TraceProfile
from tpusmi.trace.limits import TraceLimits, size_words
from tpusmi.trace.troubles import CaptureError, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.profiler.cost import MeasuredCost
    from tpusmi.profiler.remote_addresses import Address

ANALYSIS_S, COST_S, COST_MOST_S = 120.0, 3.0, 600.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")
Keep = Callable[[str, TraceProfile], None]
"""Called with the path of a trace, which is removed afterwards, and its profile."""


class ProfileSettings(NamedTuple):
    """How to make a profile."""

    request: CaptureRequest = CaptureRequest()
    analysis_s: float = ANALYSIS_S
    """How long the analysis of one trace may take."""
    with_xprof: bool = True
    cost_s: float = COST_S
    """How long the job's steps are watched after the capture; 0 measures no cost."""


class ProfiledTarget(NamedTuple):
    """What became of one target: a profile, or the error."""

    target: str
    profile: TraceProfile | None = None
    error: CaptureError | None = None


class _Trace(NamedTuple):
    """A trace that is to be read, or a finished profile, or the error that there is instead."""

    target: str
    path: str = ""
    capture: Capture | None = None
    """None for a file."""
    notes: tuple[str, ...] = ()
    cost: MeasuredCost | None = None
    profile: TraceProfile | None = None
    error: CaptureError | None = None


class _Capturing(NamedTuple):
    """What every capture of one command needs."""

    host: Host
    settings: ProfileSettings
    look: Callable[[], Snapshot]
    progress: Progress


def profiled(
    host: Host,
    targets: Sequence[ProfileTarget],
    settings: ProfileSettings,
    look: Callable[[], Snapshot],
    progress: Progress = lambda sentence: None,
    keep: Keep | None = None,
) -> list[ProfiledTarget]:
    """One answer for each trace of the targets, in their order: a log folder may have several.

    `look` gives a snapshot of the host; it is called where a target needs one. Raises CaptureError
    where no trace can be stored.
    """
    work = _Capturing(host, settings, look, progress)
    if are_paths(targets):
        return [_answer(work, trace, keep) for trace in _of_paths(targets)]
    with private_folder() as folder:
        return [_answer(work, trace, keep) for trace in _traces(work, targets, folder)]


def _traces(work: _Capturing, targets: Sequence[ProfileTarget], folder: str) -> list[_Trace]:
    """The traces of all targets, each captured into a folder of its own: xprof writes files beside
    a trace.
    """
    addresses = [t for t in targets if t.kind is TargetKind.ADDRESS]
    pids = [t for t in targets if t.kind is TargetKind.PID]
    tasks: list[Callable[[], list[_Trace]]] = []
    if addresses:
        tasks.append(lambda: _of_addresses(work, addresses, folder))
    for number, target in enumerate(pids):
        own = work if len(targets) == 1 else _named(work, target)
        tasks.append(_task_of_pid(own, target, _made(folder, f"pid-{number}")))
    captured = [trace for traces in at_once(tasks) for trace in traces]
    captured += _of_paths(targets)
    places = {target.text: place for place, target in enumerate(targets)}
    return sorted(captured, key=lambda trace: places[trace.target])


def _made(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    os.mkdir(path, 0o700)
    return path


def _of_paths(targets: Sequence[ProfileTarget]) -> list[_Trace]:
    traces: list[_Trace] = []
    for target in targets:
        if target.kind is not TargetKind.PATH:
            continue
        try:
            contents = contents_of(target.text)
        except CaptureError as error:
            traces.append(_Trace(target.text, error=error))
            continue
        notes = contents.notes
        traces += [_Trace(target.text, path=path, notes=notes) for path in contents.traces]
        traces += [_Trace(target.text, profile=profile) for profile in contents.profiles]
    return traces


def _of_addresses(work: _Capturing, targets: Sequence[ProfileTarget], folder: str) -> list[_Trace]:
    from tpusmi.profiler.remote import capture

    addresses = [target.address for target in targets if target.address is not None]
    costs = [_cost(work, _local_pid(address)) for address in addresses]
    answers = capture(addresses, work.settings.request, _made(folder, "remote"), work.progress)
    return [
        _Trace(target.text, error=answer)
        if isinstance(answer, CaptureError)
        else _trace(work, target, answer, cost)
        for target, answer, cost in zip(targets, answers, costs, strict=True)
    ]


def _local_pid(address: Address) -> int | None:
    """The process of this host that serves the address, as far as the kernel shows it."""
    from tpusmi.profiler.local_ports import listener_of

    return listener_of(address.port) if address.host in LOOPBACK else None


def _task_of_pid(
    work: _Capturing, target: ProfileTarget, folder: str
) -> Callable[[], list[_Trace]]:
    return lambda: [_of_pid(work, target, folder)]


def _named(work: _Capturing, target: ProfileTarget) -> _Capturing:
    """The same, with the target in front of each sentence about the progress."""

    def progress(sentence: str) -> None:
        work.progress(f"{target.text}: {sentence}")

    return work._replace(progress=progress)


def _of_pid(work: _Capturing, target: ProfileTarget, folder: str) -> _Trace:
    from tpusmi.profiler.pid_capture import capture_process

    assert target.pid is not None
    cost = _cost(work, target.pid)
    try:
        captured = capture_process(
            work.host, target.pid, work.settings.request, folder, (work.look, work.progress)
        )
    except CaptureError as error:
        return _Trace(target.text, error=error)
    return _trace(work, target, captured, cost)


def _cost(work: _Capturing, pid: int | None) -> MeasuredCost | None:
    """What measures the cost for that process; None where that is not to be done."""
    if pid is None or work.settings.cost_s <= 0:
        return None
    from tpusmi.profiler.cost import MeasuredCost

    return MeasuredCost(work.host, pid)


def _trace(
    work: _Capturing, target: ProfileTarget, captured: CapturedTrace, cost: MeasuredCost | None
) -> _Trace:
    if cost is not None:
        cost.watch(work.settings.cost_s)
    made = captured.capture._replace(target=target.text)
    return _Trace(target.text, path=captured.path, capture=made, notes=captured.notes, cost=cost)


def _answer(work: _Capturing, trace: _Trace, keep: Keep | None) -> ProfiledTarget:
    """The profile of a trace; or the error why there is none."""
    if trace.error is not None or trace.profile is not None:
        return ProfiledTarget(trace.target, trace.profile, trace.error)
    try:
        profile = _read(work, trace)
    except CaptureError as error:
        return ProfiledTarget(trace.target, error=error)
    except OSError as error:  # the file has been removed
        reason = f"{trace.path}: {error.strerror or error}"
        return ProfiledTarget(trace.target, error=CaptureError(Trouble.FAILED, reason))
    if keep is not None:
        keep(trace.path, profile)
    return ProfiledTarget(trace.target, profile)


def _read(work: _Capturing, trace: _Trace) -> TraceProfile:
    from tpusmi.trace.direct import read_trace

    begun_s = time.monotonic()
    limits = TraceLimits(until_s=begun_s + work.settings.analysis_s)
    size = os.path.getsize(trace.path)
    work.progress(f"reading the trace ({size_words(size)})")
    profile = read_trace(trace.path, limits)
    if work.settings.with_xprof:
        from tpusmi.profiler.xprof import with_xprof

        work.progress("reading it with xprof, if that is installed")
        profile = with_xprof(trace.path, profile, limits)
    capture = _joined(profile.capture, trace.capture)
    analyzed_s = time.monotonic() - begun_s
    if trace.cost is not None:
        work.progress("measuring what the capture cost the job")
        capture = capture._replace(cost=trace.cost.result())
    target = trace.target if trace.capture is not None else trace.path
    return profile._replace(
        notes=(*profile.notes, *trace.notes),
        capture=capture._replace(target=target, analyzed_s=analyzed_s, trace_bytes=size),
    )


def _joined(of_file: Capture, made: Capture | None) -> Capture:
    """How the trace was made: as its maker says, else as the trace itself does."""
    if made is None:
        return of_file._replace(how=FILE)
    own = {name: value for name, value in made._asdict().items() if value is not None}
    capture = of_file._replace(**own)
    is_here = capture.host in LOOPBACK
    return capture._replace(host=os.uname().nodename) if is_here else capture
