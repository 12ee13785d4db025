"""One profile from two readings of a trace: ours and xprof's."""

from __future__ import annotations

from support.profiles import core, operation, step_times, unknown

from tpusmi.profiler.xprof import joined
from tpusmi.profiler.xprof_figures import FROM_RATE, NO_BANDWIDTH, NO_MXU, NO_STEPS
from tpusmi.trace.figures import TRACE, XPROF, MemoryPeak, ProgramRuns, TimeShares, TraceProfile
from tpusmi.trace.trace_notes import STEPS_AHEAD

SHARES = TimeShares(compute_percent=60.0, host_percent=10.0, idle_percent=30.0)
RUNS = ProgramRuns(name="jit_step", runs=3, mean_s=0.1, period_s=0.1, busy_percent=80.0)
OURS = operation("ours", 50.0, 1.0)
THEIRS = operation("theirs", 50.0, 1.0)


def own(**figures: object) -> TraceProfile:
    return unknown()._replace(notes=("ours",), sources=dict.fromkeys(figures, TRACE), **figures)


def xprofs(*notes: str, **figures: object) -> TraceProfile:
    return unknown()._replace(notes=notes, sources=dict.fromkeys(figures, XPROF), **figures)


def test_xprof_is_trusted_where_it_measures_and_we_elsewhere() -> None:
    ours = own(
        duty_cycle_percent=80.0,
        idle_percent=20.0,
        mxu_percent=30.0,
        operations=(OURS,),
        peak_flops_per_s=918e12,
        cores=(core(0, 0.8),),
        programs=(RUNS,),
        captured_s=1.0,
    )
    theirs = xprofs(
        backend="tpu",
        idle_percent=20.4,
        mxu_percent=30.4,
        operations=(THEIRS,),
        peak_flops_per_s=900e12,
        captured_s=0.9,
        memory=(MemoryPeak(0, 1, 2),),
    )
    profile = joined(ours, theirs)
    assert (profile.idle_percent, profile.mxu_percent) == (20.4, 30.4)
    assert profile.operations == (THEIRS,)
    assert profile.memory == theirs.memory
    assert profile.duty_cycle_percent == 80.0
    assert (profile.captured_s, profile.peak_flops_per_s) == (1.0, 918e12)
    assert (profile.cores, profile.programs) == (ours.cores, (RUNS,))
    assert profile.sources == {
        **dict.fromkeys(("idle_percent", "mxu_percent", "operations", "memory", "backend"), XPROF),
        **dict.fromkeys(
            ("duty_cycle_percent", "captured_s", "peak_flops_per_s", "cores", "programs"), TRACE
        ),
    }
    assert profile.notes == ("ours",)


def test_figures_that_differ_by_more_than_a_point_are_noted() -> None:
    steps, others = step_times(0.1, 0.1), step_times(0.12, 0.12)
    profile = joined(
        own(idle_percent=20.0, hbm_bandwidth_percent=40.0, steps=steps),
        xprofs(idle_percent=21.1, hbm_bandwidth_percent=40.9, steps=others),
    )
    assert profile.notes == (
        "ours",
        "Idle: 21.1 % by xprof, 20.0 % by tpusmi's own reading of the trace.",
        "Median step: 120.0 ms by xprof, 100.0 ms by tpusmi's own reading of the trace.",
    )
    assert (profile.steps, profile.sources["steps"]) == (steps, TRACE)


def test_only_the_trace_shows_which_steps_are_cut_off() -> None:
    """At 60 % of its length a step is whole to xprof, whose median is another one then."""
    ours, theirs = step_times(0.1, 0.1, cut_off=1), step_times(0.1, 0.1, 0.06)
    profile = joined(
        own(steps=ours, input_bound_percent=0.0), xprofs(steps=theirs, input_bound_percent=30.0)
    )
    assert (profile.steps, profile.input_bound_percent) == (ours, 0.0)
    assert profile.notes == ("ours",)
    assert joined(own(), xprofs(steps=theirs)).steps == theirs


def test_a_measured_mxu_utilization_of_ours_beats_a_rate_of_theirs() -> None:
    """Such as that of the hardware's counters: kernels declare their FLOPs themselves."""
    profile = joined(own(mxu_percent=15.0), xprofs(FROM_RATE, mxu_percent=60.0))
    assert (profile.mxu_percent, profile.sources["mxu_percent"]) == (15.0, TRACE)
    assert FROM_RATE not in profile.notes
    assert any(
        note.startswith("MXU utilization: 60.0 % by xprof, 15.0 %") for note in profile.notes
    )
    profile = joined(own(mxu_percent=60.1), xprofs(FROM_RATE, mxu_percent=60.0))
    assert (profile.mxu_percent, profile.notes) == (60.0, ("ours", FROM_RATE))
    profile = joined(own(), xprofs(FROM_RATE, mxu_percent=60.0))
    assert (profile.mxu_percent, profile.sources["mxu_percent"]) == (60.0, XPROF)
    assert FROM_RATE in profile.notes


