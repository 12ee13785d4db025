"""A server's answers become readings: whatever shape they come in, and nothing that cannot be."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from support.metric_servers import (
    DUTY,
    EXECUTION,
    HBM_TOTAL,
    HBM_USED,
    IDLE,
    QUEUE,
    TRANSFER,
    gauge,
    labelled,
)

from tpusmi.metricproto import messages
from tpusmi.model import LIBTPU, ProcessKey, RowKey
from tpusmi.sources.libtpu import decode
from tpusmi.sources.libtpu.decode import (
    DEVICES_MOST,
    MetricValues,
    Origin,
    cores,
    label,
    metric_values,
)
from tpusmi.sources.libtpu.formats import parse
from tpusmi.sources.libtpu.grpc_status import Code
from tpusmi.sources.libtpu.names import IDLE_MOST_S, LATENCY, NAMES, Name
from tpusmi.sources.segments.contents import readings
from tpusmi.wire.reader import Sample

NOW_S, WALL_S = 1000.0, 1_800_000_000.0
ORIGIN = Origin("localhost:8431", ProcessKey(7, 70), NOW_S, WALL_S)
BY_GRPC = {name.grpc: name for name in NAMES}
BY_METRIC = {name.metric: name for name in NAMES}


def name_of(grpc: str) -> Name:
    return BY_GRPC[grpc]


def read(response: Any) -> MetricValues:
    return metric_values(name_of(response.metric.name), response, ORIGIN)


def values(found: MetricValues) -> dict[int, float]:
    return {r.subject.id: r.value for r in found.readings if isinstance(r.subject, RowKey)}


class Call:
    """A call that brought bytes."""

    def code(self) -> Code:
        return Code.OK

    def result(self) -> bytes:
        return b"x"


@pytest.mark.parametrize("error", [DecodeError("cut"), ValueError("not UTF-8"), RecursionError()])
def test_bytes_that_protobuf_cannot_decode_are_no_message(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Python's implementation has no limit of its own to messages within each other before 5.29."""

    class Nested:
        @staticmethod
        def FromString(data: bytes) -> Any:
            raise error

    monkeypatch.setattr(decode, "messages", lambda: {"MetricResponse": Nested})
    assert decode.message(Call(), "MetricResponse") is None


def one_row(grpc: str) -> tuple[Any, Any]:
    """A response with one empty row."""
    response = gauge(grpc, {})
    return response, response.metric.metrics.add()


def test_a_gauge_gives_a_reading_for_each_row_and_says_whose() -> None:
    (reading,) = read(gauge(HBM_USED, {3: 5})).readings
    assert reading == ("hbm_used_bytes", RowKey("localhost:8431", 3), 5, NOW_S, LIBTPU, 5.0)


@pytest.mark.parametrize(
    ("id", "expected"),
    [
        (0, 0), (13, 13), (None, 0), ("5", 5), (" 5 ", 5), ("4804027566140109423-2", 2),
        ("tensorcore_3", 3), (-1, None), (2**40, None), ("", None), ("a", None), ("٣", None),
        ("1.5", None), ("-1", None), ("99999999999", None),
    ],
)  # fmt: skip
def test_device_ids(id: Any, expected: int | None) -> None:
    found = read(gauge(DUTY, {id: 1.0}))
    assert list(values(found)) == ([] if expected is None else [expected])
    assert bool(found.notes) == (expected is None)


@pytest.mark.parametrize("ordinal", [3, "3", "tensorcore_3"])
@pytest.mark.parametrize("key", ["device_ordinal", "device-ordinal"])
def test_ordinals_stand_among_several_attributes(ordinal: Any, key: str) -> None:
    response, row = one_row(QUEUE)
    labelled(row, **{"core_type": "tensorcore", key: ordinal}).gauge.as_int = 9
    assert values(read(response)) == {3: 9}


def test_an_ordinal_of_0_may_have_lost_its_value() -> None:
    response, row = one_row(QUEUE)
    row.attribute.value.kvlist_attr.attributes.add(key="device_ordinal")
    row.gauge.as_int = 2
    assert values(read(response)) == {0: 2}


def test_other_cores_are_left_out_without_a_word() -> None:
    response, row = one_row(QUEUE)
    labelled(row, device_ordinal="0", core_type="sparsecore").gauge.as_int = 9
    assert read(response) == MetricValues()


@pytest.mark.parametrize("number", [math.nan, math.inf, -1.0, -1, 2**62, 100.6, 1e300])
def test_what_cannot_be_is_dropped_with_a_note(number: float) -> None:
    found = read(gauge(DUTY, {0: number, 1: 5.0}))
    assert values(found) == {1: 5.0}
    assert found.notes == ("duty_cycle_percent: 1 of 2 rows makes no sense",)


