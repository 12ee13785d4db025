"""Two captures side by side, the lines of the old command, and a capture as one line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support import profiles
from support.goldens import same_as_golden
from support.profiles import PAGES, healthy, input_bound, operation, step_times, unknown

from tpusmi.profiler.finished_pages import read_pages
from tpusmi.report.profile import comparison, monitor_lines, one_line
from tpusmi.report.profile.operation_changes import changes
from tpusmi.report.profile.profile_schema import json_schema
from tpusmi.report.profile.styled import as_text
from tpusmi.trace.direct import read_trace
from tpusmi.trace.figures import Operation, TimeShares, TraceProfile
from tpusmi.trace.limits import TraceLimits
from tpusmi.trace.plain_objects import to_object

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests" / "goldens" / "profile"
SCHEMA = ROOT / "assets" / "tpusmi.profile.schema.json"


pytestmark = pytest.mark.usefixtures("utc")


def compared(old: TraceProfile, new: TraceProfile, width: int = 120) -> str:
    return as_text(comparison.lines(old, new, width), color=False, ascii_only=False)


def of(*operations: Operation, step_s: float | None = 0.1) -> TraceProfile:
    steps = None if step_s is None else step_times(step_s)
    return unknown()._replace(operations=operations, steps=steps)


def dot(name: str = "fusion.1", percent: float = 10.0, **more: Any) -> Operation:
    fields = {"program": "jit_f", "category": "fusion", "framework_name": "a/dot", **more}
    return operation(name, percent, 1.0, **fields)


@pytest.mark.golden
@pytest.mark.parametrize("width", [80, 120])
def test_a_comparison_is_its_golden(width: int) -> None:
    same_as_golden(compared(healthy(), input_bound(), width), GOLDENS / f"comparison.{width}.txt")


def test_what_became_of_the_steps_comes_first() -> None:
    result = compared(healthy(), input_bound()).partition("RESULT\n")[2]
    assert result.startswith(" Steps are 92 % longer: from 125.0 ms to 240.0 ms.\n")
    assert " Steps are 48 % shorter: " in compared(input_bound(), healthy())
    assert " Steps take as long as before: " in compared(healthy(), healthy())


def test_operations_are_compared_by_their_time_per_step() -> None:
    old, new = of(dot(percent=10.0), step_s=0.1), of(dot(percent=10.0), step_s=0.2)
    ((change,), unit) = changes(old, new)
    assert unit == "time per step"
    assert (change.old, change.new, change.state) == (pytest.approx(0.01), pytest.approx(0.02), "")


def test_without_steps_shares_of_the_time_are_compared_and_the_page_says_so() -> None:
    old, new = of(dot(percent=10.0), step_s=None), of(dot(percent=30.0))
    ((change,), unit) = changes(old, new)
    assert (change.by, unit) == (20.0, "share of the time")
    assert "the old one has no whole step" in compared(old, new)
    assert "10 %  30 %  +20.0 points  dot" in compared(old, new).replace("fusion.1", "dot")


def test_an_operation_that_xla_numbered_anew_is_the_same() -> None:
    ((change,), _) = changes(of(dot("fusion.1", 10.0)), of(dot("fusion.77", 20.0)))
    assert (change.name, change.state) == ("fusion.77", "")


def test_another_operation_with_the_old_name_is_not_the_same() -> None:
    new = dot("fusion.1", 20.0, framework_name="b/add")
    states = {c.state for c in changes(of(dot()), of(new))[0]}
    assert states == {"new", "gone"}


def test_one_operation_that_became_two_is_compared_with_their_sum() -> None:
    ((change,), _) = changes(of(dot("f.1", 10.0)), of(dot("f.2", 9.0), dot("f.3", 6.0)))
    assert change.name == "f.2 and 1 more"
    assert change.by == pytest.approx(0.005)


def test_without_a_path_in_jax_the_name_counts_without_its_number() -> None:
    old, new = (
        dot("copy-done.4", framework_name=None),
        dot("copy-done.9", 20.0, framework_name=None),
    )
    assert [c.state for c in changes(of(old), of(new))[0]] == [""]


def captured(steps: float, *operations: Operation) -> TraceProfile:
    """A capture of one core that is so many steps of 100 ms long."""
    return of(*operations)._replace(captured_s=0.1 * steps)


def run(runs: int, run_s: float, steps: float) -> Operation:
    share = 100 * runs * run_s / (0.1 * steps)
    return dot(percent=share, runs=runs, self_s=runs * run_s)


def test_an_operation_that_a_capture_has_once_more_at_its_end_has_not_grown() -> None:
    old, new = captured(2.6, run(3, 0.02, 2.6)), captured(2.3, run(2, 0.02, 2.3))
    assert changes(old, new) == ([], "time per step")
    slower = captured(2.3, run(2, 0.04, 2.3))
    ((change,), _) = changes(old, slower)
    assert change.new == pytest.approx(2 * change.old)


def test_an_operation_that_runs_twice_as_often_in_each_step_has_grown() -> None:
    old, new = captured(50.5, run(51, 0.02, 50.5)), captured(50.5, run(101, 0.02, 50.5))
    ((change,), _) = changes(old, new)
    assert change.new / change.old == pytest.approx(101 / 51)


def test_a_capture_of_endless_steps_is_compared_all_the_same() -> None:
    """A file may say so."""
    endless = captured(1, dot())._replace(captured_s=1e300, steps=step_times(5e-324))
    assert changes(endless, endless)[0] == []


def test_a_comparison_of_few_steps_says_that_they_vary() -> None:
    few = healthy()._replace(steps=step_times(0.12, 0.13))
    assert "So few whole steps (7 and 2) vary by chance." in compared(healthy(), few)
    assert "by chance" not in compared(healthy(), healthy())


def test_changes_that_do_not_matter_are_left_out() -> None:
    assert changes(of(dot(percent=10.0)), of(dot(percent=10.05)))[0] == []
    assert changes(of(), of(dot())) == ([], "")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (healthy(), profiles.v5p_training(), "different devices: TPU v6 Lite and TPU v5"),
        (healthy(), profiles.v5p_training(), "different numbers of cores: 4 and 8"),
        (healthy(), profiles.v6e_inference(), "the new one has no whole step"),
        (unknown(), unknown(), "neither of them has a whole step"),
    ],
)
def test_what_cannot_be_compared_is_said(
    old: TraceProfile, new: TraceProfile, sentence: str
) -> None:
    assert sentence in compared(old, new)


def test_a_stall_that_leaves_no_whole_step_is_a_wait_for_input_here_as_well() -> None:
    """The page of one capture and the line of a loop say so."""
    stalled = unknown()._replace(shares=TimeShares(infeed_percent=77.0))
    assert re.search(r"Input-bound +77 % +1\.1 %", compared(stalled, healthy()))
    assert "Input-bound" not in compared(unknown(), unknown())


def test_an_unknown_number_of_cores_is_not_0() -> None:
    """The finished pages of xprof name no cores."""
    without = healthy()._replace(cores=())
    assert "cores: 0" not in compared(without, healthy())
    assert "numbers of cores" not in compared(healthy(), without)


def test_a_change_below_a_percent_is_not_0_percent() -> None:
    result = compared(of(step_s=0.1), of(step_s=0.1002))
    assert "+200.0 µs  +0.2 %" in result


def test_figures_that_differ_in_no_digit_are_the_same() -> None:
    result = compared(
        of(step_s=0.1)._replace(mxu_percent=52.3), of(step_s=0.1 + 1e-9)._replace(mxu_percent=52.2)
    )
    lines = [line.split() for line in result.splitlines()]
    assert ["Step", "p50", "100.0", "ms", "100.0", "ms", "same"] in lines
    assert ["MXU", "52", "%", "52", "%", "same"] in lines


def test_a_figure_that_one_of_them_lacks_has_no_change() -> None:
    rows = compared(healthy()._replace(mxu_percent=None), healthy()).splitlines()
    assert next(row.split() for row in rows if row.startswith(" MXU")) == [
        "MXU",
        "–",
        "49",
        "%",
        "–",
    ]


def test_a_figure_that_neither_has_is_left_out() -> None:
    assert " MXU" not in compared(profiles.cpu_laptop(), profiles.cpu_laptop())


def test_the_lines_of_the_old_command_are_in_its_words() -> None:
    assert monitor_lines.lines(profiles.v5p_training(), 2) == [
        "Timestamp: –",
        "  TPU type: TPU v5",
        "  Number of TPU cores: 8",
        "  TPU idle time (lower is better): 0.250%",
        "  Utilization of TPU Matrix Units (higher is better): 15.7%",
        "  Step time: 120ms (avg), 120ms (min), 121ms (max)",
        "  Infeed percentage: 0.000% (avg), – (min), – (max)",
    ]
    assert monitor_lines.lines(healthy(), 1) == [
        "Timestamp: 06:13:20",
        "  TPU type: TPU v6 Lite",
        "  Utilization of TPU Matrix Units (higher is better): 48.8%",
    ]


def test_the_steps_that_wait_least_and_most_for_input_are_those_that_xprof_prints() -> None:
    own = read_pages(str(PAGES / "v2-8_resnet"))
    assert monitor_lines.lines(own, 2)[-1] == (
        "  Infeed percentage: 0.006% (avg), 0.000% (min), 0.008% (max)"
    )
    idle = profiles.v5p_training()._replace(idle_percent=57.0, input_bound_percent=None)
    assert monitor_lines.lines(idle, 2)[-1] == "  Infeed percentage: – (avg), – (min), – (max)"
    unsure = own._replace(input_bound_percent=None, shares=TimeShares())
    assert monitor_lines.lines(unsure, 2)[-1] == "  Infeed percentage: – (avg), – (min), – (max)"
    without = unsure._replace(shares=TimeShares(infeed_percent=0.0), idle_percent=None)
    assert monitor_lines.lines(without, 2)[-1] == "  Infeed percentage: – (avg), – (min), – (max)"


def test_a_program_that_parsed_the_old_lines_reads_these() -> None:
    """The pattern is one that scripts use."""
    text = "\n".join(monitor_lines.lines(healthy(), 2))
    pattern = r"Utilization of TPU Matrix Units .*?:\s+([\d\.]+)%"
    assert re.search(pattern, text)[1] == "48.8"  # type: ignore[index]
    assert re.search(pattern, "\n".join(monitor_lines.lines(unknown(), 2))) is None


def test_an_unknown_value_of_the_old_lines_is_a_dash_and_never_0() -> None:
    text = "\n".join(monitor_lines.lines(unknown(), 2))
    assert text.count("–") == 11
    assert not re.search(r"\d", text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000"),
        (0.0914, "0.091"),
        (1.594, "1.59"),
        (36.94, "36.9"),
        (99.96, "100"),
        (341.6, "342"),
    ],
)
def test_numbers_have_the_digits_of_the_old_command(value: float, text: str) -> None:
    p = unknown()._replace(mxu_percent=value)
    assert monitor_lines.lines(p, 1)[-1].endswith(f": {text}%")


@pytest.mark.parametrize("with_host", [False, True])
def test_the_lines_of_repeated_captures_stand_in_columns(with_host: bool) -> None:
    header = one_line.header(with_host)
    end = header.index("TOP OPERATION")
    for make in (healthy, input_bound, profiles.v6e_inference, profiles.cpu_laptop, unknown):
        line = one_line.line(make(), with_host)
        for title in ("TIME", "IDLE", "MXU", "HBM BW", "STEP p50", "MIN", "MAX", "INPUT"):
            stop = header.index(title) + len(title)
            assert line[stop - 1] != " "
            assert line[stop] == " "
        assert line[end - 1] == " " != line[end]


def test_a_line_of_nothing_known_has_dashes_and_no_zero() -> None:
    assert one_line.line(unknown()).split() == ["–"] * 9


def test_the_schema_in_assets_is_the_one_that_the_types_make() -> None:
    module = "tpusmi.report.profile.profile_schema"
    made = subprocess.run(
        [sys.executable, "-m", module], capture_output=True, text=True, check=True
    )
    assert made.stdout == SCHEMA.read_text(), f"python -m {module} > assets/{SCHEMA.name}"


PRINTED = jsonschema.Draft202012Validator(json_schema())


def printed(value: dict[str, Any]) -> bool:
    """Whether the schema has the object in it, after its way through JSON."""
    return bool(PRINTED.is_valid(json.loads(json.dumps(value, allow_nan=False))))


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("name", profiles.ALL)
def test_the_json_of_a_profile_obeys_the_schema(name: str) -> None:
    plain = to_object(profiles.ALL[name]())
    assert printed(plain)
    assert printed({**plain, "of_a_later_version": 1})
    for wrong in ({"mxu_percent": "0"}, {"cores": None}, {"schema": 2}):
        assert not printed({**plain, **wrong})


def test_the_json_of_several_hosts_and_of_a_comparison_obeys_the_schema() -> None:
    one = to_object(healthy())
    error = {"trouble": "busy", "message": "It is busy."}
    failure = {"schema": 1, "target": "a:9012", "error": error}
    hosts = {"schema": 1, "hosts": [one, failure]}
    for value in (failure, hosts, {"schema": 1, "old": one, "new": hosts}):
        assert printed(value)
    assert not printed({"schema": 1, "hosts": [{"schema": 1}]})
    assert not printed({**failure, "error": {**error, "trouble": "of a new kind"}})


def test_the_json_of_a_real_trace_obeys_the_schema() -> None:
    path = ROOT / "tests" / "data" / "xplane" / "v6e-4_inference" / "tpu_inference.xplane.pb"
    own = read_trace(str(path), TraceLimits(until_s=time.monotonic() + 60))
    assert printed(to_object(own))
    assert printed(to_object(read_pages(str(PAGES / "v5p_training"))))


def test_the_schema_has_the_docs_of_the_fields() -> None:
    properties = json_schema()["$defs"]["profile"]["properties"]
    assert properties["mxu_percent"]["type"] == ["number", "null"]
    assert properties["steps"]["type"] == ["object", "null"]
    own = properties["cores"]["items"]["properties"]["peak_flops_per_s"]
    assert own["description"] == "From the trace itself, else the chip table."
    assert properties["sources"]["additionalProperties"] == {"type": "string"}
