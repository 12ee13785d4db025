"""What a profile of a trace lacks and why, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpusmi.text import clean, counted, ranges
from tpusmi.trace.core_trace import CoreTrace
from tpusmi.trace.counted_work import UNCOUNTED_MOST_PERCENT, Work
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
NO_MXU, NO_BANDWIDTH = ": no MXU utilization.", ": no HBM bandwidth."
"""The ends of notes on figures that are missing."""
CUSTOM_LEAST_PERCENT = WAITS_LEAST_PERCENT = 1.0
MESSAGES_MOST = 5


def complaints(space: XSpace) -> list[str]:
    """What the profiler itself reports in the trace."""
    messages = [clean(message, 300) for message in (*space.errors, *space.warnings)]
    texts = [f"The profiler reports: {message}" for message in messages if message]
    more = len(texts) - MESSAGES_MOST
    return [*texts[:MESSAGES_MOST], *([f"It reports {more} more of these."] if more > 0 else [])]


def device_notes(backend: str | None, cores: Sequence[CoreTrace], work: Work) -> list[str]:
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
    if backend == "cpu" and any(core.local_index is None for core in cores):
        notes.append("The trace does not tell CPU devices apart: they are shown as one.")
    if any(core.has_counters for core in cores):
        notes.append("The trace has hardware counters: xprof's utilization viewer shows them.")
    if backend == "tpu" and work.flops is None and not work.is_doubtful:
        notes.append("The trace does not say how many FLOPs its operations have.")
    return notes


def figure_notes(p: TraceProfile, work: Work, is_measured: bool) -> list[str]:
    """What the figures leave out, where a reader would wonder. The MXU utilization may be measured
    by the profiler itself.
    """
    notes = []
    duty, idle = p.duty_cycle_percent, p.idle_percent
    if None not in (duty, idle) and 100 - duty - idle > WAITS_LEAST_PERCENT:  # type: ignore[operator]
        notes.append("The duty cycle leaves out infeed and outfeed: waits for the host.")
    if work.flops and p.flops_per_s is None:
        notes.append("The operations declare more FLOPs than the devices can do: no FLOP rate.")
    if work.hbm_bytes and p.hbm_bandwidth_percent is None and p.peak_hbm_bytes_per_s:
        notes.append("The operations declare more bytes than the devices can move: no bandwidth.")
    return [*notes, *_custom_notes(work, is_measured)]


def _custom_notes(work: Work, is_measured: bool) -> Iterator[str]:
    """About custom kernels, and the figures that they hide."""
    share = work.uncounted_percent
    kernels = f"Custom kernels take {share:.0f}% of the busy time"
    end = ": no FLOP rate." if is_measured else NO_MXU
    if share > UNCOUNTED_MOST_PERCENT:
        yield f"{kernels}, and XLA does not count their FLOPs{end}"
    elif work.is_doubtful:
        yield f"Operations declare more FLOPs than a core can do{end}"
    elif share >= CUSTOM_LEAST_PERCENT:
        what = "FLOP rate" if is_measured else "MXU utilization"
        yield f"{kernels}. XLA does not count their FLOPs, so the real {what} is higher."
    if work.unmoved_percent > UNCOUNTED_MOST_PERCENT:
        yield f"XLA does not count the bytes that custom kernels move{NO_BANDWIDTH}"


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