def test_idle_for_more_than_ten_years_makes_no_sense() -> None:
    found = read(gauge(IDLE, {0: IDLE_MOST_S, 1: IDLE_MOST_S + 1}))
    assert values(found) == {0: IDLE_MOST_S}
    assert found.notes == ("idle_s: 1 of 2 rows makes no sense",)


def test_a_little_more_than_all_is_all() -> None:
    assert values(read(gauge(DUTY, {0: 100.4}))) == {0: 100.0}


def test_numbers_come_in_either_field() -> None:
    assert values(read(gauge(DUTY, {0: 50}))) == {0: 50.0}
    assert values(read(gauge(HBM_USED, {0: 50.0}))) == {0: 50}
    response, row = one_row(HBM_USED)
    row.counter.as_int = 7
    assert values(read(response)) == {0: 7}


@pytest.mark.parametrize("field", ["as_string", "as_bool", None])
def test_a_row_without_a_number_makes_no_sense(field: str | None) -> None:
    response, row = one_row(DUTY)
    if field:
        setattr(row.gauge, field, "50" if field == "as_string" else True)
    assert read(response).readings == ()
    assert read(response).notes


def test_a_limit_of_0_is_not_known_yet() -> None:
    assert read(gauge(HBM_TOTAL, {0: 0, 1: 5})).notes == ()
    assert values(read(gauge(HBM_TOTAL, {0: 0, 1: 5}))) == {1: 5}
    assert values(read(gauge(HBM_USED, {0: 0}))) == {0: 0}


def test_no_rows_are_no_readings_and_no_mistake() -> None:
    assert read(gauge(DUTY, {})) == MetricValues()


def test_the_answer_to_another_question_is_not_read() -> None:
    found = metric_values(name_of(HBM_USED), gauge(DUTY, {0: 50.0}), ORIGIN)
    assert found == MetricValues(notes=(f"asked for {HBM_USED}, answered {DUTY}",))


def test_of_rows_with_one_id_the_first_counts() -> None:
    response = gauge(DUTY, {4: 50.0, "4": 60.0})
    assert values(read(response)) == {4: 50.0}


def test_rows_without_end_are_cut() -> None:
    found = read(gauge(DUTY, dict.fromkeys(range(DEVICES_MOST + 10), 1.0)))
    assert len(found.readings) == DEVICES_MOST
    assert found.notes == ("duty_cycle_percent: only the first 1024 of 1034 rows are read",)


@pytest.mark.parametrize(
    ("seconds", "nanos", "at_s"),
    [
        (WALL_S - 90, 500_000_000, NOW_S - 89.5),
        (WALL_S + 3600, 0, NOW_S),
        (0, 0, NOW_S),
        (12345, 0, NOW_S),
        (WALL_S - 90, -1, NOW_S),
        (WALL_S - 1e7, 0, NOW_S - 1e7),
    ],
    ids=["old", "future", "none", "senseless", "odd nanos", "very old"],
)
def test_a_timestamp_tells_the_age(seconds: float, nanos: int, at_s: float) -> None:
    response = gauge(DUTY, {0: 50.0})
    response.metric.metrics[0].timestamp.seconds = int(seconds)
    response.metric.metrics[0].timestamp.nanos = nanos
    assert read(response).readings[0].at_s == at_s


def distribution(**counts: int) -> Any:
    made = messages()["Distribution"](mean=5, bucket_counts=[0] * 22)
    for bucket, n in counts.items():
        made.bucket_counts[int(bucket[1:])] = n
    made.count = sum(counts.values())
    buckets = made.bucket_options.exponential_buckets
    buckets.num_finite_buckets, buckets.growth_factor, buckets.scale = 20, 2.0, 1.0
    return made


