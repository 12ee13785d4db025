"""What each metric is called in Prometheus, in which unit, and how its value is converted. Pure.

Derived from the table of metrics: base units, `_bytes`, `_seconds`, `_ratio` from 0 to 1, and
`_total` for what only grows.
"""

from typing import NamedTuple

from tpusmi.model.metrics import CHIP, METRICS, PROCESS, Metric

EXPORTER_PORT, METRICS_PATH = 8781, "/metrics"
"""The port on which `tpusmi serve` listens by default, and the path of its numbers."""
PREFIX = "tpusmi_"
_SCOPES = {CHIP: "chip_", PROCESS: "process_"}
"""Before the names of scopes other than the device's, which many names share: a sum over one name
counts nothing twice.
"""
_ENDINGS = (
    ("_percent", "_ratio", 0.01),
    ("_per_s", "_per_second", 1.0),
    ("_us", "_seconds", 1e-6),
    ("_mbps", "_bytes_per_second", 125_000.0),
    ("_s", "_seconds", 1.0),
)
"""Ending of a name in JSON, the ending in Prometheus, and the factor. The first that fits."""


class SeriesName(NamedTuple):
    """A metric as Prometheus has it."""

    name: str
    """With `_total` for a counter."""
    factor: float
    is_counter: bool
    help: str

    def converted(self, value: float) -> float:
        """The value in the base unit. It keeps its type where that is the metric's own."""
        return converted(value, self.factor)


def converted(value: float, factor: float) -> float:
    """The product, without the last digits, which 29 * 0.01 gets wrong."""
    return value if factor == 1.0 else float(f"{value * factor:.12g}")


def series_name(m: Metric) -> SeriesName:
    """What that metric is called: `tpusmi_hbm_used_bytes`, `tpusmi_process_step_time_p95_seconds`.

    A part after a dot comes before the unit.
    """
    stem, factor = in_base_unit(m.name)
    ending = "_total" if m.only_grows else ""
    return SeriesName(
        name=f"{PREFIX}{_SCOPES.get(m.scope, '')}{stem}{ending}",
        factor=factor,
        is_counter=m.only_grows,
        help=m.help,
    )


def in_base_unit(name: str) -> tuple[str, float]:
    """The name with the base unit at its end, and the factor to that unit: `tcp_min_rtt_us.p50`
    is `tcp_min_rtt_p50_seconds` and a millionth.
    """
    stem, _, part = name.partition(".")
    middle = f"_{part}" if part else ""
    for ending, unit, factor in _ENDINGS:
        if stem.endswith(ending):
            return f"{stem.removesuffix(ending)}{middle}{unit}", factor
    return f"{stem}{middle}", 1.0


SERIES = {m: series_name(m) for m in METRICS}
