"""A profile survives the way into JSON and back, and a hostile file of one ends in a sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tpusmi.trace.figures import (
    Capture,
    CaptureCost,
    CoreFigures,
    MemoryPeak,
    Operation,
    ProgramRuns,
    TimeShares,
    TracedSteps,
    TraceProfile,
)
from tpusmi.trace.plain_objects import from_object, to_object

STEPS = TracedSteps(whole=4, cut_off=1, min_s=0.1, mean_s=0.2, p50_s=0.2, p95_s=0.3, max_s=0.3)
PROFILE = TraceProfile(
    capture=Capture(how="grpc", target="localhost:9012", cost=CaptureCost(steps_per_s_before=2.0)),
    backend="tpu",
    device_type="TPU v6 Lite",
    captured_s=1.0,
    duty_cycle_percent=86.5,
    idle_percent=13.5,
    mxu_percent=None,
    hbm_bandwidth_percent=4.3,
    flops_per_s=1e12,
    peak_flops_per_s=918e12,
    peak_hbm_bytes_per_s=1638e9,
    steps=STEPS,
    input_bound_percent=None,
    shares=TimeShares(compute_percent=80.0, idle_percent=20.0),
    cores=(
        CoreFigures(
            plane="/device:TPU:0",
            local_index=0,
            id=4,
            captured_s=1.0,
            busy_s=0.9,
            idle_s=0.1,
            duty_cycle_percent=90.0,
            mxu_percent=None,
            hbm_bandwidth_percent=None,
            flops_per_s=None,
            peak_flops_per_s=None,
            peak_hbm_bytes_per_s=None,
            steps=STEPS,
        ),
    ),
    operations=(
        Operation(
            name="fusion.1",
            category="loop fusion",
            program="jit_f",
            framework_name=None,
            source="train.py:4",
            runs=3,
            self_s=0.1,
            self_percent=10.0,
            flops_per_s=None,
            mxu_percent=None,
            hbm_bytes_per_s=None,
            hbm_bandwidth_percent=None,
            bound_by="HBM",
        ),
    ),
    programs=(ProgramRuns(name="jit_f", runs=3, mean_s=0.1, period_s=0.2, busy_percent=30.0),),
    memory=(MemoryPeak(local_index=0, peak_bytes=5, capacity_bytes=None),),
    sources={"steps": "xprof"},
    notes=("The trace does not say.",),
)


def test_a_profile_is_the_same_after_json() -> None:
    text = json.dumps(to_object(PROFILE), allow_nan=False)
    assert from_object(json.loads(text)) == PROFILE


def test_unknown_members_are_skipped_and_missing_ones_are_none() -> None:
    value = to_object(PROFILE)
    value["of_a_newer_version"] = 1
    del value["mxu_percent"], value["capture"]["cost"]
    read = from_object(value)
    assert read.mxu_percent is None
    assert read.capture.cost == CaptureCost()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cores", 5),
        ("cores", [5]),
        ("captured_s", "1"),
        ("captured_s", float("nan")),
        ("captured_s", True),
        ("captured_s", 10**400),
        ("captured_s", 1e200),
        ("idle_percent", -5.0),
        ("mxu_percent", 1e12),
        ("memory", [{"local_index": 0, "peak_bytes": 10**400, "capacity_bytes": 1}]),
        ("sources", []),
        ("capture", None),
        ("notes", [None]),
        ("steps", {"whole": 1.5}),
        ("schema", 2),
    ],
)
def test_a_wrong_member_is_a_sentence_with_its_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"is not"):
        from_object({**to_object(PROFILE), name: value})