def test_execution_times_of_a_device() -> None:
    response, row = one_row(EXECUTION)
    labelled(row, device_ordinal="1", core_type="tensorcore").distribution.CopyFrom(
        distribution(b3=200)
    )
    idle = labelled(response.metric.metrics.add(), device_ordinal="2", core_type="tensorcore")
    idle.distribution.CopyFrom(distribution())
    found = read(response)
    assert {r.metric: r.value for r in found.readings} == {
        "hlo_execution_time_us.mean": 5,
        "hlo_execution_time_us.p50": 6,
        "hlo_execution_time_us.p90": 7.6,
        "hlo_execution_time_us.p95": 7.8,
        "hlo_execution_time_us.p999": pytest.approx(7.98, rel=0.001),
    }
    assert set(values(found)) == {1}  # that nothing ran on 2 is no mistake
    assert found.notes == ()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"buffer_size": "8MB+", "type": "grpc"}, "8MB+"),
        ({"type": "grpc", "buffer-size": "8MB+"}, "8MB+"),
        ({"collective_type": "ALL_REDUCE", "buffer_size": "2MB+"}, "2MB+-ALL_REDUCE"),
        ({"buffer_size": "2MB+", "type": "ALL_REDUCE"}, "2MB+-ALL_REDUCE"),
        ({"whatever": "4MB+"}, "4MB+"),
        ({"buffer_size": "\x1b[31m8MB+\n"}, "[31m8MB+"),
        ({"buffer_size": "x" * 999}, "x" * 64),
        ({}, ""),
    ],
)
def test_labels(labels: dict[str, str], expected: str) -> None:
    _, row = one_row(TRANSFER)
    assert label(labelled(row, **labels).attribute) == expected


def test_a_label_may_stand_alone() -> None:
    _, row = one_row(TRANSFER)
    row.attribute.value.string_attr = "16MB+"
    assert label(row.attribute) == "16MB+"


def test_latencies_of_one_label_are_added_up() -> None:
    response = gauge(TRANSFER, {})
    for size, counts in (("8MB+", {"b3": 100}), ("2MB+", {"b3": 7}), ("8MB+", {"b5": 300})):
        row = labelled(response.metric.metrics.add(), buffer_size=size, type="grpc")
        row.distribution.CopyFrom(distribution(**counts))
    large, small = read(response).latencies
    assert (large.name, large.label, large.process) == (
        "buffer_transfer_latency_us", "8MB+", ProcessKey(7, 70),
    )  # fmt: skip
    assert large.percentiles.count == 400
    assert large.percentiles.p90 == pytest.approx(16 * (1 + 260 / 300))
    assert small.percentiles.count == 7


def test_latencies_whose_buckets_differ_are_not_added_up() -> None:
    response = gauge(TRANSFER, {})
    for count, growth in ((100, 2.0), (300, 3.0)):
        row = labelled(response.metric.metrics.add(), buffer_size="8MB+")
        row.distribution.CopyFrom(distribution(b3=count))
        row.distribution.bucket_options.exponential_buckets.growth_factor = growth
    (found,) = read(response).latencies
    assert found.percentiles.count == 300


def test_a_core_without_facts_is_one_of_which_nothing_is_known() -> None:
    status = messages()["GetTpuRuntimeStatusResponse"]()
    status.core_states.add(key=3).value.error_message = "halted"
    status.core_states.add(key=1).value.core_id.core_on_chip.type = 77
    known, halted = cores(status, "localhost:8431")
    assert halted == ("localhost:8431", 3, None, None, None, None, None, None, "halted")
    assert (known.id, known.type, known.queued_programs) == (1, "77", 0)


@given(st.sampled_from([n for n in NAMES if n.grpc]), st.binary(max_size=200), st.data())
@settings(max_examples=600, deadline=None)
def test_whatever_comes_is_read_without_harm(name: Name, raw: bytes, data: st.DataObject) -> None:
    response = messages()["MetricResponse"]()
    for _ in range(data.draw(st.integers(0, 3))):
        row = response.metric.metrics.add()
        shape = data.draw(st.sampled_from(["attribute", "gauge", "distribution", "timestamp"]))
        try:
            getattr(row, shape).MergeFromString(raw)
        except Exception:  # noqa: BLE001  # DecodeError: nothing that could arrive
            continue
        row.distribution.SetInParent() if name.shape == LATENCY else None
    found = metric_values(name, response, ORIGIN)
    for reading in found.readings:
        assert 0 <= reading.value <= 2.0**62
        assert reading.at_s <= NOW_S
    for latency in found.latencies:
        assert latency.label.isprintable()


def test_minus_zero_is_zero_wherever_a_value_enters() -> None:
    rows = metric_values(name_of(DUTY), gauge(DUTY, {0: -0.0}), ORIGIN).readings
    printed = parse(BY_METRIC["duty_cycle_percent"], ["-0.0", "-0", "-0.0%"], 1.0).readings
    sampled = readings(Sample(1, 1.0, 1.0, {"flops_per_s": -0.0}, ()), ProcessKey(1, 1), 0.0, 1.0)
    for found in (*rows, *printed, *sampled):
        assert (found.value, str(found.value).startswith("-")) == (0, False)
    assert (len(rows), len(printed), len(sampled)) == (1, 3, 1)
