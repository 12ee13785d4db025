"""Percentiles as Google's SDK prints them, for random distributions that it reads from a server."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import networks
from support.metric_servers import EXECUTION, labelled

from tpusmi.metricproto import messages
from tpusmi.sources.libtpu.percentiles import percentiles

SAME = 1e-4
"""0.01 %. The SDK prints two decimals, so all values are above 100."""
PLACEHOLDER = 1.0
"""What the SDK prints where no bucket holds the quantile."""
PORT = 8431

RUN = f"""
import subprocess, sys
sys.path.append(sys.argv[2])
from support.metric_servers import EXECUTION, serving
from tpusmi.metricproto import messages
answer = messages()["MetricResponse"].FromString(sys.stdin.buffer.read())
with serving({{EXECUTION: answer}}, address="127.0.0.1:{PORT}"):
    sys.exit(subprocess.run([sys.executable, "-c", sys.argv[1]]).returncode)
"""
SDK = """
import json
from libtpu.sdk import tpumonitoring as sdk
names = sdk.list_supported_metrics()
name = next(n for n in ("hlo_execution_timing", "hlo_exec_timing") if n in names)
print(json.dumps(list(sdk.get_metric(name).data())))
"""


def sdk_rows(distributions: list[Any]) -> dict[int, list[float]]:
    """Mean and percentiles by index of the distribution: those that the SDK prints at all."""
    answer = messages()["MetricResponse"]()
    answer.metric.name = EXECUTION
    for i, distribution in enumerate(distributions):
        row = labelled(answer.metric.metrics.add(), device_ordinal=str(i), core_type="tensorcore")
        row.distribution.CopyFrom(distribution)
    tests = str(Path(__file__).parent.parent)
    said = subprocess.run(
        networks.alone(sys.executable, "-c", RUN, SDK, tests),
        input=answer.SerializeToString(),
        env={**os.environ, "TPU_SKIP_MDS_QUERY": "1"},
        capture_output=True,
        timeout=60,
    )
    assert said.returncode == 0, said.stderr.decode()
    rows = {}
    for text in json.loads(said.stdout):
        label, *numbers = text.split(", ")
        rows[int(label.partition("-")[0])] = [float(n) for n in numbers]
    return rows


def random_counts(chance: random.Random, size: int) -> list[int]:
    most = chance.choice([1, 3, 50, 10**4, 10**9])
    filled = chance.choice([0.05, 0.3, 1.0])
    return [chance.randint(1, most) if chance.random() < filled else 0 for _ in range(size)]


def random_exponential(chance: random.Random) -> Any:
    made = messages()["Distribution"]()
    buckets = made.bucket_options.exponential_buckets
    buckets.growth_factor = growth = chance.choice([1.05, 1.2, 1.5, 2.0, 4.0])
    buckets.num_finite_buckets = finite = chance.randint(1, 60 if growth < 2 else 20)
    buckets.scale = chance.uniform(1000, 50_000)
    made.bucket_counts.extend(random_counts(chance, finite + 2))
    made.count = sum(made.bucket_counts)
    if chance.random() < 0.2:  # counts that do not add up
        made.count = max(0, made.count + chance.randint(-5, 5))
    made.mean = chance.uniform(1000, 1e6)
    return made


def random_other(chance: random.Random) -> Any:
    made = messages()["Distribution"](mean=500.0, bucket_counts=random_counts(chance, 12))
    made.count = sum(made.bucket_counts)
    options = made.bucket_options
    kind = chance.choice(["linear", "explicit", "regular", "none"])
    if kind == "linear":
        options.linear_buckets.num_finite_buckets = 10
        options.linear_buckets.width, options.linear_buckets.offset = 100, 500
    elif kind == "explicit":
        options.explicit_buckets.bounds.extend(range(100, 1200, 100))
    elif kind == "regular":
        options.regular_buckets.num_finite_buckets = 10
        options.regular_buckets.bounds.add(width=100, offset=500)
    return made


def test_percentiles_are_those_of_the_sdk() -> None:
    chance = random.Random(8431)
    made = [random_exponential(chance) for _ in range(400)]
    rows = sdk_rows(made)
    assert rows.keys() == {i for i, d in enumerate(made) if d.count}
    for i, (mean, *printed) in rows.items():
        ours = percentiles(made[i])
        assert ours.mean == pytest.approx(mean, rel=SAME)
        for value, number in zip((ours.p50, ours.p90, ours.p95, ours.p999), printed, strict=True):
            if value is None:
                assert number == PLACEHOLDER
            else:
                assert value == pytest.approx(number, rel=SAME), made[i]


def test_the_figures_of_the_issue_are_those_of_the_sdk() -> None:
    made = messages()["Distribution"](count=1000, mean=321.0)
    buckets = made.bucket_options.exponential_buckets
    buckets.num_finite_buckets, buckets.growth_factor, buckets.scale = 30, 1.5, 1.0
    counts = [0] * 32
    counts[10], counts[12], counts[20] = 500, 400, 100
    made.bucket_counts.extend(counts)
    assert sdk_rows([made]) == {0: [321.0, 86.50, 2216.84, 2771.05, 3314.17]}


def test_the_sdk_reads_no_other_buckets_and_rows_beside_them_are_safe() -> None:
    chance = random.Random(1)
    others = [random_other(chance) for _ in range(20)]
    good = random_exponential(chance)
    assert sdk_rows([*others, good]).keys() == {20}
