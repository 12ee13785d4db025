"""Percentiles of distributions: Google's own figures, every kind of bucket, hostile messages."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpusmi.metricproto import messages
from tpusmi.model import Percentiles
from tpusmi.sources.libtpu.percentiles import percentiles, summed

NOTHING = Percentiles(0, None, None, None, None, None)


def distribution(counts: list[int], count: int | None = None, mean: float = 5.0) -> Any:
    made = messages()["Distribution"](mean=mean, bucket_counts=counts)
    made.count = sum(counts) if count is None else count
    return made


def exponential(
    counts: list[int], finite: int, growth: float = 2.0, scale: float = 1.0, **more: Any
) -> Any:
    made = distribution(counts, **more)
    buckets = made.bucket_options.exponential_buckets
    buckets.num_finite_buckets, buckets.growth_factor, buckets.scale = finite, growth, scale
    return made


def linear(counts: list[int], finite: int, width: float, offset: float) -> Any:
    made = distribution(counts)
    buckets = made.bucket_options.linear_buckets
    buckets.num_finite_buckets, buckets.width, buckets.offset = finite, width, offset
    return made


def explicit(counts: list[int], *bounds: float) -> Any:
    made = distribution(counts)
    made.bucket_options.explicit_buckets.bounds.extend(bounds)
    return made


def regular(counts: list[int], finite: int, *bounds: tuple[float, float]) -> Any:
    made = distribution(counts)
    made.bucket_options.regular_buckets.num_finite_buckets = finite
    for width, offset in bounds:
        made.bucket_options.regular_buckets.bounds.add(width=width, offset=offset)
    return made


def at(size: int, **counts: int) -> list[int]:
    """`at(5, b1=7)`: 7 in the second of five buckets."""
    made = [0] * size
    for name, n in counts.items():
        made[int(name[1:])] = n
    return made


def rounded(found: Percentiles) -> list[float | None]:
    return [
        None if v is None else round(v, 2) for v in (found.p50, found.p90, found.p95, found.p999)
    ]


def test_the_distribution_whose_figures_are_known() -> None:
    counts = at(32, b10=500, b12=400, b20=100)
    found = percentiles(exponential(counts, 30, growth=1.5))
    assert (found.count, found.mean) == (1000, 5.0)
    assert rounded(found) == [86.5, 2216.84, 2771.05, 3314.17]


def test_zero_buckets_that_were_cut_off_change_nothing() -> None:
    counts = at(21, b10=500, b12=400, b20=100)
    assert rounded(percentiles(exponential(counts, 30, growth=1.5)))[3] == 3314.17


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (exponential(at(22, b0=100), 20, growth=1.5), [0.83, 0.97, 0.98, 1.0]),
        (exponential(at(22, b1=100), 20, growth=1.5, scale=10), [12.5, 14.5, 14.75, 14.95]),
        (exponential(at(22, b3=1), 20), [4, 4, 4, 4]),
        (exponential(at(22, b3=3, b4=4), 20), [8, 14, 14, 14]),
        (exponential(at(22, b3=15), 20), [5.87, 7.47, 7.73, 7.73]),
        (exponential(at(22, b1=50, b2=50), 20, count=50), [3, 3.8, 3.88, 3.96]),
        (
            exponential(at(22, b10=500, b12=400, b20=100), 20, growth=1.5),
            [53.82, 118.93, 124.34, 129.64],
        ),
    ],
    ids=["underflow", "scale", "one", "seven", "fifteen", "count too small", "top is not seen"],
)  # fmt: skip
def test_what_the_sdk_printed_for_odd_ones(made: Any, expected: list[float]) -> None:
    assert rounded(percentiles(made)) == expected


def test_a_quantile_that_falls_into_no_bucket_is_unknown() -> None:
    found = percentiles(exponential(at(22, b1=50, b2=50), 20, count=1000))
    assert rounded(found) == [None, 1.0, 2.0, 3.96]  # the SDK prints 1.00 for the first


@pytest.mark.parametrize(
    "made",
    [
        linear(at(6, b1=100, b2=100), 4, 10, 5),
        explicit(at(4, b1=100, b2=100), 5, 15, 25),
        regular(at(6, b1=100, b2=100), 4, (10, 5)),
        regular(at(6, b1=100, b2=100), 2, (10, 5), (10, 15)),
    ],
    ids=["linear", "explicit", "regular", "regular one by one"],
)
def test_the_other_kinds_are_interpolated_between_their_bounds(made: Any) -> None:
    assert rounded(percentiles(made)) == [15, 23, 24, 24.9]


@pytest.mark.parametrize(
    "made",
    [linear(at(4, b0=50, b3=50), 2, 10, 5), explicit(at(4, b0=50, b3=50), 5, 15, 25)],
    ids=["linear", "explicit"],
)
def test_beyond_the_bounds_nothing_is_made_up(made: Any) -> None:
    assert rounded(percentiles(made)) == [25, 25, 25, 25]
    assert percentiles(type(made)(count=0)) == NOTHING


@pytest.mark.parametrize("count", [0, -5])
def test_without_a_count_all_is_unknown(count: int) -> None:
    assert percentiles(exponential(at(22, b1=50), 20, count=count)) == NOTHING


@pytest.mark.parametrize(
    "made",
    [
        exponential(at(22, b3=200), 20, growth=1.0),
        exponential(at(22, b3=200), 20, growth=0.5),
        exponential(at(22, b3=200), 20, growth=math.nan),
        exponential(at(22, b3=200), 20, scale=0.0),
        exponential(at(22, b3=200), 20, scale=-1.0),
        exponential(at(22, b3=200), 20, scale=math.inf),
        exponential(at(22, b3=200), -3),
        exponential(at(22, b3=200, b5=-100), 20),
        exponential(at(22, b3=200), 20, growth=1e300, scale=1e300),
        exponential([1] * 5000, 6000),
        linear(at(6, b1=100), 4, 0, 5),
        linear(at(6, b1=100), 4, math.nan, 5),
        explicit(at(6, b1=100), 3, 2, 1),
        explicit(at(6, b1=100), 1, math.inf),
        explicit(at(6, b1=100)),
        regular(at(6, b1=100), 4),
        distribution(at(6, b1=100)),
    ],
)
def test_buckets_that_make_no_sense_give_a_mean_only(made: Any) -> None:
    found = percentiles(made)
    assert found.mean == 5.0
    assert rounded(found) == [None] * 4


@pytest.mark.parametrize("mean", [math.nan, math.inf, -1.0, 1e30])
def test_a_mean_that_cannot_be_is_unknown(mean: float) -> None:
    assert percentiles(exponential(at(22, b3=200), 20, mean=mean)).mean is None


def test_distributions_of_the_same_buckets_are_added_up() -> None:
    whole = summed(
        [exponential(at(22, b3=100), 20, mean=2), exponential(at(9, b5=300), 20, mean=6)]
    )
    assert percentiles(whole) == percentiles(exponential(at(22, b3=100, b5=300), 20, mean=5))


def test_distributions_of_other_buckets_are_not() -> None:
    one, other = exponential(at(22, b3=100), 20), exponential(at(22, b3=100), 20, growth=3)
    assert summed([one, other]) is None
    assert summed([one]) is one


def test_sums_beyond_the_message_are_not() -> None:
    assert summed([exponential([2**63 - 1], 1)] * 2) is None


int64 = st.integers(-(2**63), 2**63 - 1)
doubles = st.floats()
hostile = st.builds(
    lambda kind, counts, count, mean, finite, a, b, bounds: _hostile(
        kind, counts, count, mean, finite, a, b, bounds
    ),
    st.integers(0, 4), st.lists(int64, max_size=40), int64, doubles,
    st.integers(-(2**31), 2**31 - 1), doubles, doubles, st.lists(doubles, max_size=40),
)  # fmt: skip


def _hostile(kind: int, counts: list[int], count: int, mean: float, *shape: Any) -> Any:
    finite, a, b, bounds = shape
    made = messages()["Distribution"](bucket_counts=counts, count=count, mean=mean)
    options = made.bucket_options
    if kind == 1:
        options.exponential_buckets.num_finite_buckets = finite
        options.exponential_buckets.growth_factor, options.exponential_buckets.scale = a, b
    elif kind == 2:
        options.linear_buckets.num_finite_buckets = finite
        options.linear_buckets.width, options.linear_buckets.offset = a, b
    elif kind == 3:
        options.explicit_buckets.bounds.extend(bounds)
    elif kind == 4:
        options.regular_buckets.num_finite_buckets = finite
        for bound in bounds:
            options.regular_buckets.bounds.add(width=bound, offset=a)
    return made


@given(hostile)
@settings(max_examples=500, deadline=None)
def test_whatever_comes_gives_numbers_that_can_be_true(made: Any) -> None:
    for found in (percentiles(made), *(percentiles(s) for s in [summed([made, made])] if s)):
        assert found.count >= 0
        for value in found[1:]:
            assert value is None or 0 <= value <= 2.0**62


def test_a_mean_that_is_not_there_is_unknown_and_no_0() -> None:
    """A field of protobuf that was not written reads as 0."""
    bare, told = exponential([0, 0, 5], 3, mean=0.0), exponential([0, 0, 5], 3, mean=3.0)
    found = percentiles(bare)
    assert (found.count, found.mean) == (5, None)
    assert found.p50 is not None
    assert percentiles(summed([bare, told])).mean is None
    assert percentiles(summed([told, told])).mean == 3.0
