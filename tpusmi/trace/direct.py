"""Reads a trace file directly, with the standard library alone, into a profile."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tpusmi.text import clean
from tpusmi.trace import trace_notes
from tpusmi.trace.core_trace import PS_PER_S, CoreTrace
from tpusmi.trace.device_sums import DeviceSums, core_figures
from tpusmi.trace.figures import FILE, SIMULATED_HOST, TRACE, Capture, TraceProfile
from tpusmi.trace.host_plane import PLANE as HOST_PLANE
from tpusmi.trace.host_plane import UNNUMBERED, HostPlane, HostTrace
from tpusmi.trace.limits import TraceLimits
from tpusmi.trace.messages import NotATraceError
from tpusmi.trace.open_trace import TraceFile
from tpusmi.trace.other_files import reason_of
from tpusmi.trace.rates import believed, of_peak, percent, ratio
from tpusmi.trace.step_times import (
    host_wait_percent,
    input_bound_percent,
    main_markers,
    runs_ahead,
    steps_of_all,
    steps_of_host,
)
from tpusmi.trace.stream_device import GpuPlane, gpu_planes, read_cpu
from tpusmi.trace.tpu_plane import PLANE as TPU_PLANE
from tpusmi.trace.tpu_plane import CoreIds, TpuPlane
from tpusmi.trace.troubles import CaptureError, Trouble, too_many_operations
from tpusmi.trace.xspace import XPlane, XSpace, read_space

ENVIRONMENT_PLANE = "Task Environment"
LONGEST_NS = 24 * 3600 * 10**9
"""A capture does not take longer than a day."""
HOST_TIME_SHARE = 0.5
"""Share of the time left after the devices that the host's lines may take."""
ROWS_MOST, TIMES_OF_ROW = 1_000_000, 8
"""Operations, programs and steps of all devices together, and how many times of waits and runs take
as much memory: each device alone may have a hundred thousand, and a trace ten thousand devices.
"""


class _Devices(NamedTuple):
    backend: str | None
    cores: list[CoreTrace]
    host: HostTrace
    recorded_ps: int | None
    """How long the profiler recorded; None when the trace does not say."""


def read_trace(path: str, limits: TraceLimits) -> TraceProfile:
    """The profile of an XSpace file (`….xplane.pb`), without xprof.

    Raises CaptureError: UNREADABLE for bytes that are not a trace, FAILED when it is larger or
    takes longer than the limits allow, ABSENT or DENIED when it cannot be opened.
    """
    began_s = time.monotonic()
    with TraceFile(path, limits) as file:
        try:
            space = read_space(file)
            devices = _devices(space, file)
            capture = _capture(space, file)
        except NotATraceError as error:
            raise file.refusal(reason_of(file) or str(error)) from None
    capture = capture._replace(analyzed_s=time.monotonic() - began_s)
    return _profile(capture, devices, space)


def _devices(space: XSpace, file: TraceFile) -> _Devices:
    tpus = [(match, plane) for plane in space.planes if (match := TPU_PLANE.fullmatch(plane.name))]
    cores = _bounded(_tpu_cores(tpus), file)
    gpus = [] if cores else _bounded(_gpus(space.planes), file)
    host = _host(space.planes, file, with_operations=not (cores or gpus))
    if cores or gpus:
        backend = "tpu" if cores else "gpu"
        return _Devices(backend, cores or gpus, host, _recorded_ps(space))
    most = file.limits.operations_most
    if host.operations and not host.is_whole:
        sentence = f"{file.name} has more events of its host than can be read: capture less time."
        raise CaptureError(Trouble.FAILED, sentence)
    cpus = [
        read_cpu(None if i == UNNUMBERED else i, of.values(), most)
        for i, of in sorted(host.operations.items())
    ]
    return _Devices("cpu" if cpus else None, cpus, host, _recorded_ps(space))


def _tpu_cores(tpus: list[tuple[re.Match[str], XPlane]]) -> Iterator[CoreTrace]:
    ids = CoreIds(plane for _, plane in tpus)
    for match, plane in tpus:
        yield TpuPlane(plane, int(match[1])).read(ids)
        plane.forget()


def _gpus(planes: Sequence[XPlane]) -> Iterator[CoreTrace]:
    return (GpuPlane(plane, index).read() for index, plane in gpu_planes(planes))


def _bounded(devices: Iterator[CoreTrace], file: TraceFile) -> list[CoreTrace]:
    """The devices. Raises CaptureError for more rows of all together than are kept."""
    cores: list[CoreTrace] = []
    rows = 0
    for core in devices:
        cores.append(core)
        times = len(core.infeed) + sum(len(program.starts) for program in core.programs)
        rows += len(core.operations) + len(core.programs) + len(core.steps) + times // TIMES_OF_ROW
        if rows > ROWS_MOST:
            raise too_many_operations(file.name)
    return cores


def _host(planes: Sequence[XPlane], file: TraceFile, with_operations: bool) -> HostTrace:
    plane = next((plane for plane in planes if plane.name == HOST_PLANE), None)
    if plane is None:
        return HostTrace()
    until_s = time.monotonic() + HOST_TIME_SHARE * file.limits.left_s
    return HostPlane(plane, with_operations, until_s).read()


