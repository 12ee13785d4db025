"""What stands out in a profile: from which figure on, in which order, and never from an unknown."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from support import profiles
from support.profiles import core, healthy, operation, step_times, unknown

from tpusmi.report.profile.finding_case import BAD, NOTE, WARN, FindingCase
from tpusmi.report.profile.finding_cases import CASES
from tpusmi.report.profile.finding_evidence import ProfileEvidence, evidence
from tpusmi.report.profile.findings import can_judge, findings
from tpusmi.trace.direct import read_trace
from tpusmi.trace.figures import (
    Capture,
    CaptureCost,
    MemoryPeak,
    ProgramRuns,
    TimeShares,
    TraceProfile,
)
from tpusmi.trace.limits import TraceLimits


def codes(p: TraceProfile) -> list[str]:
    return [f.code for f in findings(p)]


def operations(*shares: tuple[str, float, str], **more: Any) -> TraceProfile:
    """A profile of operations: name, percent of the time and category of each."""
    rows = [operation(n, percent, 1.0, category=c, **more) for n, percent, c in shares]
    return unknown()._replace(operations=tuple(rows))


def ran(name: str, runs: int, mean_s: float, period_s: float | None = None) -> ProgramRuns:
    return ProgramRuns(name=name, runs=runs, mean_s=mean_s, period_s=period_s, busy_percent=50.0)


HOLD = {
    "input_bound": unknown()._replace(input_bound_percent=10.0),
    "idle": unknown()._replace(idle_percent=10.0),
    "nothing_ran": unknown()._replace(idle_percent=100.0),
    "hang": unknown()._replace(shares=TimeShares(collectives_percent=96.0)),
    "quiet": unknown()._replace(
        captured_s=0.7, capture=Capture(how="agent", target="1", asked_s=1.0)
    ),
    "idle_pauses": unknown()._replace(
        idle_percent=10.0, programs=(ran("jit_f", 100, 0.784, period_s=0.784),)
    ),
    "idle_small": unknown()._replace(
        idle_percent=40.0, captured_s=1.0, programs=(ran("jit_add", 900, 4e-5),)
    ),
    "recompilation": unknown()._replace(shares=TimeShares(compile_percent=2.0)),
    "host_transfers": unknown()._replace(shares=TimeShares(host_percent=10.0)),
    "copies": operations(("copy-done.1", 12.0, "copy-done")),
    "collectives": unknown()._replace(shares=TimeShares(collectives_percent=20.0)),
    "slow_core": unknown()._replace(
        cores=tuple(core(n, 0.9, steps=step_times(0.1 + 0.02 * (n == 2))) for n in range(4))
    ),
    "awaited_core": unknown()._replace(
        cores=tuple(core(n, 0.9, collectives_s=0.3 - 0.09 * (n == 5)) for n in range(8))
    ),
    "busy_core": unknown()._replace(cores=(core(0, 0.5), core(1, 0.5), core(2, 0.7))),
    "unused_core": unknown()._replace(cores=(core(0, 0.9), core(1, 0.9), core(2, 0.0))),
    "slow_matmuls": operations(
        ("dot.1", 29.0, "convolution fusion"), ("dot.2", 29.0, "dot"), mxu_percent=12.0
    )._replace(idle_percent=5.0, mxu_percent=8.0),
    "low_mxu": operations(
        ("fusion.1", 20.0, "loop fusion"), ("dot.1", 9.0, "convolution"), mxu_percent=80.0
    )._replace(idle_percent=5.0, mxu_percent=8.0),
    "layout": operations(("transpose.1", 6.0, "transpose"), ("copy.1", 5.0, "copy fusion")),
    "hbm_bound": operations(("fusion.1", 29.0, "loop fusion"), bound_by="HBM"),
    "outfeed": unknown()._replace(shares=TimeShares(outfeed_percent=5.0)),
    "callbacks": operations(("custom-call.3", 3.0, "custom-call"), framework_name="a/io_callback"),
    "one_operation": operations(("dot.4", 30.0, "convolution")),
    "uneven_steps": unknown()._replace(steps=step_times(*[0.1] * 5, 0.2)),
    "memory_full": unknown()._replace(memory=(MemoryPeak(3, 96, 100),)),
    "overclaimed": operations(("call.1", 3.0, "custom-call"), mxu_percent=400.0),
    "no_whole_step": unknown()._replace(captured_s=0.1, programs=(ran("jit_f", 1, 0.09),)),
    "capture_slowed": unknown()._replace(
        capture=Capture(
            how="agent",
            target="1",
            cost=CaptureCost(steps_per_s_before=10.0, steps_per_s_during=8.9),
        )
    ),
    "capture_paused": unknown()._replace(
        capture=Capture(how="agent", target="1", cost=CaptureCost(paused_s=1.5))
    ),
}  # fmt: skip
"""For each finding a profile that has this one alone."""
HOLD["hbm_bound"] = HOLD["hbm_bound"]._replace(
    operations=tuple(
        o._replace(self_percent=o.self_percent * 0.6, name=f"{o.name}{n}")
        for n in range(2)
        for o in HOLD["hbm_bound"].operations
    )
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_each_finding_is_made_from_its_figure_alone(case: FindingCase) -> None:
    made = findings(HOLD[case.code])
    assert [f.code for f in made] == [case.code]
    assert all((made[0].title, made[0].figure, made[0].advice))
    assert "{" not in f"{made[0].title}{made[0].figure}{made[0].where}{made[0].advice}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_just_below_its_threshold_there_is_no_finding(case: FindingCase) -> None:
    from tpusmi.report.profile.findings import _finding

    seen = evidence(HOLD[case.code])
    assert _finding(case, seen, "1") is not None
    assert _finding(case, seen._replace(**{case.measure: case.least - 0.01}), "1") is None
    assert _finding(case, seen._replace(**{case.measure: None}), "1") is None


def test_every_measure_of_the_table_is_a_figure_that_exists() -> None:
    assert {case.measure for case in CASES} <= {*ProfileEvidence._fields}
    assert {case.unless for case in CASES} <= {case.code for case in CASES} | {""}


def test_nothing_is_found_in_a_profile_of_which_nothing_is_known() -> None:
    assert findings(unknown()) == ()
    assert not can_judge(unknown())


def test_a_trace_without_operations_does_not_make_a_healthy_job() -> None:
    cost = CaptureCost(steps_per_s_before=3.0, steps_per_s_during=3.1, paused_s=0.0)
    p = unknown()._replace(capture=Capture(how="agent", target="1", asked_s=0.1, cost=cost))
    assert findings(p) == ()
    assert not can_judge(p)


def test_nothing_stands_out_in_a_healthy_job() -> None:
    assert findings(healthy()) == ()
    assert can_judge(healthy())


def test_the_finding_that_costs_most_time_comes_first() -> None:
    made = findings(profiles.input_bound())
    assert made[0].code == "input_bound"
    assert made[0].style == BAD
    assert [f.weight_percent for f in made] == sorted(
        (f.weight_percent for f in made), reverse=True
    )
    assert made[-1].style == NOTE


def test_time_that_waits_for_input_does_not_count_as_idle_again() -> None:
    p = unknown()._replace(idle_percent=57.0, input_bound_percent=54.0)
    assert codes(p) == ["input_bound"]
    assert codes(p._replace(input_bound_percent=None)) == ["idle"]


def test_compiling_is_the_reason_that_the_cores_are_idle() -> None:
    """The host starts nothing while it compiles; the reason is first, and not also its effect."""
    p = unknown()._replace(idle_percent=87.0, shares=TimeShares(compile_percent=88.0))
    assert codes(p) == ["recompilation"]
    rest = findings(p._replace(shares=TimeShares(compile_percent=60.0)))
    assert [f.code for f in rest] == ["recompilation", "idle"]
    assert (rest[1].figure, rest[1].where) == ("27 % of the time", "the rest of 87 % idle time")
    little = findings(p._replace(shares=TimeShares(compile_percent=1.0)))
    assert [(f.figure, f.where) for f in little] == [("87 % of the time", "")]


def test_an_mxu_measured_over_a_capture_that_is_mostly_empty_is_not_low() -> None:
    """The time of computing is of the part with operations, the measured MXU may be of all."""
    capture = Capture(how="agent", target="1", asked_s=4.0)
    busy = HOLD["low_mxu"]._replace(capture=capture, captured_s=4.0)
    assert "low_mxu" in codes(busy)
    assert "low_mxu" not in codes(busy._replace(captured_s=0.8))


def test_the_length_of_a_capture_without_a_whole_step_is_readable() -> None:
    made = findings(HOLD["no_whole_step"]._replace(captured_s=0.00534))
    assert made[0].figure == "5.34 ms captured"


def test_a_capture_with_little_in_it_says_so_first() -> None:
    """One short step in a long pause: its figures are those of a busy device."""
    capture = Capture(how="agent", target="1", asked_s=0.1)
    p = unknown()._replace(captured_s=0.0134, idle_percent=11.0, capture=capture)
    made = findings(p)
    assert [f.code for f in made] == ["quiet", "idle"]
    assert (made[0].figure, made[0].style) == ("87 % of the time", BAD)
    assert "13.4 ms" in made[0].where
    file = p._replace(capture=capture._replace(asked_s=None))
    assert codes(file) == ["idle"]


def test_the_devices_of_a_cpu_are_not_compared() -> None:
    """They are threads that take turns on the cores of the host."""
    p = HOLD["unused_core"]
    assert codes(p._replace(backend="tpu")) == ["unused_core"]
    assert codes(p._replace(backend="cpu")) == []


def test_the_gaps_between_operations_of_a_cpu_are_not_between_programs() -> None:
    """A loop that never waits has 17 to 21 % of them."""
    p = unknown()._replace(idle_percent=21.0)
    assert codes(p._replace(backend="cpu")) == []
    assert codes(p._replace(backend="tpu")) == ["idle"]
    assert codes(p._replace(backend="cpu", idle_percent=57.0)) == ["idle"]


def test_a_job_that_hangs_is_not_advised_to_shard() -> None:
    p = unknown()._replace(shares=TimeShares(collectives_percent=100.0))
    assert codes(p) == ["hang"]
    assert codes(p._replace(steps=step_times(0.1, 0.1))) == ["collectives"]
    assert codes(p._replace(programs=(ran("jit_f", 9, 0.1),))) == ["collectives"]
    assert codes(p._replace(shares=TimeShares(collectives_percent=60.0))) == ["collectives"]


def test_a_job_that_ran_nothing_is_not_late_between_programs() -> None:
    assert codes(unknown()._replace(idle_percent=100.0)) == ["nothing_ran"]
    assert codes(unknown()._replace(idle_percent=99.0)) == ["idle"]


def test_a_program_that_was_compiled_again_is_named() -> None:
    versions = (*[ran("jit_step", 1, 0.1)] * 3, ran("jit_loss", 3, 0.1))
    p = unknown()._replace(shares=TimeShares(compile_percent=70.0), programs=versions)
    assert [(f.code, f.where) for f in findings(p)] == [
        ("recompilation", "3 versions of jit_step ran")
    ]
    once = p._replace(programs=(ran("jit_step", 9, 0.1), ran("jit_loss", 9, 0.1)))
    assert findings(once)[0].where == ""


def test_a_step_that_is_compiled_each_time_is_a_whole_step() -> None:
    p = unknown()._replace(captured_s=1.0, programs=(ran("jit_f", 1, 0.3),) * 3)
    assert codes(p) == []
    assert codes(p._replace(programs=p.programs[:2])) == ["no_whole_step"]


def test_idle_time_after_each_run_is_not_in_a_few_pauses() -> None:
    p = unknown()._replace(idle_percent=40.0)
    regular = ran("jit_f", 100, 0.06, period_s=0.1)
    assert codes(p._replace(programs=(regular,))) == ["idle"]
    back_to_back = regular._replace(period_s=0.0601)
    made = findings(p._replace(programs=(back_to_back,)))
    assert [f.code for f in made] == ["idle_pauses"]
    assert "jit_f" in made[0].where
    few = back_to_back._replace(runs=4)
    assert codes(p._replace(programs=(few,))) == ["idle"]
    aside = back_to_back._replace(busy_percent=9.0)
    assert codes(p._replace(programs=(aside,))) == ["idle"]


def test_the_advice_for_idle_time_names_input_first() -> None:
    """No trace names the waits of a plain Python loop for its next batch."""
    advice = findings(unknown()._replace(idle_percent=60.0))[0].advice
    assert 0 < advice.index("input") < advice.index("float(loss)") < advice.index("py-spy")


def test_the_v6e_trace_waits_for_the_memory_of_its_host() -> None:
    first = findings(profiles.v6e_inference())[0]
    assert (first.code, first.figure) == ("host_transfers", "84 % of the time")
    assert first.where == "copy-done.4, copy-done.2, copy-done and 1 more"


def test_the_v5p_run_does_other_things_than_matrix_multiplications() -> None:
    assert codes(profiles.v5p_training()) == ["low_mxu", "collectives", "layout", "overclaimed"]


def test_the_slow_core_is_named_by_its_global_id() -> None:
    p = profiles.many_cores()
    cores = [c._replace(id=(c.id or 0) + 1000) for c in p.cores]
    assert findings(p._replace(cores=tuple(cores)))[0].title == (
        "Core 1128 is slower than the others"
    )


def test_of_two_cores_one_has_less_to_do_and_none_more() -> None:
    p = unknown()._replace(cores=(core(0, 0.9), core(1, 0.4)))
    assert [f.title for f in findings(p)] == ["Core 1 has less to do than the others"]


def test_the_core_that_is_least_in_exchanges_is_the_one_that_the_others_wait_for() -> None:
    assert findings(HOLD["awaited_core"])[0].title == "The others wait for core 5"
    cores = HOLD["awaited_core"].cores
    partly = (cores[0]._replace(collectives_s=None), *cores[1:])
    assert findings(unknown()._replace(cores=partly)) == ()


def test_the_time_of_the_cores_in_exchanges_is_the_share_of_all() -> None:
    path = Path(__file__).parents[1] / "data/xplane/v6e-4_inference/tpu_inference.xplane.pb"
    p = read_trace(str(path), TraceLimits(until_s=time.monotonic() + 60))
    in_all = sum(c.collectives_s or 0.0 for c in p.cores) / sum(c.captured_s for c in p.cores)
    assert 0 < 100 * in_all == pytest.approx(p.shares.collectives_percent, rel=0.01)


def test_a_single_core_is_not_compared_with_itself() -> None:
    p = unknown()._replace(cores=(core(0, 0.1, steps=step_times(0.1)),))
    assert findings(p) == ()


def test_few_steps_are_not_said_to_vary() -> None:
    assert codes(unknown()._replace(steps=step_times(0.1, 0.1, 0.4))) == []


def test_a_capture_within_a_step_says_to_capture_longer() -> None:
    steps = step_times(0.1)._replace(whole=0, cut_off=2)
    p = unknown()._replace(steps=steps, captured_s=0.5)
    assert codes(p) == ["no_whole_step"]
    assert "--duration-ms" in findings(p)[0].advice


def test_an_operation_that_waits_is_not_the_one_to_make_faster() -> None:
    assert "one_operation" not in codes(operations(("all-reduce.1", 60.0, "all-reduce")))


def test_the_advice_names_the_process_where_it_is_known() -> None:
    p = unknown()._replace(idle_percent=40.0)
    assert "--pid PID" in findings(p)[0].advice
    own = p._replace(capture=p.capture._replace(pid=4711))
    assert "--pid 4711" in findings(own)[0].advice


def test_names_of_the_trace_are_safe_to_print_in_a_finding() -> None:
    evil = operations((profiles.HOSTILE, 50.0, "loop fusion"), source="a\x1b[2J/b.py:3")
    for finding in findings(evil):
        assert finding.where.isprintable()
        assert len(finding.where) < 100


def test_braces_in_a_name_are_not_filled_in() -> None:
    assert findings(operations(("{pid}{0}", 50.0, "loop fusion")))[0].where == "{pid}{0}"


@pytest.mark.parametrize(
    ("percent", "style"), [(10.0, WARN), (24.9, WARN), (25.0, BAD), (90.0, BAD)]
)
def test_a_quarter_of_the_time_is_bad(percent: float, style: str) -> None:
    assert findings(unknown()._replace(idle_percent=percent))[0].style == style