def test_the_shares_are_all_of_one_reading() -> None:
    compiling = TimeShares(compute_percent=100.0, idle_percent=0.0, compile_percent=5.0)
    profile = joined(own(shares=compiling), xprofs(shares=SHARES, backend="tpu"))
    assert profile.shares == SHARES._replace(compile_percent=5.0)
    assert profile.sources["shares"] == XPROF
    only_idle = TimeShares(idle_percent=3.0)
    profile = joined(own(shares=SHARES), xprofs(shares=only_idle))
    assert (profile.shares, profile.sources["shares"]) == (SHARES, TRACE)
    profile = joined(own(), xprofs())
    assert profile.shares == TimeShares()
    assert "shares" not in profile.sources


def test_xprof_does_not_complain_about_what_we_have_or_say() -> None:
    missing = (NO_STEPS, f"a{NO_MXU}", f"b{NO_BANDWIDTH}")
    assert joined(own(), xprofs(*missing)).notes == ("ours", *missing[1:])
    ours = own(mxu_percent=1.0, hbm_bandwidth_percent=2.0)
    assert joined(ours, xprofs(*missing)).notes == ("ours",)


def test_on_a_gpu_our_idle_time_is_that_of_all_kernels() -> None:
    """xprof's counts copies as idle, which belong to no operation of a program."""
    figures = {"duty_cycle_percent": 37.0, "idle_percent": 63.0, "shares": SHARES}
    others = {"duty_cycle_percent": 36.0, "idle_percent": 64.0, "backend": "gpu"}
    profile = joined(own(**figures), xprofs(**others, shares=TimeShares(1.0, 2.0)))
    assert {name: getattr(profile, name) for name in figures} == figures
    assert {profile.sources[name] for name in figures} == {TRACE}


def test_operations_of_xprof_are_completed_from_the_trace() -> None:
    """xprof prints 0 FLOPs for a copy and for a kernel whose FLOPs it does not know."""
    named = {"program": "jit_f", "runs": 4}
    copy = operation("copy", 5.0, 1.0, **named)
    fast = operation("kernel", 5.0, 1.0, **named, flops_per_s=9e15, bound_by="Compute")
    other = operation("other", 5.0, 1.0, program="jit_f", runs=3)
    ours = (
        operation("copy", 5.0, 1.0, **named, flops_per_s=0.0, mxu_percent=0.0, source="a.py:1"),
        operation("kernel", 5.0, 1.0, **named, flops_per_s=9e15, mxu_percent=900.0),
        operation("other", 5.0, 1.0, **named, source="b.py:1"),
    )
    profile = joined(own(operations=ours), xprofs(operations=(copy, fast, other), backend="tpu"))
    assert profile.operations == (
        copy._replace(flops_per_s=0.0, mxu_percent=0.0, source="a.py:1"),
        fast,
        other,
    )


def test_copies_on_a_gpu_that_xprof_leaves_out_are_in_the_list() -> None:
    copies, kernel = operation("memcpy", 7.0, 1.0), operation("dot", 5.0, 1.0, program="jit_f")
    profile = joined(own(operations=(copies, kernel)), xprofs(operations=(kernel,), backend="gpu"))
    assert profile.operations == (copies, kernel)


def test_steps_of_a_host_that_runs_ahead_are_not_taken_from_xprof() -> None:
    theirs = xprofs(steps=step_times(1e-4, 2e-4, 1e-4), input_bound_percent=40.0)
    ahead = own(cores=(core(0, 0.9),))._replace(notes=(STEPS_AHEAD,))
    assert (joined(ahead, theirs).steps, joined(ahead, theirs).input_bound_percent) == (None, None)


def test_a_lone_step_that_we_do_not_call_whole_is_not_taken_from_xprof() -> None:
    lone = step_times(0.5)._replace(whole=1)
    theirs = xprofs(steps=lone, input_bound_percent=40.0)
    cut_off = joined(own(cores=(core(0, 0.8),)), theirs)
    assert (cut_off.steps, cut_off.input_bound_percent) == (None, None)
    assert joined(own(), theirs).steps == lone  # we have read nothing
    several = xprofs(steps=lone._replace(whole=2))
    assert joined(own(cores=(core(0, 0.8),)), several).steps == several.steps


def test_a_trace_without_any_device_is_not_one_of_a_cpu() -> None:
    """xprof says CPU then, also where the job has TPUs and did nothing meanwhile."""
    theirs = xprofs(backend="cpu", device_type="CPU")
    profile = joined(own(), theirs)
    assert (profile.backend, profile.device_type) == (None, None)
    assert not {"backend", "device_type"} & {*profile.sources}
    profile = joined(own(backend="cpu"), theirs)
    assert (profile.backend, profile.device_type) == ("cpu", "CPU")