def _environment(space: XSpace) -> tuple[int | None, int | None]:
    """When the profiler began and stopped, in Unix nanoseconds; None where the trace has none."""
    plane = next((plane for plane in space.planes if plane.name == ENVIRONMENT_PLANE), None)
    stats = plane.stats() if plane is not None else {}
    times = stats.get("profile_start_time"), stats.get("profile_stop_time")
    began, stopped = (time if isinstance(time, int) and time > 0 else None for time in times)
    return began, stopped


def _recorded_ps(space: XSpace) -> int | None:
    began, stopped = _environment(space)
    if began is None or stopped is None or not 0 < stopped - began < LONGEST_NS:
        return None
    return 1000 * (stopped - began)


def _capture(space: XSpace, file: TraceFile) -> Capture:
    began_ns, _ = _environment(space)
    return Capture(
        how=FILE,
        target=file.path,
        host=clean(space.hosts[0], 200) or None if space.hosts else None,
        captured_at_s=None if began_ns is None else began_ns / 1e9,
        trace_bytes=file.size,
        simulated=space.hosts == (SIMULATED_HOST,),
    )


def _profile(capture: Capture, devices: _Devices, space: XSpace) -> TraceProfile:
    cores = _working(devices.cores, devices.recorded_ps)
    host, sums = devices.host, DeviceSums(cores)
    captured_s = sums.captured_ps / PS_PER_S
    work = sums.work()
    markers = main_markers(host.markers)
    is_ahead = not _has_steps(cores) and runs_ahead(markers, cores)
    timed = [] if is_ahead else markers
    possible = _possible_flops(cores)
    longest_ps = max((core.captured_ps for core in cores), default=None)
    profile = TraceProfile(
        capture=capture,
        backend=devices.backend,
        device_type=next((c.device_type for c in devices.cores if c.device_type), None),
        captured_s=None if longest_ps is None else longest_ps / PS_PER_S,
        duty_cycle_percent=percent(
            sum(core.duty_ps for core in cores), sum(core.duty_span_ps for core in cores)
        ),
        idle_percent=percent(sums.captured_ps - sums.busy_ps, sums.captured_ps),
        mxu_percent=host.mxu_percent or of_peak(work.flops, possible),
        hbm_bandwidth_percent=of_peak(work.hbm_bytes, _possible_bytes(cores)),
        flops_per_s=ratio(believed(work.flops, possible), captured_s),
        peak_flops_per_s=sums.peak_flops_per_s,
        peak_hbm_bytes_per_s=sums.peak_hbm_bytes_per_s,
        steps=steps_of_all(cores)
        or (None if _has_steps(cores) else steps_of_host(timed, host.waits)),
        input_bound_percent=_first(
            input_bound_percent(cores), host_wait_percent(timed, host.waits)
        ),
        shares=sums.shares()._replace(
            compile_percent=_compile_percent(host.compile_ps, longest_ps, devices.recorded_ps)
        ),
        cores=tuple(core_figures(core) for core in cores),
        operations=sums.operations(),
        programs=sums.programs(),
        memory=host.memory,
        sources={},
        notes=(),
    )
    notes = (
        *trace_notes.complaints(space),
        *trace_notes.device_notes(devices.backend, devices.cores, work),
        *trace_notes.figure_notes(profile, work, host.mxu_percent is not None),
        *trace_notes.step_notes(profile, _has_steps(cores) or bool(markers), is_ahead),
        *trace_notes.host_notes(host),
    )
    return profile._replace(sources=_sources(profile), notes=notes)


def _working(cores: Sequence[CoreTrace], recorded_ps: int | None) -> list[CoreTrace]:
    """The devices with operations. If none has one, all of them were idle all the time."""
    working = [core for core in cores if core.captured_ps]
    if working or not recorded_ps:
        return working
    return [c._replace(captured_ps=recorded_ps, duty_span_ps=recorded_ps) for c in cores]


def _has_steps(cores: Sequence[CoreTrace]) -> bool:
    return any(core.steps for core in cores)


def _possible_flops(cores: Sequence[CoreTrace]) -> float | None:
    """FLOPs that the devices could have done; None when the peak of one is not known."""
    return _possible([(core.captured_ps, core.peak_flops_per_s) for core in cores])


def _possible_bytes(cores: Sequence[CoreTrace]) -> float | None:
    return _possible([(core.captured_ps, core.peak_hbm_bytes_per_s) for core in cores])


def _possible(rates: Sequence[tuple[int, float | None]]) -> float | None:
    amounts = [None if peak is None else captured / PS_PER_S * peak for captured, peak in rates]
    return None if None in amounts else sum(filter(None, amounts))


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _compile_percent(
    compile_ps: int | None, longest_ps: int | None, recorded_ps: int | None
) -> float | None:
    """A share of all that was recorded: a job compiles before its first operation as well."""
    if compile_ps is None or longest_ps is None:
        return None
    all_ps = max(longest_ps, recorded_ps or 0)
    return percent(min(compile_ps, all_ps), all_ps)


def _sources(profile: TraceProfile) -> dict[str, str]:
    """From where each figure is: all of them are from the trace."""
    figures = profile._asdict()
    for name in ("capture", "sources", "notes", "shares"):
        del figures[name]
    names = {name: TRACE for name, value in figures.items() if value not in (None, ())}
    if profile.cores:
        names["shares"] = TRACE
    return names
