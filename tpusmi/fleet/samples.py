"""One number with a name and labels, as Prometheus and an exporter both give it."""

from collections.abc import Mapping
from typing import NamedTuple


class SeriesSample(NamedTuple):
    """A sample. NaN and infinite values are left out by those who make samples."""

    name: str
    """As in `tpusmi.exporter.catalog.KINDS`."""
    labels: Mapping[str, str]
    """Its exporter's, and those that Prometheus added: `instance`, `job` and the like."""
    value: float
