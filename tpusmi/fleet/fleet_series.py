"""Which of an exporter's series the fleet view reads, and which metric of the model each one is."""

from typing import NamedTuple

from tpusmi.exporter.catalog import KINDS
from tpusmi.model import CHIP, CHIP_METRICS, DEVICE, DEVICE_METRICS, PROCESS, PROCESS_METRICS
from tpusmi.model.series_names import PREFIX, SERIES


class MetricSeries(NamedTuple):
    """The metric that a series holds."""

    scope: str
    """CHIP, DEVICE or PROCESS."""
    metric: str
    """Its name in the model: `hbm_used_bytes`."""
    factor: float
    """A value of the series is one of the model times this."""


def series(*names: str) -> tuple[str, ...]:
    """The full names of these series. Raises KeyError for one that exporters do not have."""
    return tuple(KINDS[f"{PREFIX}{name}"].name for name in names)


_OTHERS = series(
    "build_info",
    "host_info",
    "host_uptime_seconds",
    "chip_info",
    "device_info",
    "process_info",
    "slice_info",
    "chip_holders",
    "ici_link_health",
    "slice_expected_processes",
    "process_phase",
    "process_state",
    "process_verdict",
    "notice",
    "notice_age_seconds",
    "snapshot_timestamp_seconds",
)
STATES = series("process_phase", "process_state", "process_verdict")
"""Series with a sample for each state, of which only that with the value 1 says something."""
OF_METRIC = {
    SERIES[m].name: MetricSeries(scope, m.name, SERIES[m].factor)
    for scope, metrics in (
        (CHIP, CHIP_METRICS),
        (DEVICE, DEVICE_METRICS),
        (PROCESS, PROCESS_METRICS),
    )
    for m in metrics
}
CHIPS, HOLDERS = series("chip_info", "chip_holders")
OF_CHIPS = tuple(label for label in KINDS[CHIPS].labels if label != "chip")
"""Labels of CHIPS that HOLDERS has not."""
FLEET_SERIES = (*OF_METRIC, *_OTHERS)
"""The names of all series that are read."""
(STAMP,) = series("snapshot_timestamp_seconds")
"""The time of an exporter's numbers. Each has one sample of it, with no labels but its own."""

SHOWN_OF_DEVICES = (
    "hbm_used_bytes",
    "hbm_limit_bytes",
    "tensorcore_utilization_percent",
    "duty_cycle_percent",
    "hbm_bandwidth_utilization_percent",
    "idle_s",
)
SHOWN_OF_PROCESSES = ("steps", "step_time_s.mean", "since_last_step_s", "mfu_percent")
SHOWN_METRICS = (*SHOWN_OF_DEVICES, "throttle_percent", *SHOWN_OF_PROCESSES)
"""Metrics of the model that a snapshot of thousands of chips has. The others are read for one host
at a time.
"""
SHOWN_SERIES = tuple(
    name
    for name in FLEET_SERIES
    if name not in OF_METRIC or OF_METRIC[name].metric in SHOWN_METRICS
)
