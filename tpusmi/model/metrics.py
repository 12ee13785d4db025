"""Every measured quantity, declared once: its JSON key, CSV field, column and help derive from
here.
"""

from typing import NamedTuple

CHIP, DEVICE, PROCESS = "chip", "device", "process"

AGENT, LIBTPU, LIBTPU_SDK = "agent", "libtpu", "libtpu_sdk"
PROFILE = "profile"
"""A source: captures that this viewer made. Each is of one moment, and its values are soon old."""
ASKED_OF_LIBTPU = ("duty_cycle_percent", "idle_s", "hbm_bandwidth_utilization_percent")
"""Metrics that an agent asks libtpu for: its own numbers, which the agent only hands on."""
MEMORY_COLUMN = "MEMORY"
"""Title of the column that has memory in use and its limit together."""
PHASE = "phase"
"""No metric: the number in PHASES of what a process was doing. In History, and in no snapshot."""
TRACED_FLOPS, TRACED_HBM = "traced_flops_per_s", "traced_hbm_bytes_per_s"
TRACED_PEAK_FLOPS, TRACED_PEAK_HBM = "traced_peak_flops_per_s", "traced_peak_hbm_bytes_per_s"
TRACED = (TRACED_FLOPS, TRACED_HBM, TRACED_PEAK_FLOPS, TRACED_PEAK_HBM)
"""No metrics: what a capture shows of a device besides, for its roofline. In no JSON."""
NOMINAL = "nominal"
"""What the chip table says, where no source measured: shown, and said so."""


SOLE_HOLDER = "sole_holder"
"""In place of a source: what the chips of a process have in use, which it holds alone."""
VIEWER = "viewer"
"""In place of a source: the most that this viewer has seen since it began."""


class Metric(NamedTuple):
    """One measured quantity: a row of the table below.

    A dotted name (`step_time_s.p95`) is one member of an object in JSON.
    """

    name: str
    scope: str
    unit: str
    title: str
    help: str
    trust: tuple[str, ...]
    """Sources that can measure it, most trusted first; the first fresh one wins."""

    @property
    def is_integer(self) -> bool:
        """True when the value is counted, not computed."""
        return self.unit in ("bytes", "count")

    @property
    def column(self) -> str:
        """Title of the column that shows it, where a table has one."""
        return MEMORY_COLUMN if self.name in _IN_MEMORY_COLUMN else self.title

    @property
    def only_grows(self) -> bool:
        """True for what is counted or added up for as long as its process runs."""
        return self.name in _TOTALS


_TOTALS = ("allocations", "steps", "compilations", "compile_s")
_IN_MEMORY_COLUMN = ("hbm_used_bytes", "hbm_limit_bytes")
_MEMORY = (AGENT, LIBTPU, LIBTPU_SDK)
_BUSY = (LIBTPU, AGENT, LIBTPU_SDK)
_BUSY_OR_TRACED = (*_BUSY, PROFILE)
_RUNTIME = (LIBTPU, LIBTPU_SDK)
_TWO_CORES = "For a chip whose devices libtpu does not measure separately."


def _execution_time(part: str, what: str) -> Metric:
    text = f"{what} time that programs ran, as libtpu counts them since the job's start."
    return Metric(
        f"hlo_execution_time_us.{part}", DEVICE, "us", f"HLO {part}", help=text, trust=_RUNTIME
    )


def _of_chip(name: str, unit: str, title: str, help: str, trust: tuple[str, ...]) -> Metric:
    return Metric(name, CHIP, unit, title, help=help, trust=trust)


def _step_time(part: str, what: str, title: str = "") -> Metric:
    text = f"{what} time between the ends of steps, over the last minute (at least the last 20)."
    title = title or f"STEP {part}"
    return Metric(f"step_time_s.{part}", PROCESS, "s", title, help=text, trust=(AGENT,))


def _step_body(part: str, what: str) -> Metric:
    text = f"{what} time inside of `with tpusmi.step():`, which may only dispatch the step."
    title = f"BODY {part}"
    return Metric(f"step_body_s.{part}", PROCESS, "s", title, help=text, trust=(AGENT,))


