"""The strings of libtpu's SDK, as it prints them and as its manual says, and any other strings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpusmi.model import METRICS, RowKey
from tpusmi.sources.libtpu.formats import Parsed, number, ordinal, parse
from tpusmi.sources.libtpu.names import LATENCY, NAMES, Name

BY_SDK_NAME = {sdk: name for name in NAMES for sdk in name.sdk}
FIVE = "123.46, 86.50, 2216.84, 2771.05, 3314.17"
NUMBERS = (123.46, 86.5, 2216.84, 2771.05, 3314.17)


def parsed(sdk_name: str, *data: Any) -> Parsed:
    return parse(BY_SDK_NAME[sdk_name], [*data], 7.0)


def values(found: Parsed) -> dict[int, float]:
    """Of a metric that is one number: each by its row."""
    assert len({r.metric for r in found.readings}) <= 1
    rows = {}
    for r in found.readings:
        assert isinstance(r.subject, RowKey)
        assert (r.subject.server, r.at_s, r.source) == ("sdk", 7.0, "libtpu_sdk")
        rows[r.subject.id] = r.value
    return rows


def test_utilization_is_a_percentage_for_each_core_in_order() -> None:
    found = parsed("tensorcore_util", "0.00", "20.00", "0.00", "100.00")
    assert values(found) == {0: 0.0, 1: 20.0, 2: 0.0, 3: 100.0}
    assert found.readings[0].metric == "tensorcore_utilization_percent"


@pytest.mark.parametrize("item", ["20.00%", " 20 ", "+20.0", 20, 20.0, "2e1"])
def test_a_number_may_be_written_otherwise(item: Any) -> None:
    assert values(parsed("duty_cycle_pct", item)) == {0: 20.0}


def test_bytes_are_whole() -> None:
    found = values(parsed("hbm_capacity_total", "33550229504", "33550229504.0"))
    assert found == {0: 33550229504, 1: 33550229504}
    assert all(isinstance(value, int) for value in found.values())


def test_no_data_is_no_reading_and_no_mistake() -> None:
    for sdk_name in BY_SDK_NAME:
        assert parsed(sdk_name) == Parsed()


def test_a_capacity_of_zero_is_not_known_yet_but_a_usage_of_zero_is() -> None:
    assert parsed("hbm_capacity_total", "0", "0") == Parsed()
    assert values(parsed("hbm_capacity_usage", "0", "0")) == {0: 0, 1: 0}


@pytest.mark.parametrize(
    "bad", ["nan", "inf", "-1.00", "101", "1e300", "", "N/A", "1_0", "٣", True]
)
def test_what_cannot_be_a_percentage_leaves_a_gap_and_the_others_keep_their_place(bad: Any) -> None:
    found = parsed("runtime_hbm_utilization", "1.00", bad, "3.00")
    assert values(found) == {0: 1.0, 2: 3.0}
    assert found.senseless == 1


def test_a_little_over_a_hundred_is_rounding() -> None:
    assert values(parsed("tensorcore_util", "100.40")) == {0: 100.0}


@pytest.mark.parametrize(
    "label",
    ["tensorcore_8", "8-tensorcore", "tensorcore-8", "8", "4804027566140109423-8", "Tensor_Core_8"],
)
def test_a_queue_belongs_to_the_ordinal_in_its_label(label: str) -> None:
    assert ordinal(label) == 8
    assert values(parsed("hlo_queue_size", f"{label}: 10")) == {8: 10}


def test_the_first_row_of_an_ordinal_counts() -> None:
    assert values(parsed("hlo_queue_size", "0-tensorcore: 1", "0-tensorcore: 2")) == {0: 1}


def test_rows_of_other_cores_are_left_out_and_are_no_mistake() -> None:
    assert parsed("hlo_queue_size", "0-sparsecore: 3", "sparsecore_1: 4") == Parsed()
    assert parsed("hlo_execution_timing", f"0-sparsecore, {FIVE}") == Parsed()


def test_a_row_without_an_ordinal_is_counted_not_guessed() -> None:
    assert parsed("hlo_queue_size", "unknown: 3") == Parsed(senseless=1)


@pytest.mark.parametrize("sdk_name", ["hlo_execution_timing", "hlo_exec_timing"])
def test_execution_times_are_five_numbers_for_each_core(sdk_name: str) -> None:
    found = parsed(sdk_name, f"tensorcore_0, {FIVE}", f"9-tensorcore, {FIVE}")
    told = {(r.subject, r.metric.partition(".")[2]): r.value for r in found.readings}
    parts = ("mean", "p50", "p90", "p95", "p999")
    for row in (0, 9):
        assert tuple(told[RowKey("sdk", row), part] for part in parts) == NUMBERS


def test_one_unknown_of_five_numbers_leaves_the_four() -> None:
    found = parsed("hlo_execution_timing", "tensorcore_0, nan, 1, 2, 3, 4")
    assert [r.value for r in found.readings] == [1, 2, 3, 4]
    assert found.senseless == 0


@pytest.mark.parametrize(
    ("printed", "label"),
    [
        ("8MB+", "8MB+"),
        ("8MB+-grpc", "8MB+"),
        ("grpc-8MB+", "8MB+"),
        ("2MB+-ALL_REDUCE", "2MB+-ALL_REDUCE"),
        ("ALL_REDUCE-2MB+", "2MB+-ALL_REDUCE"),
        ("unknown", ""),
        ("a, b", "a, b"),
        ("a\x1b[31mb", "a [31mb"),
    ],
)
def test_a_latency_keeps_its_label_without_how_it_travelled(printed: str, label: str) -> None:
    (found,) = parsed("collective_e2e_latency", f"{printed}, {FIVE}").latencies
    assert (found.name, found.label) == ("collective_e2e_latency_us", label)
    assert found.percentiles == (None, *NUMBERS)
    assert found.percentiles.count is None
    assert (found.at_s, found.source, found.process) == (7.0, "libtpu_sdk", None)


@pytest.mark.parametrize(
    "sdk_name", [sdk for name in NAMES if name.shape == LATENCY for sdk in name.sdk]
)
def test_every_latency_is_read_by_its_old_and_new_name(sdk_name: str) -> None:
    (found,) = parsed(sdk_name, FIVE).latencies
    assert found.name == BY_SDK_NAME[sdk_name].metric
    assert found.label == ""


@pytest.mark.parametrize("bad", ["1, 2, 3, 4", "8MB+, a, b, c, d, e", "", "8MB+"])
def test_a_latency_without_its_numbers_is_none(bad: str) -> None:
    assert parsed("tcp_min_rtt", bad) == Parsed(senseless=1)


def test_links_belong_to_the_chip_in_their_name() -> None:
    found = parsed("ici_link_health", "tray1.chip3.ici0.int: 0", "tray1.chip2.ici1.int: 10")
    assert [(x.chip, x.name, x.health) for x in found.links] == [
        (3, "tray1.chip3.ici0.int", 0),
        (2, "tray1.chip2.ici1.int", 10),
    ]


def test_chips_of_a_second_tray_are_numbered_on() -> None:
    items = [f"tray{tray}.chip{chip}.ici0.int: 0" for tray in (1, 2) for chip in range(4)]
    assert [x.chip for x in parsed("ici_link_health", *items).links] == [*range(8)]


@pytest.mark.parametrize(
    ("chips", "expected"),
    [
        ("1.0 1.1 1.2 1.3", [0, 1, 2, 3]),
        ("1.1 1.2 1.3 1.4", [0, 1, 2, 3]),
        ("1.0 1.1 1.3", [0, 1, 3]),
        ("1.3", [3]),
        ("1.1 1.2 2.1 2.2", [0, 1, 2, 3]),
        ("1.1 1.2 2.1", [-1, -1, -1]),
        ("1.3 2.1", [-1, -1]),
        ("1.0 2.1", [-1, -1]),
    ],
)
def test_links_are_numbered_on_only_when_no_chip_is_missing(
    chips: str, expected: list[int]
) -> None:
    pairs = [text.split(".") for text in chips.split()]
    items = [f"tray{tray}.chip{chip}.ici0.int: 1" for tray, chip in pairs]
    found = parsed("ici_link_health", *items)
    assert ([x.chip for x in found.links], found.senseless) == (expected, 0)


@pytest.mark.parametrize("bad", ["tray1.chip3.ici0.int: 11", "chip: 0", "ici0: 0", "chip1: 0.5"])
def test_a_link_without_chip_or_health_is_none(bad: str) -> None:
    assert parsed("ici_link_health", bad) == Parsed(senseless=1)


def test_throttling_is_printed_by_tray_and_chip() -> None:
    found = values(parsed("tpu_throttle_score", "1-1: 0", "1-2: 1", "2-1: 10", "2-2: 2"))
    assert found == {0: 0.0, 1: 10.0, 2: 100.0, 3: 20.0}


def test_throttling_of_some_chips_is_never_that_of_others() -> None:
    assert values(parsed("tpu_throttle_score", "1-5: 3", "1-7: 1")) == {5: 30.0, 7: 10.0}
    assert values(parsed("tpu_throttle_score", "1-3: 3", "2-1: 1")) == {}


def test_idle_for_more_than_ten_years_makes_no_sense() -> None:
    found = parsed("idle_duration", "3e8", "4e8")
    assert (values(found), found.senseless) == ({0: 3e8}, 1)


def test_more_devices_than_any_host_has_are_cut() -> None:
    found = parsed("duty_cycle_pct", *["1.00"] * 1030)
    assert (len(found.readings), found.senseless) == (1024, 6)


def test_throttling_is_printed_by_device_says_the_manual() -> None:
    assert values(parsed("tpu_throttle_score", "0-0", "1-1", "2-0")) == {0: 0.0, 1: 10.0, 2: 0.0}


@pytest.mark.parametrize("bad", ["1-5: 11", "1-11", "5", "a-b", "1-5: -1"])
def test_a_throttle_score_beyond_ten_is_none(bad: str) -> None:
    assert parsed("tpu_throttle_score", bad) == Parsed(senseless=1)


@pytest.mark.parametrize("data", [None, "12.00", {"0": "12.00"}, 12.0])
@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.metric)
def test_what_is_no_list_is_one_mistake(name: Name, data: Any) -> None:
    assert parse(name, data, 7.0) == Parsed(senseless=1)


WORDS = (
    "tray chip tensorcore sparsecore ici grpc unknown 8MB+ nan inf e 0 1 12 9e9 0.5 - -- _ . , : %"
)
SHAPED = st.lists(st.sampled_from([*WORDS.split(), " ", ", "]), max_size=16).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | SHAPED,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.sampled_from(NAMES), JSON | st.lists(JSON, max_size=8))
def test_no_data_whatever_raises_or_becomes_an_impossible_value(name: Name, data: Any) -> None:
    found = parse(name, data, 7.0)
    units = {m.name: m.unit for m in METRICS}
    for r in found.readings:
        assert 0 <= r.value <= (100 if units[r.metric] == "percent" else 2**62)
        assert isinstance(r.subject, RowKey)
        assert 0 <= r.subject.id < 10**9
    for link in found.links:
        assert 0 <= link.health <= 10
        assert link.name.isprintable()
    for latency in found.latencies:
        assert latency.label.isprintable()
        assert any(part is not None for part in latency.percentiles)


@given(st.text() | SHAPED)
def test_a_number_is_finite_or_none(text: str) -> None:
    value = number(text)
    assert value is None or abs(value) < float("inf")
