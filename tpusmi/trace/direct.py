"""Reads a trace file directly, with the standard library alone, into a profile."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tpusmi.text import clean, counted, ranges
from tpusmi.trace.core_trace import PS_PER_S, CoreTrace
from tpusmi.trace.device_sums import DeviceSums, Work, core_figures, percent, ratio
from tpusmi.trace.figures import FILE, TRACE, Capture, TraceProfile
from tpusmi.trace.host_plane import PLANE as HOST_PLANE
from tpusmi.trace.host_plane import HostPlane, HostTrace
from tpusmi.trace.limits import TraceLimits
from tpusmi.trace.messages import NotATraceError
from tpusmi.trace.open_trace import TraceFile
from tpusmi.trace.other_files import reason_of
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
from tpusmi.trace.troubles import CaptureError, Trouble
from tpusmi.trace.xspace import XPlane, XSpace, read_space

SIMULATED_HOST = "simulated"
"""The host that tpusmi's simulator names in its traces."""
ENVIRONMENT_PLANE = "Task Environment"
LONGEST_NS = 24 * 3600 * 10**9
"""A capture does not take longer than a day."""
HOST_TIME_SHARE = 0.5
"""Share of the time left after the devices that the host's lines may take."""
NO_OPERATIONS = (
    "The trace has no operations of any device: the job did not compute anything meanwhile, or its "
    "profiler does not record devices."
)
NO_MARKS = (
    "The trace has no step markers, so there are no step times: put the step inside "
    "`with jax.profiler.StepTraceAnnotation('train', step_num=i):`"
)
STEPS_AHEAD = (
    "The host starts steps and does not wait for them, so its step markers show no step times: "
    "see how long a run of the main program takes."
)
CUSTOM_LEAST_PERCENT = 1.0
MESSAGES_MOST = 5


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
    cores = [*_tpu_cores(tpus)]
    gpus = [] if cores else [GpuPlane(plane, i).read() for i, plane in gpu_planes(space.planes)]
    host = _host(space.planes, file, with_operations=not (cores or gpus))
    if cores or gpus:
        backend = "tpu" if cores else "gpu"
        return _Devices(backend, cores or gpus, host, _recorded_ps(space))
    most = file.limits.operations_most
    if host.operations and not host.is_whole:
        sentence = f"{file.name} has more events of its host than can be read: capture less time."
        raise CaptureError(Trouble.FAILED, sentence)
    cpus = [read_cpu(i, of.values(), most) for i, of in sorted(host.operations.items())]
    return _Devices("cpu" if cpus else None, cpus, host, _recorded_ps(space))


def _tpu_cores(tpus: list[tuple[re.Match[str], XPlane]]) -> Iterator[CoreTrace]:
    ids = CoreIds(plane for _, plane in tpus)
    for match, plane in tpus:
        yield TpuPlane(plane, int(match[1])).read(ids)
        plane.forget()


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
    flops_per_s = ratio(work.flops, captured_s)
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
        mxu_percent=host.mxu_percent or percent(work.flops, _possible_flops(cores)),
        hbm_bandwidth_percent=percent(work.hbm_bytes, _possible_bytes(cores)),
        flops_per_s=flops_per_s,
        peak_flops_per_s=sums.peak_flops_per_s,
        peak_hbm_bytes_per_s=sums.peak_hbm_bytes_per_s,
        steps=steps_of_all(cores)
        or (None if _has_steps(cores) else steps_of_host(timed, host.waits)),
        input_bound_percent=_first(
            input_bound_percent(cores), host_wait_percent(timed, host.waits)
        ),
        shares=sums.shares()._replace(
            compile_percent=percent(_at_most(host.compile_ps, longest_ps), longest_ps)
        ),
        cores=tuple(core_figures(core) for core in cores),
        operations=sums.operations(),
        programs=sums.programs(),
        memory=host.memory,
        sources={},
        notes=(),
    )
    notes = (
        *_complaints(space),
        *_device_notes(devices, sums, work),
        *([STEPS_AHEAD] if is_ahead else _step_notes(profile, _has_steps(cores) or bool(markers))),
    )
    return profile._replace(sources=_sources(profile), notes=(*notes, *_host_notes(host)))


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


def _at_most(value: int | None, most: int | None) -> int | None:
    return value if value is None or most is None else min(value, most)


def _complaints(space: XSpace) -> list[str]:
    """What the profiler itself reports in the trace."""
    messages = [clean(message, 300) for message in (*space.errors, *space.warnings)]
    texts = [f"The profiler reports: {message}" for message in messages if message]
    more = len(texts) - MESSAGES_MOST
    return [*texts[:MESSAGES_MOST], *([f"It reports {more} more of these."] if more > 0 else [])]


def _device_notes(devices: _Devices, sums: DeviceSums, work: Work) -> list[str]:
    notes = []
    if not any(core.captured_ps for core in devices.cores):
        return [NO_OPERATIONS if not devices.cores else "No device ran any operation meanwhile."]
    idle = [core.local_index for core in devices.cores if not core.captured_ps]
    if idle:
        numbers = ranges(index for index in idle if index is not None)
        verb = "is" if len(idle) == 1 else "are"
        notes.append(
            f"{counted(len(idle), 'device')} ran no operation, and {verb} left out: {numbers}."
        )
    if devices.backend == "tpu" and sums.custom_percent() >= CUSTOM_LEAST_PERCENT:
        notes.append(
            f"Custom kernels take {sums.custom_percent():.0f}% of the busy time. XLA does not "
            "count their FLOPs, so the real MXU utilization is higher."
        )
    if any(core.has_counters for core in devices.cores):
        notes.append("The trace has hardware counters: xprof's utilization viewer shows them.")
    if devices.backend == "tpu" and work.flops is None:
        notes.append("The trace does not say how many FLOPs its operations have.")
    return notes


def _step_notes(profile: TraceProfile, is_marked: bool) -> list[str]:
    if profile.steps is not None or not profile.operations:
        return []
    if is_marked:
        return ["There is no whole step inside: capture longer."]
    was_seen = any(program.runs > 2 for program in profile.programs)
    return [f"{NO_MARKS}." if was_seen else f"{NO_MARKS}, or capture longer."]


def _host_notes(host: HostTrace) -> list[str]:
    if host.is_whole:
        return []
    return [
        "The host's lines take too long to read, so there is no peak of the memory, and its step "
        "markers may be missing."
    ]


def _sources(profile: TraceProfile) -> dict[str, str]:
    """From where each figure is: all of them are from the trace."""
    figures = profile._asdict()
    for name in ("capture", "sources", "notes", "shares"):
        del figures[name]
    names = {name: TRACE for name, value in figures.items() if value not in (None, ())}
    if profile.cores:
        names["shares"] = TRACE
    return names
