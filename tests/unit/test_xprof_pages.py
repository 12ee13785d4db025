"""Profiles from xprof's pages: finished ones of real machines, and pages that cannot be trusted."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpusmi.profiler import finished_pages
from tpusmi.profiler.finished_pages import read_pages
from tpusmi.profiler.xprof_figures import FROM_RATE, NO_STEPS, profile_of
from tpusmi.profiler.xprof_steps import steps_of, times
from tpusmi.profiler.xprof_tables import measured, number
from tpusmi.trace import plain_objects
from tpusmi.trace.figures import FILE, Capture, MemoryPeak, TimeShares, TraceProfile
from tpusmi.trace.troubles import CaptureError, Trouble

PAGES = Path(__file__).parents[1] / "data" / "xprof_pages"
V5P, V2 = PAGES / "v5p_training", PAGES / "v2-8_resnet"
CAPTURE = Capture(how=FILE, target="pages")


def table(columns: str, *rows: tuple[Any, ...], **properties: Any) -> dict[str, Any]:
    """A table as xprof writes it."""
    return {
        "cols": [{"id": name} for name in columns.split()],
        "rows": [{"c": [{"v": value} for value in row]} for row in rows],
        "p": properties,
    }


def of(**pages: Any) -> TraceProfile:
    return profile_of(pages, CAPTURE)


def program(**rates: Any) -> list[Any]:
    """A roofline page of a program with those rates, on a core of 100 GFLOP/s and 10 GiB/s."""
    names = ("step", "operation", *rates)
    row = ("Total", "Program", *rates.values())
    return [table(" ".join(names), row, peak_flop_rate="100", peak_hbm_bw="10")]


@pytest.fixture(scope="module")
def v5p() -> TraceProfile:
    return read_pages(str(V5P))


@pytest.fixture(scope="module")
def v2() -> TraceProfile:
    return read_pages(str(V2))


def test_the_cut_off_step_of_the_v5p_is_dropped(v5p: TraceProfile) -> None:
    """Its page prints a mean of 96.3 and a minimum of 0.0 ms, with a step of 3.052 ms in them."""
    assert v5p.steps is not None
    assert (v5p.steps.whole, v5p.steps.cut_off) == (4, 1)
    whole_ms = [120.116, 120.116, 120.131, 120.882]
    assert v5p.steps.min_s == pytest.approx(0.120116, abs=5e-7)
    assert v5p.steps.p50_s == pytest.approx(0.1201235, abs=1e-6)
    assert v5p.steps.max_s == pytest.approx(0.120882, abs=5e-7)
    assert v5p.steps.mean_s == pytest.approx(sum(whole_ms) / 4000, abs=1e-6)
    assert v5p.steps.p50_s < v5p.steps.p95_s < v5p.steps.max_s


def test_the_mxu_utilization_of_the_v5p_is_the_measured_one(v5p: TraceProfile) -> None:
    assert v5p.mxu_percent == 15.7
    assert v5p.flops_per_s == pytest.approx(139_320.23e9)
    assert v5p.peak_flops_per_s == 233_400e9
    assert v5p.notes == (
        "xprof measured an MXU utilization of 15.7 %, but counts FLOPs for 59.7 % of the peak:"
        " kernels declare their FLOPs themselves.",
    )


def test_idle_time_of_the_v5p_is_known_though_its_page_prints_zero(v5p: TraceProfile) -> None:
    """ "0.0%" for idle and for the duty cycle: not measured. op_profile has the idle operation, and
    its share is that of `tcIdleTimeMs` in the steps.
    """
    assert v5p.idle_percent == pytest.approx(0.25, abs=0.005)
    assert v5p.duty_cycle_percent == pytest.approx(99.75, abs=0.005)
    assert v5p.input_bound_percent == 0.0


def test_operations_of_the_v5p(v5p: TraceProfile) -> None:
    first = v5p.operations[0]
    assert first.name == "dynamic-update-slice.33"
    assert (first.category, first.program) == ("dynamic-update-slice", "jit_train_step")
    assert (first.source, first.runs, first.bound_by) == ("axes_scan.py:166", 512, "HBM")
    assert first.self_s == pytest.approx(0.20004287)
    assert first.self_percent == pytest.approx(5.11934)
    assert first.hbm_bandwidth_percent == pytest.approx(100 * 34.9925 / 1287.45, rel=1e-4)
    assert first.flops_per_s is None
    assert first.framework_name is not None
    assert first.framework_name.startswith("jit(train_step)/jit(main)/transpose")
    assert len(v5p.operations) == 357


def test_an_operation_has_no_share_of_the_peak_above_it(v5p: TraceProfile) -> None:
    kernel = next(o for o in v5p.operations if o.name.startswith("vmap_splash_mha_dkv"))
    assert kernel.flops_per_s == pytest.approx(764_427.5e9)
    assert kernel.mxu_percent is None
    started = next(o for o in v5p.operations if o.name == "copy-start.5")
    assert started.hbm_bytes_per_s is started.hbm_bandwidth_percent is None


def test_memory_shares_and_names_of_the_v5p(v5p: TraceProfile) -> None:
    assert v5p.memory[0] == MemoryPeak(
        local_index=0, peak_bytes=5_307_538_688, capacity_bytes=102_803_439_616
    )
    assert [m.local_index for m in v5p.memory] == [0, 1, 2, 3]
    assert (v5p.backend, v5p.device_type) == ("tpu", "TPU v5")
    assert v5p.captured_s == pytest.approx(0.48844868)
    assert v5p.hbm_bandwidth_percent == pytest.approx(36.675, abs=0.001)
    assert v5p.shares.collectives_percent == pytest.approx(26.5, abs=0.1)
    assert sum(s or 0 for s in v5p.shares) == pytest.approx(100)
    assert set(v5p.sources.values()) == {"xprof"}
    assert v5p.cores == v5p.programs == ()


def test_the_pages_of_an_old_xprof_have_other_columns(v2: TraceProfile) -> None:
    assert v2.mxu_percent == 48.8
    assert v2.steps is not None
    rounded = [round(1000 * t, 1) for t in (v2.steps.min_s, v2.steps.mean_s, v2.steps.max_s)]
    assert rounded == [313.5, 313.8, 314.3]
    assert (v2.steps.whole, v2.steps.cut_off) == (3, 0)
    assert v2.hbm_bandwidth_percent == 70.3
    assert v2.input_bound_percent == pytest.approx(0.0055, abs=0.0001)
    assert v2.idle_percent == pytest.approx(0.0033, abs=0.0001)
    assert (v2.backend, v2.device_type) == ("tpu", "TPU v2")
    assert v2.capture.host == "10.240.1.50"
    assert v2.operations == v2.memory == ()
    assert v2.flops_per_s is v2.peak_flops_per_s is v2.captured_s is None


# Folders.


def test_a_folder_without_pages_is_absent(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no pages of xprof are in this folder") as raised:
        read_pages(str(tmp_path))
    assert raised.value.trouble is Trouble.ABSENT


def test_a_folder_that_is_gone_or_a_file_is_absent(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "gone", tmp_path / "file"):
        with pytest.raises(CaptureError) as raised:
            read_pages(str(path))
        assert raised.value.trouble is Trouble.ABSENT


def test_a_page_may_be_named_after_its_host(tmp_path: Path) -> None:
    page = (V2 / "overview_page.json").read_bytes()
    (tmp_path / "t1v-n-0.overview_page.json.gz").write_bytes(gzip.compress(page))
    assert read_pages(str(tmp_path)).mxu_percent == 48.8


def test_one_bad_page_among_good_ones_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "overview_page.json").write_bytes((V2 / "overview_page.json").read_bytes())
    (tmp_path / "hlo_stats.json.gz").write_bytes(gzip.compress(b"[" * 100)[:-12])
    (tmp_path / "op_profile.json").write_bytes(b"\xff\xfe")
    (tmp_path / "roofline_model.json").mkdir()
    profile = read_pages(str(tmp_path))
    assert profile.mxu_percent == 48.8
    assert [note.partition(":")[0] for note in profile.notes] == [
        "op_profile.json cannot be read",
        "hlo_stats.json.gz cannot be read",
        "roofline_model.json cannot be read",
    ]


def test_pages_of_other_shapes_are_no_pages(tmp_path: Path) -> None:
    for name, text in (
        ("op_profile", "[]"),
        ("memory_profile", "{}"),
        ("hlo_stats", '{"rows": 1}'),
    ):
        (tmp_path / f"{name}.json").write_text(text)
    with pytest.raises(CaptureError, match="it is not a page of xprof") as raised:
        read_pages(str(tmp_path))
    assert raised.value.trouble is Trouble.UNREADABLE


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 200_000, b"\xff", b'{"a": 1'])
def test_a_folder_of_bad_pages_is_unreadable(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "overview_page.json").write_bytes(data)
    with pytest.raises(CaptureError, match=r"overview_page\.json cannot be read") as raised:
        read_pages(str(tmp_path))
    assert raised.value.trouble is Trouble.UNREADABLE


def test_a_page_that_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finished_pages, "PAGE_BYTES_MOST", 1 << 20)
    (tmp_path / "overview_page.json.gz").write_bytes(gzip.compress(b" " * (4 << 20)))
    with pytest.raises(CaptureError, match="it has more than 1 MiB"):
        read_pages(str(tmp_path))


def test_a_page_of_countless_lists_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_objects, "CONTAINERS_MOST", 1000)
    (tmp_path / "overview_page.json").write_text("[" + "[],{}," * 600 + "0]")
    with pytest.raises(CaptureError, match="it has more than 1,000 lists and objects"):
        read_pages(str(tmp_path))


def test_a_page_that_is_a_fifo_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "overview_page.json")
    with pytest.raises(CaptureError, match="it is not a file"):
        read_pages(str(tmp_path))


# What the figures mean.


def test_zero_is_what_xprof_prints_for_unknown() -> None:
    """As on a CPU, where it has no device."""
    printed = dict.fromkeys(
        ("mxu_utilization_percent", "device_duty_cycle_percent", "device_idle_time_percent"), "0.0%"
    )
    roofline = [table("step operation", peak_flop_rate="0", peak_hbm_bw="0")]
    profile = of(overview_page=[table("selfTimePercent", **printed)], roofline_model=roofline)
    figures = profile._asdict()
    assert {v for k, v in figures.items() if k.endswith(("_percent", "_per_s", "_s"))} == {None}
    assert profile.shares == TimeShares()
    assert profile.notes == (NO_STEPS,)
    assert profile.sources == {}


def test_all_time_is_not_idle_where_xprof_sees_no_operation() -> None:
    """As in a trace without descriptions of its operations. Its duty cycle is right."""
    printed = {"device_idle_time_percent": "100.0%", "device_duty_cycle_percent": "71.8%"}
    steps = table("stepnum tcComputeTimeMs tcIdleTimeMs", ("4", 0.0, 10.0))
    idle = {"name": "IDLE", "metrics": {"rawTime": 40}}
    whole = {"rawTime": 40}
    for children, percent in (
        ([], None),
        ([idle], None),
        ([{"name": "jit_f(1)"}], 0.0),
        ([idle, {"name": "jit_f(1)"}], 100.0),
    ):
        program_ = {"metrics": whole, "children": children}
        overview = [table("selfTimePercent", **printed), steps]
        profile = of(overview_page=overview, op_profile={"byProgram": program_})
        assert (profile.idle_percent, profile.duty_cycle_percent) == (percent, 71.8)
        assert profile.steps is not None


def test_mxu_utilization_falls_back_to_the_rate_of_the_program() -> None:
    profile = of(roofline_model=program(measured_flop_rate=25.0, hbm_bw=2.5))
    assert profile.mxu_percent == profile.hbm_bandwidth_percent == 25
    assert FROM_RATE in profile.notes


@pytest.mark.parametrize(
    ("category", "rate", "note"),
    [
        ("custom-call", 0.0, "xprof counts no FLOPs of custom calls, which take 100 %"),
        ("custom-call", 300.0, "custom kernels declare more FLOPs than a core can do"),
        ("loop fusion", 0.0, FROM_RATE),
    ],
)
def test_the_rate_of_the_program_is_not_believed_if_kernels_hide_or_invent_flops(
    category: str, rate: float, note: str
) -> None:
    columns = "hlo_op_name category total_self_time total_self_time_percent model_flop_rate"
    profile = of(
        roofline_model=program(measured_flop_rate=25.0),
        hlo_stats=table(columns, ("op.1", category, 9.0, 100.0, rate)),
    )
    assert any(n.startswith(note) for n in profile.notes)
    assert (profile.mxu_percent is None) == (note != FROM_RATE)


def test_no_kernel_is_blamed_for_a_measured_utilization_where_none_invents_flops() -> None:
    """The profiler may measure all of a capture, of which only a part has operations."""
    columns = "hlo_op_name category total_self_time total_self_time_percent model_flop_rate"
    profile = of(
        overview_page=table("a", mxu_utilization_percent="11.0%"),
        roofline_model=program(measured_flop_rate=54.0),
        hlo_stats=table(columns, ("op.1", "convolution", 9.0, 100.0, 54.0)),
    )
    assert profile.mxu_percent == 11.0
    (note,) = (note for note in profile.notes if "measured an MXU" in note)
    assert "11.0 %, but counts FLOPs for 54.0 % of the peak" in note
    assert "kernels" not in note
    assert "before the first operation and after the last" in note


def test_no_figure_above_what_is_possible() -> None:
    profile = of(roofline_model=program(measured_flop_rate=103.0, hbm_bw=11.0))
    assert profile.mxu_percent is profile.hbm_bandwidth_percent is None


@pytest.mark.parametrize(
    ("times_ms", "whole", "cut_off"),
    [
        ([10, 10, 10, 3], 3, 1),
        ([3, 10, 10, 3], 2, 2),
        ([10, 3, 10, 10], 4, 0),  # it is not at an end of the capture: a fast step
        ([10], 1, 0),
        ([10, 2], 1, 1),
        ([10, 6, 10], 3, 0),
        ([7, 10, 10, 11, 9], 4, 1),
        ([7, 10, 10, 8, 9], 5, 0),
        ([0, 0], None, None),
    ],
)
def test_only_the_first_and_the_last_step_can_be_cut_off(
    times_ms: list[float], whole: int | None, cut_off: int | None
) -> None:
    rows = [(str(i), float(t)) for i, t in enumerate(times_ms)]
    steps = times(steps_of({"overview_page": [table("stepnum stepTimeMs", *rows)]}))
    assert (steps and steps.whole, steps and steps.cut_off) == (whole, cut_off)


def test_parts_of_a_step_that_overlap_are_not_its_time() -> None:
    """A sparse core works at the same time as the tensor core."""
    row = ("0", 10.0, 4.0, "step 0:\nTime waiting = 0.000 ms, Step time = 10.000 ms")
    page = table("stepnum tcComputeTimeMs scv0ComputeTimeMs tooltip", row)
    steps = times(steps_of({"overview_page": [page]}))
    assert steps is not None
    assert steps.mean_s == 0.01


@pytest.mark.parametrize(
    ("idle_ms", "infeed_percent", "operation", "share"),
    [
        (5.0, 30.0, "fusion", 30.0),
        (5.0, 0.0, "fusion", None),  # it waits, but nobody knows for what
        (0.01, 0.0, "fusion", 0.0),
        (5.0, 0.0, "infeed", 0.0),
    ],
)
def test_no_infeed_operation_means_unknown_unless_the_device_is_never_idle(
    idle_ms: float, infeed_percent: float, operation: str, share: float | None
) -> None:
    columns = "stepnum tcComputeTimeMs tcIdleTimeMs infeedPercentAverage"
    steps = table(columns, ("0", 10 - idle_ms, idle_ms, infeed_percent))
    columns = "hlo_op_name category total_self_time total_self_time_percent"
    operations = table(columns, ("op.1", operation, 9.0, 50.0))
    profile = of(overview_page=[steps], hlo_stats=operations)
    assert profile.input_bound_percent == share
    assert any("no infeed operation" in note for note in profile.notes) == (share is None)


def test_kinds_of_time() -> None:
    columns = "hlo_op_name category hlo_op_expression total_self_time total_self_time_percent"
    rows = [
        ("fusion.1", "loop fusion", "", 40.0, 40.0),
        ("all-reduce.1", "all-reduce", "", 10.0, 10.0),
        ("async-collective-start.3", "custom fusion", "", 5.0, 5.0),
        ("infeed.1", "infeed", "", 4.0, 4.0),
        ("outfeed.1", "outfeed", "", 3.0, 3.0),
        ("copy-done.1", "copy-done", "f32[2]{0:S(5)} copy-done", 2.0, 2.0),
        ("copy-done.2", "copy-done", "f32[2]{0:S(1)} copy-done", 1.0, 1.0),
        ("send.1", "host send", "", 1.0, 1.0),
    ]
    assert of(hlo_stats=table(columns, *rows)).shares == TimeShares(
        compute_percent=pytest.approx(41),
        collectives_percent=15,
        infeed_percent=4,
        outfeed_percent=3,
        host_percent=3,
        idle_percent=pytest.approx(34),
    )


def test_the_source_is_taken_out_of_its_html() -> None:
    cell = "<div class='source-info-cell' title='a.py:1:2\n'>&lt;embedded x&gt;/a.py:41</div>"
    columns = "hlo_op_name total_self_time total_self_time_percent source_info bound_by"
    profile = of(hlo_stats=table(columns, ("a", 1.0, 1.0, cell, "Unknown")))
    assert profile.operations[0].source == "<embedded x>/a.py:41"
    assert profile.operations[0].bound_by is None


# What a page may contain.


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("15.7%", 15.7),
        (" 3 ", 3.0),
        (2, 2.0),
        ("2.2250738585072014e-308", 0.0),
        (2.2250738585072014e-308, 0.0),
        ("nan", None),
        ("inf", None),
        (float("nan"), None),
        (10**400, None),
        (1e31, None),
        ("9" * 1000, None),
        (True, None),
        (None, None),
        ([], None),
        ("x", None),
    ],
)
def test_numbers(value: object, result: float | None) -> None:
    assert number(value) == result


def test_only_what_is_above_zero_is_measured() -> None:
    assert [measured(v) for v in ("0.0%", -1, 0.5)] == [None, None, 0.5]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ("cols", "rows", "p", "c", "v", "id", "byProgram", "children", "metrics", "rawTime", "name")
)
SHAPED = st.recursive(
    JSON,
    lambda inner: st.dictionaries(NAMES, inner, max_size=4) | st.lists(inner, max_size=2),
    max_leaves=8,
)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.sampled_from(tuple(finished_pages.PAGES)), SHAPED))
def test_no_page_raises_an_error(pages: dict[str, Any]) -> None:
    profile = profile_of(pages, CAPTURE)
    json.dumps(profile, allow_nan=False)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_value_in_a_real_table_raises_an_error(data: st.DataObject) -> None:
    overview = json.loads((V2 / "overview_page.json").read_bytes())
    for row in overview[1]["rows"]:
        at = data.draw(st.integers(0, len(row["c"]) - 1))
        row["c"][at] = data.draw(st.just({"v": data.draw(JSON)}) | JSON)
    for name in data.draw(st.lists(st.sampled_from(sorted(overview[0]["p"])))):
        overview[0]["p"][name] = data.draw(JSON)
    json.dumps(of(overview_page=overview), allow_nan=False)
