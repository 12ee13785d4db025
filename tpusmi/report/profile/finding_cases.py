"""What can be wrong with a job, from which figure on, and what to do about it: one table. Pure."""

from __future__ import annotations

from tpusmi.report.profile.capture_cases import CAPTURE_CASES
from tpusmi.report.profile.finding_case import WARN, FindingCase
from tpusmi.report.profile.idle_evidence import COMPILE_LEAST_PERCENT

CASES: tuple[FindingCase, ...] = (
    FindingCase(
        code="input_bound",
        measure="input_percent",
        least=10.0,
        weight=1.0,
        title="Waits for input",
        figure="{input_percent:.0f} % of the {input_of}",
        where="",
        advice="load ahead: put the next batch on the device while the step runs, use more loader"
        " workers, cache decoded data, read larger files",
    ),
    FindingCase(
        code="nothing_ran",
        measure="nothing_percent",
        least=99.9,
        weight=1.0,
        title="Nothing ran at all",
        figure="idle for {nothing_percent:.0f} % of the time",
        where="",
        advice="the job loads, compiles, waits or hangs: see what it does with"
        " `py-spy dump --pid {pid}`; a program that has not ended may be missing in the trace",
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
        where="{idle_of_all}",
        advice="the host does not start the next program in time: often it loads input (put the"
        " next batch on the device while the step runs), or waits for results (print float(loss)"
        " every hundred steps, not in each); see what it does: `py-spy top --pid {pid}`",
    ),
    FindingCase(
        code="idle_pauses",
        measure="idle_pauses_percent",
        least=10.0,
        weight=1.0,
        title="Idle in a few long pauses",
        figure="{idle_pauses_percent:.0f} % of the time",
        where="the runs of {main_program} follow one another without a gap",
        advice="the steps are not the reason: look for what the host does now and then, such as"
        " start-up, checkpoints, evaluation, compilation, or input that stalls",
    ),
    FindingCase(
        code="recompilation",
        measure="compile_percent",
        least=COMPILE_LEAST_PERCENT,
        weight=1.0,
        title="Compiles while it runs",
        figure="{compile_percent:.0f} % of the time",
        where="{recompiled}",
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
        code="hang",
        measure="hang_percent",
        least=95.0,
        weight=1.0,
        title="All cores wait in an exchange and compute nothing",
        figure="{hang_percent:.0f} % of the time",
        where="{collectives}",
        advice="the job hangs, or waits for another host: see on each host whether its process"
        " lives and what it does: `py-spy dump --pid {pid}`",
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
        unless="hang",
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
        code="awaited_core",
        measure="awaited_core_points",
        least=8.0,
        weight=1.0,
        title="The others wait for core {awaited_core}",
        figure="it is {awaited_core_points:.0f} points less in exchanges than the median core",
        where="",
        advice="it comes last to each exchange: it has more to do, is slow, or has a slow link; see"
        " in tpusmi whether it throttles, and shard evenly",
        unless="slow_core",
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
        unless="quiet",  # the MXU may have been measured over all of the capture
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
    *CAPTURE_CASES,
)
"""The thresholds of all findings. A measure that is None makes none."""
