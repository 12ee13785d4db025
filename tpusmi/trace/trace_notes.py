"""What a profile of a trace lacks and why, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi.text import clean, counted, ranges
from tpusmi.trace.core_trace import CoreTrace
from tpusmi.trace.device_sums import DeviceSums, Work
from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.host_plane import HostTrace
from tpusmi.trace.xspace import XSpace

NO_OPERATIONS = (
    "The trace has no operations of any device: the job did not compute anything meanwhile, or its "
    "profiler does not record devices. Capture longer to be sure."
)
NO_MARKS = (
    "The trace has no step markers, so there are no step times: put the step inside "
    "`with jax.profiler.StepTraceAnnotation('train', step_num=i):`"
)
STEPS_AHEAD = (
    "The host starts steps and does not wait for them, so its step markers show no step times: "
    "see how long a run of the main program takes."
)
CUSTOM_LEAST_PERCENT = WAITS_LEAST_PERCENT = 1.0
MESSAGES_MOST = 5


def complaints(space: XSpace) -> list[str]:
    """What the profiler itself reports in the trace."""
    messages = [clean(message, 300) for message in (*space.errors, *space.warnings)]
    texts = [f"The profiler reports: {message}" for message in messages if message]
    more = len(texts) - MESSAGES_MOST
    return [*texts[:MESSAGES_MOST], *([f"It reports {more} more of these."] if more > 0 else [])]


def device_notes(
    backend: str | None, cores: Sequence[CoreTrace], sums: DeviceSums, work: Work
) -> list[str]:
    """About the devices and their operations."""
    notes = []
    if not any(core.captured_ps for core in cores):
        return [NO_OPERATIONS if not cores else "No device ran any operation meanwhile."]
    idle = [core.local_index for core in cores if not core.captured_ps]
    if idle:
        numbers = ranges(index for index in idle if index is not None)
        verb = "is" if len(idle) == 1 else "are"
        notes.append(
            f"{counted(len(idle), 'device')} ran no operation, and {verb} left out: {numbers}."
        )
    if backend == "tpu" and sums.custom_percent() >= CUSTOM_LEAST_PERCENT:
        notes.append(
            f"Custom kernels take {sums.custom_percent():.0f}% of the busy time. XLA does not "
            "count their FLOPs, so the real MXU utilization is higher."
        )
    if backend == "cpu" and any(core.local_index is None for core in cores):
        notes.append("The trace does not tell CPU devices apart: they are shown as one.")
    if any(core.has_counters for core in cores):
        notes.append("The trace has hardware counters: xprof's utilization viewer shows them.")
    if backend == "tpu" and work.flops is None:
        notes.append("The trace does not say how many FLOPs its operations have.")
    return notes


def figure_notes(p: TraceProfile, work: Work) -> list[str]:
    """What the figures leave out, where a reader would wonder."""
    notes = []
    duty, idle = p.duty_cycle_percent, p.idle_percent
    if None not in (duty, idle) and 100 - duty - idle > WAITS_LEAST_PERCENT:  # type: ignore[operator]
        notes.append("The duty cycle leaves out infeed and outfeed: waits for the host.")
    if work.flops and p.flops_per_s is None:
        notes.append("The operations declare more FLOPs than the devices can do: no FLOP rate.")
    if work.hbm_bytes and p.hbm_bandwidth_percent is None and p.peak_hbm_bytes_per_s:
        notes.append("The operations declare more bytes than the devices can move: no bandwidth.")
    return notes


def step_notes(profile: TraceProfile, is_marked: bool, is_ahead: bool) -> list[str]:
    """Why there are no step times."""
    if profile.steps is not None or not profile.operations:
        return []
    if is_ahead:
        return [STEPS_AHEAD]
    if is_marked:
        return ["There is no whole step inside: capture longer."]
    was_seen = any(program.runs > 2 for program in profile.programs)
    return [f"{NO_MARKS}." if was_seen else f"{NO_MARKS}, or capture longer."]


def host_notes(host: HostTrace) -> list[str]:
    """About the lines of the host."""
    if host.is_whole:
        return []
    return [
        "The host's lines take too long to read, so there is no peak of the memory, and its step "
        "markers may be missing."
    ]