# fmt: off
METRICS: tuple[Metric, ...] = (
    Metric("hbm_used_bytes", DEVICE, "bytes", "USED",
           "Device memory the allocator has handed out.", _MEMORY),
    Metric("hbm_limit_bytes", DEVICE, "bytes", "LIMIT",
           "Device memory the allocator may hand out.", _MEMORY),
    Metric("hbm_peak_bytes", DEVICE, "bytes", "PEAK",
           "Most device memory in use at once since the job started.", (AGENT, VIEWER)),
    Metric("hbm_largest_free_block_bytes", DEVICE, "bytes", "LARGEST FREE",
           "Largest single allocation that would still fit.", (AGENT,)),
    Metric("hbm_reserved_bytes", DEVICE, "bytes", "RESERVED",
           "Device memory the runtime set aside for itself.", (AGENT,)),
    Metric("allocations", DEVICE, "count", "ALLOCS",
           "Allocations made since the job started.", (AGENT,)),
    Metric("live_array_bytes", DEVICE, "bytes", "LIVE",
           "Bytes of live arrays, from the newest memory profile.", (AGENT,)),
    Metric("live_arrays", DEVICE, "count", "ARRAYS",
           "Live arrays, from the newest memory profile.", (AGENT,)),
    Metric("tensorcore_utilization_percent", DEVICE, "percent", "MXU",
           "Share of the peak matrix throughput.", (LIBTPU_SDK, PROFILE)),
    Metric("duty_cycle_percent", DEVICE, "percent", "DUTY",
           "Share of time the chip was busy.", _BUSY_OR_TRACED),
    Metric("hbm_bandwidth_utilization_percent", DEVICE, "percent", "BW",
           "Share of the peak HBM bandwidth.", _BUSY_OR_TRACED),
    Metric("idle_s", DEVICE, "s", "IDLE", "Time since the TensorCore last ran.", _BUSY),
    Metric("hlo_queue_size", DEVICE, "count", "QUEUE", "Programs waiting to run.", _RUNTIME),
    _execution_time("mean", "Mean"),
    _execution_time("p50", "Median"),
    _execution_time("p90", "90th percentile of the"),
    _execution_time("p95", "95th percentile of the"),
    _execution_time("p999", "99.9th percentile of the"),
    _of_chip("hbm_used_bytes", "bytes", "USED", f"HBM in use. {_TWO_CORES}", _MEMORY),
    _of_chip("hbm_limit_bytes", "bytes", "LIMIT", f"HBM that can be used. {_TWO_CORES}", _MEMORY),
    _of_chip("duty_cycle_percent", "percent", "DUTY", f"Share of time busy. {_TWO_CORES}", _BUSY),
    _of_chip("idle_s", "s", "IDLE", f"Time since it last ran. {_TWO_CORES}", _BUSY),
    _of_chip("tensorcore_utilization_percent", "percent", "MXU",
             f"Share of the peak matrix throughput. {_TWO_CORES}", (LIBTPU_SDK,)),
    _of_chip("hbm_bandwidth_utilization_percent", "percent", "BW",
             f"Share of the peak HBM bandwidth. {_TWO_CORES}", _BUSY),
    _of_chip("throttle_percent", "percent", "THROTTLE",
             "How far the chip slows itself down, in steps of 10.", (LIBTPU_SDK,)),
    Metric("steps", PROCESS, "count", "STEPS", "Calls of tpusmi.step() so far.", (AGENT,)),
    Metric("steps_per_s", PROCESS, "1/s", "STEPS/s",
           "Steps per second over the last minute (at least the last 20 steps).", (AGENT,)),
    _step_time("min", "Shortest"),
    _step_time("mean", "Mean"),
    _step_time("p50", "Median", "STEP"),
    _step_time("p95", "95th percentile of the", "P95"),
    _step_time("max", "Longest"),
    _step_body("mean", "Mean"),
    _step_body("p50", "Median"),
    _step_body("p95", "95th percentile of the"),
    Metric("since_last_step_s", PROCESS, "s", "LAST STEP",
           "Time since the last step ended.", (AGENT,)),
    Metric("compilations", PROCESS, "count", "COMP", "XLA programs compiled so far.", (AGENT,)),
    Metric("compile_s", PROCESS, "s", "COMPILE s", "Time spent compiling them.", (AGENT,)),
    Metric("recent_compilations", PROCESS, "count", "RECENT",
           "XLA programs compiled in the last minute, not counting the job's first minute.",
           (AGENT,)),
    Metric("hbm_used_bytes", PROCESS, "bytes", "USED",
           "Device memory in use, summed over the process's devices.", (AGENT, SOLE_HOLDER)),
    Metric("live_array_bytes", PROCESS, "bytes", "LIVE",
           "Bytes of live arrays on all devices, from the newest memory profile.", (AGENT,)),
    Metric("live_arrays", PROCESS, "count", "ARRAYS",
           "Live arrays on all devices, from the newest memory profile.", (AGENT,)),
    Metric("executables", PROCESS, "count", "EXECUTABLES",
           "Compiled programs held in memory, from the newest memory profile.", (AGENT,)),
    Metric("flops_per_s", PROCESS, "1/s", "FLOP/s",
           "Model FLOPs per second of the whole job, as the job counts them, over the last minute.",
           (AGENT,)),
    Metric("mfu_percent", PROCESS, "percent", "MFU",
           "Model FLOPs per second over the bf16 peak of the devices.", (AGENT,)),
    Metric("agent_cost_percent", PROCESS, "percent", "AGENT",
           "CPU time of the agent's thread over wall time, in the last minute.", (AGENT,)),
)
# fmt: on

CHIP_METRICS = tuple(m for m in METRICS if m.scope == CHIP)
DEVICE_METRICS = tuple(m for m in METRICS if m.scope == DEVICE)
PROCESS_METRICS = tuple(m for m in METRICS if m.scope == PROCESS)
_BY_NAME = {(m.scope, m.name): m for m in METRICS}
_TRUST = {(m.name, source): rank for m in METRICS for rank, source in enumerate(m.trust)}


def metric(scope: str, name: str) -> Metric:
    """The metric of that scope and name; KeyError when there is none."""
    return _BY_NAME[scope, name]


def trust_rank(name: str, source: str) -> int:
    """The place of a source among those of the metric, 0 for the most trusted."""
    return _TRUST.get((name, source), len(_TRUST))
