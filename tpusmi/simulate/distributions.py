"""The distributions of a simulated job: how long things take, in libtpu's buckets."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

FINITE_BUCKETS, GROWTH = 60, 1.35


class Spread(NamedTuple):
    """A distribution: median, how wide (the logarithm's deviation), how many a step, its scale."""

    median: float
    width: float
    per_step: float
    scale: float = 1.0


SIZES = {"8MB+": 1.0, "4MB+": 0.24}
"""Sizes of buffers, and how their times compare."""
BY_SIZE = {
    "buffer_transfer_latency_us": Spread(44_000, 0.45, 4, 10),
    "inbound_buffer_transfer_latency_us": Spread(18_900, 0.5, 4, 10),
    "host_to_device_transfer_latency_us": Spread(6_200, 0.35, 2),
    "device_to_host_transfer_latency_us": Spread(5_100, 0.4, 2),
    "host_compute_latency_us": Spread(1_000, 0.9, 1),
}
COLLECTIVE = "collective_e2e_latency_us"
COLLECTIVES = {
    ("2MB+", "ALL_REDUCE"): Spread(31_000, 0.4, 2, 10),
    ("8MB+", "ALL_GATHER"): Spread(74_000, 0.35, 1, 10),
}
PLAIN = {
    "tcp_min_rtt_us": Spread(36, 0.22, 3),
    "tcp_delivery_rate_mbps": Spread(12_300, 0.45, 3, 10),
    "grpc_client_call_latency_us": Spread(820, 0.6, 5),
    "grpc_server_call_latency_us": Spread(510, 0.6, 5),
}
EXECUTION = Spread(760_000, 0.06, 1, 100)


def fill(distribution: Any, spread: Spread, steps: int) -> None:
    """A log-normal distribution in exponential buckets, as it has come about in so many steps.

    Under- and overflow and the last finite bucket stay empty: libtpu's SDK forgets them.
    """
    wanted = steps * spread.per_step
    counts = [0] * (FINITE_BUCKETS + 2)
    middle, below = math.log(spread.median / spread.scale), 0.0
    for bucket in range(1, FINITE_BUCKETS):
        deviation = (bucket * math.log(GROWTH) - middle) / spread.width
        up_to = 0.5 * (1 + math.erf(deviation / math.sqrt(2)))
        counts[bucket] = round(wanted * up_to) - round(wanted * below)
        below = up_to
    distribution.count = sum(counts)
    distribution.mean = spread.median * math.exp(spread.width**2 / 2) if distribution.count else 0
    distribution.bucket_counts.extend(counts)
    buckets = distribution.bucket_options.exponential_buckets
    buckets.num_finite_buckets, buckets.growth_factor = FINITE_BUCKETS, GROWTH
    buckets.scale = spread.scale


def spreads(metric: str) -> list[tuple[dict[str, str], Spread]]:
    """Labels and distribution of each row of a latency."""
    if metric in PLAIN:
        return [({}, PLAIN[metric])]
    if metric in BY_SIZE:
        spread = BY_SIZE[metric]
        return [
            ({"buffer_size": size}, spread._replace(median=spread.median * share))
            for size, share in SIZES.items()
        ]
    return [
        ({"buffer_size": size, "collective_type": kind}, spread)
        for (size, kind), spread in COLLECTIVES.items()
    ]
