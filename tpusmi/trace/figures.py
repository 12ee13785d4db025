"""What a short trace shows: the types between those who read traces and those who show profiles.

None is "the trace does not say" everywhere, and never 0. Percentages are 0 to 100. Times are of the
trace's own clock, in seconds.
"""

from collections.abc import Mapping
from typing import NamedTuple

TRACE, XPROF, AGENT = "trace", "xprof", "agent"
"""Where a figure comes from: tpusmi's own reading of the trace, xprof's of the same file, or the
agent of the job.
"""
GRPC, IN_PROCESS, FILE = "grpc", "agent", "file"
"""How a trace was made: by the job's profiler service, by its agent, or before: it was a file."""

SIMULATED_HOST = "simulated"
"""The host that tpusmi's simulator names in its traces."""


class TracedSteps(NamedTuple):
    """Times of the whole steps in a trace. Steps that its ends cut off are not in them."""

    whole: int
    cut_off: int
    """Steps left out, because the capture began or ended within them."""
    min_s: float
    mean_s: float
    p50_s: float
    p95_s: float
    max_s: float
    input_least_percent: float | None = None
    """Share of its time that the step waits for input which waits least."""
    input_most_percent: float | None = None
    """The same of the step that waits most."""


class TimeShares(NamedTuple):
    """Where the captured time of all cores went, in percent of it. The numbers add up to 100."""

    compute_percent: float | None = None
    collectives_percent: float | None = None
    """Waiting for, or working on, exchanges between devices."""
    infeed_percent: float | None = None
    """Waiting for input."""
    outfeed_percent: float | None = None
    host_percent: float | None = None
    """Copies to and from the host's memory."""
    compile_percent: float | None = None
    """The host compiles meanwhile: it may overlap with all others, and is not in the sum. A
    share of all that was recorded, also before the first operation and after the last.
    """
    idle_percent: float | None = None


class Operation(NamedTuple):
    """One operation of a compiled program, summed over all cores and runs."""

    name: str
    """XLA's name, such as `fusion.12`."""
    category: str | None
    """XLA's category, such as `loop fusion`; on a GPU that of the kernel."""
    program: str | None
    """The compiled program, such as `jit_train_step`."""
    framework_name: str | None
    """The path in JAX, such as `jit(train_step)/transpose(jvp(Model))/dot_general`."""
    source: str | None
    """File and line, such as `train.py:41`."""
    runs: int
    self_s: float
    """Without the time of operations inside it."""
    self_percent: float
    """A share of the captured time of all cores, idle time included."""
    flops_per_s: float | None
    """While it ran, per core."""
    mxu_percent: float | None
    """`flops_per_s` over the peak of a core."""
    hbm_bytes_per_s: float | None
    """While it ran, per core."""
    hbm_bandwidth_percent: float | None
    bound_by: str | None
    """What limits it, as xprof judges: `HBM`, `Compute`, and so on."""


class ProgramRuns(NamedTuple):
    """One compiled program, summed over all cores."""

    name: str
    runs: int
    """Per core, on the core that ran it most."""
    mean_s: float
    """Mean time of one run."""
    period_s: float | None
    """Median time from the start of one run to that of the next; None for fewer than three runs."""
    busy_percent: float
    """A share of the captured time of all cores."""


class CoreFigures(NamedTuple):
    """One device of the trace: one plane, which is what JAX numbers."""

    plane: str
    """The trace's name for it, such as `/device:TPU:0`."""
    local_index: int | None
    """Local index."""
    id: int | None
    """Global id, as JAX numbers devices; None where the trace does not say."""
    captured_s: float
    """From its first event to the end of its last: what the percentages are of."""
    busy_s: float
    """With at least one operation running."""
    idle_s: float
    duty_cycle_percent: float | None
    mxu_percent: float | None
    hbm_bandwidth_percent: float | None
    flops_per_s: float | None
    """Over the captured time."""
    peak_flops_per_s: float | None
    """From the trace itself, else the chip table."""
    peak_hbm_bytes_per_s: float | None
    steps: TracedSteps | None
    collectives_s: float | None = None
    """In exchanges with other devices: the one that the others wait for has least of it."""


class MemoryPeak(NamedTuple):
    """The most memory in use on one device during the capture."""

    local_index: int
    peak_bytes: int
    capacity_bytes: int | None


class CaptureCost(NamedTuple):
    """What the capture cost the job, measured by its agent. None where it has none, or no steps."""

    steps_per_s_before: float | None = None
    steps_per_s_during: float | None = None
    steps_per_s_after: float | None = None
    paused_s: float | None = None
    """How much longer the longest step around the capture was than the median one before it."""


class Capture(NamedTuple):
    """How the trace was made."""

    how: str
    """`grpc`, `agent` or `file`."""
    target: str
    """The address, pid or path as the user gave it."""
    host: str | None = None
    pid: int | None = None
    command: str | None = None
    captured_at_s: float | None = None
    """When it began, Unix time, by the trace; None when it does not say."""
    asked_s: float | None = None
    """How long it was to be; None for a file."""
    took_s: float | None = None
    """From the request until the trace was here; None for a file."""
    analyzed_s: float | None = None
    """How long the analysis took."""
    trace_bytes: int | None = None
    cost: CaptureCost = CaptureCost()
    simulated: bool = False


class TraceProfile(NamedTuple):
    """All that one trace of one host shows.

    >>> p = tpusmi.profile(duration_ms=100, simulate="v5e-8", xprof=False, cost_s=0)
    >>> p.backend, len(p.cores), p.capture.how, p.capture.asked_s
    ('tpu', 8, 'agent', 0.1)
    >>> round(p.duty_cycle_percent + p.idle_percent)
    100
    """

    capture: Capture
    backend: str | None
    """`tpu`, `gpu` or `cpu`: the kind of planes with operations; None when there are none."""
    device_type: str | None
    """The trace's name for the device, such as `TPU v6 Lite`."""
    captured_s: float | None
    """The longest captured time of a core."""
    duty_cycle_percent: float | None
    """This and the figures below are of all cores together."""
    idle_percent: float | None
    mxu_percent: float | None
    """FLOPs done over FLOPs possible in the captured time."""
    hbm_bandwidth_percent: float | None
    flops_per_s: float | None
    """Mean of the cores."""
    peak_flops_per_s: float | None
    peak_hbm_bytes_per_s: float | None
    steps: TracedSteps | None
    """Each step as long as on its slowest core. None when the trace has no step markers."""
    input_bound_percent: float | None
    """Share of the step time that waits for input."""
    shares: TimeShares
    cores: tuple[CoreFigures, ...]
    operations: tuple[Operation, ...]
    """Most self time first."""
    programs: tuple[ProgramRuns, ...]
    """Busiest first."""
    memory: tuple[MemoryPeak, ...]
    sources: Mapping[str, str]
    """From which source each figure of this object is: its name to `trace`, `xprof` or `agent`."""
    notes: tuple[str, ...]
    """What is missing and why, in sentences."""
