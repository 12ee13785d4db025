"""Where a program stands under its roof, with numbers worked out by hand from the chip table."""

from __future__ import annotations

import pytest
from support.snapshots import merge

from tpusmi.merge.roofline import COMPUTE, MEMORY, Roofline, roofline
from tpusmi.model import (
    AGENT,
    LIBTPU,
    OK,
    Device,
    DeviceKey,
    HostFacts,
    Outcome,
    Process,
    ProcessKey,
    Reading,
)

NOW = 1000.0
HOST = HostFacts("host", "2026-01-01T00:00:00.000Z", None, None)
JOB, OTHER = ProcessKey(10, 77), ProcessKey(11, 78)
BUSY = "hbm_bandwidth_utilization_percent"


def of(
    kind: str | None = "TPU v5 lite",
    flops_per_s: float | None = None,
    percent: float | None = None,
    devices: object = 8,
    age_s: float = 1.0,
    others: tuple[ProcessKey, ...] = (),
) -> Roofline:
    """The roofline of the first device of a job, and of others that compute as much on it."""
    key = DeviceKey(JOB, 0)
    device = Device(key, 0, 0, "tpu", kind, None, None, owners=(JOB, *others))
    facts = {"device_count": devices}
    processes = tuple(
        Process(who, "me", "train.py", "live", "running", NOW, 1.0, facts) for who in (JOB, *others)
    )
    readings = [
        Reading("flops_per_s", p.key, flops_per_s, NOW - age_s, AGENT, 5.0)
        for p in processes
        if flops_per_s is not None
    ]
    if percent is not None:
        readings.append(Reading(BUSY, key, percent, NOW - age_s, LIBTPU, 5.0))
    found = Outcome(AGENT, OK, readings=tuple(readings), devices=(device,), processes=processes)
    return roofline(merge([found], HOST, NOW, "0.0.0"), device)


def test_a_program_that_waits_for_memory_stands_left_of_the_ridge() -> None:
    # v5e: 197 TFLOP/s and 819 GB/s, so the ridge is at 240.5. The job computes 320 TFLOP/s on 8
    # devices, 40 on each; 80 % of the bandwidth are 655.2 GB/s; 40e12 / 655.2e9 = 61.05.
    found = of(flops_per_s=320e12, percent=80.0)
    assert found.flops_per_s == pytest.approx(40e12)
    assert found.hbm_bytes_per_s == pytest.approx(655.2e9)
    assert found.ridge_flops_per_byte == pytest.approx(240.537, abs=1e-3)
    assert found.intensity_flops_per_byte == pytest.approx(61.050, abs=1e-3)
    assert (found.bound, found.roof_ratio) == (MEMORY, pytest.approx(0.8))


def test_a_program_that_computes_a_lot_on_each_byte_stands_right_of_the_ridge() -> None:
    # v6e: 918 TFLOP/s and 1638 GB/s, ridge 560.4. 1836 TFLOP/s on 4 devices are 459 on each;
    # 25 % of the bandwidth are 409.5 GB/s; 459e12 / 409.5e9 = 1120.9; half of the peak.
    found = of("TPU v6 lite", 1836e12, 25.0, devices=4)
    assert found.ridge_flops_per_byte == pytest.approx(560.440, abs=1e-3)
    assert found.intensity_flops_per_byte == pytest.approx(1120.879, abs=1e-3)
    assert (found.bound, found.roof_ratio) == (COMPUTE, pytest.approx(0.5))


@pytest.mark.parametrize(
    ("kind", "peak", "bandwidth"),
    [
        ("TPU v2", 23e12, 358e9),
        ("TPU v3", 61.5e12, 450e9),
        ("TPU v4", 275e12, 1200e9),
        ("TPU v5", 459e12, 2765e9),
        ("TPU7x", 1153.5e12, 3690e9),
    ],
)
def test_a_device_that_is_half_of_a_chip_has_half_of_its_peaks(
    kind: str, peak: float, bandwidth: float
) -> None:
    found = of(kind, percent=100.0)
    assert (found.peak_flops_per_s, found.peak_hbm_bytes_per_s) == (peak, bandwidth)
    assert found.hbm_bytes_per_s == bandwidth


def test_a_job_that_does_more_than_the_peak_in_bf16_stands_above_the_roof() -> None:
    assert of(flops_per_s=8 * 300e12, percent=10.0).roof_ratio == pytest.approx(300 / 197)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(of(percent=80.0), id="the job counts no FLOPs"),
        pytest.param(of(flops_per_s=320e12), id="nobody measures the bandwidth"),
        pytest.param(of(None, 320e12, 80.0), id="a device of no known kind"),
        pytest.param(of("NVIDIA H100", 320e12, 80.0), id="a device that is no TPU"),
        pytest.param(of(flops_per_s=320e12, percent=80.0, devices=None), id="of how many devices?"),
        pytest.param(of(flops_per_s=320e12, percent=80.0, devices=0), id="of no device"),
        pytest.param(of(flops_per_s=320e12, percent=80.0, age_s=30.0), id="long ago"),
        pytest.param(of(flops_per_s=320e12, percent=80.0, others=(OTHER,)), id="of two jobs"),
        pytest.param(of(flops_per_s=320e12, percent=0.0), id="no byte moves"),
    ],
)
def test_where_something_is_unknown_there_is_no_place_under_the_roof(found: Roofline) -> None:
    assert found.intensity_flops_per_byte is None
    assert (found.bound, found.roof_ratio) == (None, None)


def test_what_is_known_of_a_device_is_told_without_the_rest() -> None:
    found = of(percent=50.0)
    assert found.flops_per_s is None
    assert found.hbm_bytes_per_s == pytest.approx(409.5e9)
    assert found.ridge_flops_per_byte == pytest.approx(197e12 / 819e9)
