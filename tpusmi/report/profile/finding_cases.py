"""What can be wrong with a job, from which figure on, and what to do about it: one table. Pure."""

from __future__ import annotations

from typing import NamedTuple

BAD, WARN, NOTE = "bad", "warn", "dim"
"""Styles, from the worst: it costs much time, it costs some, it is about the capture itself."""


class FindingCase(NamedTuple):
    """One finding. Its texts may name the fields of `ProfileEvidence`, and `pid`."""

    code: str
    measure: str
    """The field of `ProfileEvidence` that it is judged by."""
    least: float
    """It holds from here on."""
    weight: float
    """Percent of the time that it may cost, for each unit of the measure: findings are sorted by
    it. Negative: the cost is unknown, and this counts instead.
    """
    title: str
    figure: str
    where: str
    """Operations or cores; may be empty."""
    advice: str
    level: str = ""
    """A fixed style; empty is by the weight."""
    unless: str = ""
    """Code of a finding that says the same better."""


CASES: tuple[FindingCase, ...] = (
    FindingCase(
        code="input_bound",
        measure="input_percent",
        least=10.0,
        weight=1.0,
        title="Waits for input",
        figure="{input_percent:.0f} % of the step time",
        where="",
        advice="load ahead: put the next batch on the device while the step runs, use more loader"
        " workers, cache decoded data, read larger files",
    ),
    FindingCase(
        code="idle_small",
        measure="idle_small_percent",
        least=10.0,
        weight=1.0,
        title="Idle between many small programs",
        figure="{idle_small_percent:.0f} % of the time",
        where="{small_per_s:.0f} programs per second, {small_mean} each",
        advice="put the whole step into one jax.jit, and several steps into jax.lax.scan;"
        " call no jnp function outside of jit",
    ),
    FindingCase(
        code="idle",
        measure="idle_percent",
        least=10.0,
        weight=1.0,
        title="Idle between programs",
        figure="{idle_percent:.0f} % of the time",
        where="",
        advice="the host is too slow, or has no work for it: do not read results in each step"
        " (float(loss), print), start the next step before waiting; see what the host does:"
        " `py-spy top --pid {pid}`",
    ),
    FindingCase(
        code="recompilation",
        measure="compile_percent",
        least=2.0,
        weight=1.0,
        title="Compiles while it runs",
        figure="{compile_percent:.0f} % of the time",
        where="",
        advice="keep shapes, dtypes and static arguments the same in all steps (pad the last"
        " batch); JAX_LOG_COMPILES=1 names the functions",
    ),
    FindingCase(
        code="host_transfers",
        measure="host_percent",
        least=10.0,
        weight=1.0,
        title="Waits for copies to or from the host's memory",
        figure="{host_percent:.0f} % of the time",
        where="{copies}",
        advice="keep these arrays on the device; if they are offloaded on purpose, offload fewer,"
        " or start the copies earlier, so that they run beside the computation",
    ),
    FindingCase(
        code="copies",
        measure="copies_percent",
        least=10.0,
        weight=1.0,
        title="Waits for copies",
        figure="{copies_percent:.0f} % of the time",
        where="{copies}",
        advice="if they are to the host's memory, offload less; else look for large arrays that"
        " change their layout",
    ),
    FindingCase(
        code="collectives",
        measure="collectives_percent",
        least=20.0,
        weight=1.0,
        title="Exchanges between devices",
        figure="{collectives_percent:.0f} % of the time",
        where="{collectives}",
        advice="shard less finely or along other axes, use larger batches per device, and see below"
        " whether one core makes the others wait; on the dashboard a bad link is a warning",
    ),
    FindingCase(
        code="slow_core",
        measure="slow_core_percent",
        least=5.0,
        weight=1.0,
        title="Core {slow_core} is slower than the others",
        figure="its steps take {slow_core_percent:.0f} % longer",
        where="",
        advice="all others wait for it: see in tpusmi whether it throttles or has a bad link; if it"
        " stays so with another job, report the host",
    ),
    FindingCase(
        code="busy_core",
        measure="busy_core_points",
        least=10.0,
        weight=1.0,
        title="Core {busy_core} has more to do than the others",
        figure="busy {busy_core_points:.0f} points more than the median",
        where="",
        advice="shard evenly: make sizes divisible by the number of devices, and balance experts"
        " and pipeline stages",
        unless="slow_core",
    ),
    FindingCase(
        code="unused_core",
        measure="unused_core_points",
        least=10.0,
        weight=1.0,
        title="Core {unused_core} has less to do than the others",
        figure="busy {unused_core_points:.0f} points less than the median",
        where="",
        advice="shard over all devices: the mesh should contain each of jax.devices()",
    ),
    FindingCase(
        code="slow_matmuls",
        measure="matmul_loss_percent",
        least=5.0,
        weight=1.0,
        title="Slow matrix multiplications",
        figure="{matmul_mxu_percent:.0f} % of the MXU's peak while they run",
        where="{matmuls}",
        advice="use bfloat16 instead of float32, larger batches, and sizes that are multiples of"
        " 128 (256 from v6e on): the rest is padding",
    ),
    FindingCase(
        code="low_mxu",
        measure="low_mxu_loss_percent",
        least=5.0,
        weight=1.0,
        title="Busy with other things than matrix multiplications",
        figure="MXU {mxu_percent:.1f} %, while computing takes {compute_percent:.0f} % of the time",
        where="",
        advice="see below what runs instead: fuse it, do it in bfloat16, use larger"
        " batches; sizes that are not multiples of 128 are padded",
    ),
    FindingCase(
        code="layout",
        measure="layout_percent",
        least=10.0,
        weight=1.0,
        title="Copies, transposes and slices",
        figure="{layout_percent:.0f} % of the time",
        where="{layout}",
        advice="keep one layout from operation to operation; write scans that carry and stack less,"
        " and avoid slices and concatenations within loops",
    ),
    FindingCase(
        code="hbm_bound",
        measure="hbm_bound_percent",
        least=30.0,
        weight=0.5,
        title="Limited by memory bandwidth",
        figure="operations with {hbm_bound_percent:.0f} % of the time",
        where="{hbm_bound}",
        advice="read and write less: bfloat16 activations, fused kernels (flash attention), larger"
        " batches for the same weights, less rematerialization",
    ),
    FindingCase(
        code="outfeed",
        measure="outfeed_percent",
        least=5.0,
        weight=1.0,
        title="Waits for results to leave the device",
        figure="{outfeed_percent:.0f} % of the time",
        where="",
        advice="return fewer values per step, and fetch them every hundred steps",
    ),
    FindingCase(
        code="callbacks",
        measure="callbacks_percent",
        least=2.0,
        weight=1.0,
        title="Calls the host from inside the program",
        figure="{callbacks_percent:.0f} % of the time",
        where="{callbacks}",
        advice="remove jax.debug.print, jax.debug.callback and io_callback from the step, or call"
        " them every hundred steps",
    ),
    FindingCase(
        code="one_operation",
        measure="top_percent",
        least=30.0,
        weight=0.3,
        title="One operation takes much of the time",
        figure="{top_percent:.0f} % of the time",
        where="{top}",
        advice="start there: whatever makes it faster makes the step faster",
    ),
    FindingCase(
        code="uneven_steps",
        measure="uneven_ratio",
        least=1.5,
        weight=8.0,
        title="Steps vary a lot",
        figure="p95 {p95}, {uneven_ratio:.1f} times p50, {p50}",
        where="",
        advice="look for what happens in some steps only: logging, checkpoints, input that stalls,"
        " recompilation, other load on the host",
    ),
    FindingCase(
        code="memory_full",
        measure="memory_percent",
        least=95.0,
        weight=-15.0,
        title="Memory was nearly full at its peak",
        figure="{memory_percent:.0f} %, {memory}",
        where="",
        advice="a little more ends in RESOURCE_EXHAUSTED: smaller batch, jax.checkpoint,"
        " donate_argnums, or shard over more devices",
        level=WARN,
    ),
    FindingCase(
        code="overclaimed",
        measure="overclaimed_percent",
        least=105.0,
        weight=-2.0,
        title="An operation claims more FLOP/s than the device can do",
        figure="{overclaimed_percent:.0f} % of the peak",
        where="{overclaimed}",
        advice="its cost estimate is wrong, and so are FLOP rates: give the Pallas kernel a right"
        " cost_estimate",
        level=NOTE,
    ),
    FindingCase(
        code="no_whole_step",
        measure="stepless_s",
        least=0.0,
        weight=-3.0,
        title="No whole step inside",
        figure="{stepless_s:.2g} s captured",
        where="",
        advice="capture for two steps or more: `--duration-ms`",
        level=NOTE,
    ),
    FindingCase(
        code="capture_slowed",
        measure="slowed_percent",
        least=10.0,
        weight=-1.0,
        title="The capture itself slowed the job down",
        figure="{slowed_percent:.0f} %: from {before} to {during} steps/s",
        where="",
        advice="step times may be too long: capture for a shorter time",
        level=NOTE,
    ),
    FindingCase(
        code="capture_paused",
        measure="paused_s",
        least=1.0,
        weight=-1.0,
        title="The capture paused the job",
        figure="for {paused_s:.1f} s",
        where="",
        advice="capture for a shorter time, and not every minute",
        level=NOTE,
        unless="capture_slowed",
    ),
)
"""The thresholds of all findings. A measure that is None makes none."""
BAD_PERCENT = 25.0
"""From this weight on a finding is bad."""
