"""The times that libtpu reports as distributions: of programs, and of the network between hosts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

FINITE_BUCKETS, GROWTH = 60, 1.35
BUFFER_SIZES = {"8MB+": 1.0, "4MB+": 0.24}
"""Sizes of buffers, and how their times compare."""


class Spread(NamedTuple):
    """A distribution: median, how wide (the logarithm's deviation), how many a step, its scale."""

    median: float
    width: float
    per_step: float
    scale: float = 1.0


Spreads = list[tuple[dict[str, str], Spread]]
"""The rows of a latency, each with its labels."""


def _by_size(spread: Spread) -> Spreads:
    return [
        ({"buffer_size": size}, spread._replace(median=spread.median * share))
        for size, share in BUFFER_SIZES.items()
    ]


EXECUTION = Spread(760_000, 0.06, 1, 100)
"""Times of programs; their median is the workload's."""
LATENCIES: dict[str, Spreads] = {
    "buffer_transfer_latency_us": _by_size(Spread(44_000, 0.45, 4, 10)),
    "inbound_buffer_transfer_latency_us": _by_size(Spread(18_900, 0.5, 4, 10)),
    "host_to_device_transfer_latency_us": _by_size(Spread(6_200, 0.35, 2)),
    "device_to_host_transfer_latency_us": _by_size(Spread(5_100, 0.4, 2)),
    "host_compute_latency_us": _by_size(Spread(1_000, 0.9, 1)),
    "collective_e2e_latency_us": [
        ({"buffer_size": "2MB+", "collective_type": "ALL_REDUCE"}, Spread(31_000, 0.4, 2, 10)),
        ({"buffer_size": "8MB+", "collective_type": "ALL_GATHER"}, Spread(74_000, 0.35, 1, 10)),
    ],
    "tcp_min_rtt_us": [({}, Spread(36, 0.22, 3))],
    "tcp_delivery_rate_mbps": [({}, Spread(12_300, 0.45, 3, 10))],
    "grpc_client_call_latency_us": [({}, Spread(820, 0.6, 5))],
    "grpc_server_call_latency_us": [({}, Spread(510, 0.6, 5))],
}


def fill(distribution: Any, parts: Sequence[tuple[Spread, int]]) -> None:
    """Log-normal distributions in exponential buckets, each as it has come about in so many steps.

    Under- and overflow and the last finite bucket stay empty: libtpu's SDK forgets them.
    """
    counts = [0] * (FINITE_BUCKETS + 2)
    scale, total = parts[0][0].scale, 0.0
    for spread, steps in parts:
        before = sum(counts)
        _add_counts(counts, spread, steps * spread.per_step)
        total += (sum(counts) - before) * spread.median * math.exp(spread.width**2 / 2)
    distribution.count = sum(counts)
    distribution.mean = total / distribution.count if distribution.count else 0
    distribution.bucket_counts.extend(counts)
    buckets = distribution.bucket_options.exponential_buckets
    buckets.num_finite_buckets, buckets.growth_factor = FINITE_BUCKETS, GROWTH
    buckets.scale = scale


def _add_counts(counts: list[int], spread: Spread, count: float) -> None:
    middle, below = math.log(spread.median / spread.scale), 0.0
    for bucket in range(1, FINITE_BUCKETS):
        deviation = (bucket * math.log(GROWTH) - middle) / spread.width
        up_to = 0.5 * (1 + math.erf(deviation / math.sqrt(2)))
        counts[bucket] += round(count * up_to) - round(count * below)
        below = up_to
