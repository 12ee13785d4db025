"""What each series of an exporter says of a host: which item it is about, and which field of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from tpusmi.exporter.catalog import KINDS, OF_NOTICE, OF_SCOPE
from tpusmi.fleet.fleet_series import OF_METRIC
from tpusmi.model import CHIP, PROCESS, metric
from tpusmi.model.series_names import PREFIX, converted

HOST, LINK, NOTICE = "host", "link", "notice"
HOLDERS, PROBLEMS, AGE, HEALTH, AT, UPTIME = (
    "holders", "problems", "age_s", "health", "at_s", "uptime_s",
)  # fmt: skip
"""Names of numbers that are not metrics of the model."""
NUMBER_MOST = 1e18
"""A larger number is not believed."""
RATE_MOST = 100.5
"""No device can do more than all of it: more is a mistake, as in `sources/libtpu/names.py`."""
_RATES = (
    "tensorcore_utilization_percent",
    "duty_cycle_percent",
    "hbm_bandwidth_utilization_percent",
    "throttle_percent",
)


class Part(Enum):
    """What a sample adds to its item."""

    NUMBER = "number"
    FACTS = "facts"
    """Its labels, if the number is at least 1."""
    WORD = "word"
    """The value of one label, if the number is 1."""


class SampleRead(NamedTuple):
    """How the samples of a series are read."""

    scope: str
    identity: tuple[str, ...]
    """The labels that say which item of that scope it is."""
    part: Part
    field: str = ""
    """Name of the number, or the label that has the word."""
    factor: float = 1.0
    """The number in the series times this is the one in the model."""
    most: float = NUMBER_MOST
    """A larger number is not believed."""
    is_whole: bool = False

    def number(self, value: float) -> float | None:
        """The value in the unit of the model; None for a number that cannot be."""
        if not 0 <= value <= NUMBER_MOST:  # NaN as well
            return None
        number = converted(value, self.factor)
        if number > self.most:
            return None
        return math.floor(number + 0.5) if self.is_whole else number


def _metrics() -> Mapping[str, SampleRead]:
    return {
        name: SampleRead(
            scope=series.scope,
            identity=OF_SCOPE[series.scope],
            part=Part.NUMBER,
            field=series.metric,
            factor=1.0 if series.factor == 1.0 else converted(1.0, 1 / series.factor),
            most=RATE_MOST if series.metric in _RATES else NUMBER_MOST,
            is_whole=metric(series.scope, series.metric).is_integer,
        )
        for name, series in OF_METRIC.items()
    }


def _facts(scope: str) -> SampleRead:
    return SampleRead(scope, OF_SCOPE.get(scope, ()), Part.FACTS)


def _number(scope: str, field: str, identity: tuple[str, ...], *, whole: bool) -> SampleRead:
    return SampleRead(scope, identity, Part.NUMBER, field, is_whole=whole)


# fmt: off
_OTHERS = {
    "host_info": _facts(HOST),
    "chip_info": _facts(CHIP),
    "device_info": _facts("device"),
    "process_info": _facts(PROCESS),
    "slice_info": _facts(PROCESS),
    "slice_expected_processes": SampleRead(PROCESS, OF_SCOPE[PROCESS], Part.FACTS),
    "process_phase": SampleRead(PROCESS, OF_SCOPE[PROCESS], Part.WORD, "phase"),
    "process_state": SampleRead(PROCESS, OF_SCOPE[PROCESS], Part.WORD, "state"),
    "process_verdict": SampleRead(PROCESS, OF_SCOPE[PROCESS], Part.WORD, "verdict"),
    "chip_holders": _number(CHIP, HOLDERS, OF_SCOPE[CHIP], whole=True),
    "ici_link_health": _number(LINK, HEALTH, ("chip", "link"), whole=True),
    "notice": _number(NOTICE, PROBLEMS, OF_NOTICE, whole=True),
    "notice_age_seconds": _number(NOTICE, AGE, OF_NOTICE, whole=False),
    "host_uptime_seconds": _number(HOST, UPTIME, (), whole=False),
    "snapshot_timestamp_seconds": _number(HOST, AT, (), whole=False),
}
# fmt: on
READS = {**_metrics(), **{KINDS[f"{PREFIX}{name}"].name: read for name, read in _OTHERS.items()}}
"""By the names of the series."""
