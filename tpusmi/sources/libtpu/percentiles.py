"""Percentiles of a distribution, computed as Google's SDK does. Pure.

Measured on the SDK of libtpu 0.0.42.1, which knows exponential buckets only and drops the rest;
the other kinds are walked in the same way.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tpusmi.model import Percentiles, within
from tpusmi.sources.libtpu.names import VALUE_MOST

BUCKETS_MOST = 4096
_QUANTILES = (0.5, 0.9, 0.95, 0.999)


class _Buckets(NamedTuple):
    """How many buckets are walked, and where each begins and ends."""

    walked: int
    bounds: Callable[[int], tuple[float, float]]


def percentiles(distribution: Any) -> Percentiles:
    """The percentiles of a Distribution message.

    None for values that cannot be known: all of them when the count is 0, a percentile that falls
    into no bucket, every percentile when the buckets make no sense, a missing mean.
    """
    count = distribution.count
    if count <= 0:
        return Percentiles._make((0, *[None] * 5))
    quantiles: list[float | None] = [None] * len(_QUANTILES)
    counts = distribution.bucket_counts
    buckets = _buckets(distribution.bucket_options)
    if buckets is not None and len(counts) <= BUCKETS_MOST and min(counts, default=0) >= 0:
        try:
            quantiles = _walk(counts, count, buckets)
        except (OverflowError, ValueError):  # bounds beyond what a float holds
            pass
    # A mean of 0 is a missing one: a field of protobuf without a value reads as 0.
    mean = distribution.mean or None
    return Percentiles._make((count, *(within(v, VALUE_MOST) for v in (mean, *quantiles))))


def summed(distributions: Sequence[Any]) -> Any | None:
    """One Distribution of them all; None when their buckets differ, which cannot be added up, and
    when there are too many.
    """
    first = distributions[0]
    if len(distributions) == 1:
        return first
    if any(len(d.bucket_counts) > BUCKETS_MOST for d in distributions):
        return None
    options = first.bucket_options.SerializeToString(deterministic=True)
    if any(
        d.bucket_options.SerializeToString(deterministic=True) != options for d in distributions
    ):
        return None
    total = type(first)()
    total.bucket_options.CopyFrom(first.bucket_options)
    counts = [0] * max(len(d.bucket_counts) for d in distributions)
    for d in distributions:
        for i, n in enumerate(d.bucket_counts):
            counts[i] += n
    filled = [d for d in distributions if d.count > 0]
    count = sum(d.count for d in filled)
    try:
        total.bucket_counts.extend(counts)
        total.count = count
    except ValueError:  # beyond int64
        return None
    if all(d.mean for d in filled):  # else the mean of one is missing
        total.mean = sum(d.mean * (d.count / count) for d in filled)
    return total


def _walk(counts: Sequence[int], count: int, buckets: _Buckets) -> list[float | None]:
    """From the top bucket down to the rank of each quantile, then linearly into that bucket."""
    quantiles: list[float | None] = []
    targets = [int(count * q) for q in _QUANTILES]
    left = count
    for i in range(min(buckets.walked, len(counts)) - 1, -1, -1):
        if not targets:
            break
        left -= counts[i]
        while targets and left <= targets[-1]:
            lower, upper = buckets.bounds(i)
            share = (targets.pop() - left) / counts[i]
            quantiles.append(lower + share * (upper - lower))
    quantiles += [None] * len(targets)  # the SDK prints 1.00 here, and measured nothing
    return quantiles[::-1]


def _buckets(options: Any) -> _Buckets | None:
    """The buckets that options describe; None when they make no sense."""
    kind = options.WhichOneof("options")
    if kind == "exponential_buckets":
        return _exponential(options.exponential_buckets)
    if kind == "linear_buckets":
        linear = options.linear_buckets
        return _linear(linear.width, linear.offset, linear.num_finite_buckets)
    if kind == "explicit_buckets":
        return _between(options.explicit_buckets.bounds)
    if kind == "regular_buckets":
        return _regular(options.regular_buckets)
    return None


def _exponential(options: Any) -> _Buckets | None:
    growth, scale = options.growth_factor, options.scale
    if not (1 < growth < math.inf and 0 < scale < math.inf):
        return None

    def bounds(i: int) -> tuple[float, float]:
        return scale * growth ** (i - 1), scale * growth**i

    # Counts are [underflow, finite…, overflow], but the SDK begins at index num_finite_buckets - 1:
    # it never sees the last finite bucket and the overflow, and takes the underflow for a bucket.
    return _Buckets(options.num_finite_buckets, bounds)


def _linear(width: float, offset: float, finite: int) -> _Buckets | None:
    if not 1 <= finite <= BUCKETS_MOST:
        return None
    return _between([offset + width * i for i in range(finite + 1)])


def _between(edges: Sequence[float]) -> _Buckets | None:
    """Buckets between ascending edges; what is below or above them all counts as their edge."""
    last = len(edges) - 1
    if last < 0 or last > BUCKETS_MOST or not all(map(math.isfinite, edges)):
        return None
    if any(a >= b for a, b in itertools.pairwise(edges)):
        return None

    def bounds(i: int) -> tuple[float, float]:
        return edges[max(0, i - 1)], edges[min(i, last)]

    return _Buckets(last + 2, bounds)


def _regular(options: Any) -> _Buckets | None:
    """One bound is a linear scale; several are the finite buckets one by one."""
    bounds = options.bounds
    if len(bounds) == 1:
        return _linear(bounds[0].width, bounds[0].offset, options.num_finite_buckets)
    if not 0 < len(bounds) <= BUCKETS_MOST:
        return None
    return _between([*(b.offset for b in bounds), bounds[-1].offset + bounds[-1].width])
