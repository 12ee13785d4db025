"""Families as the bytes that Prometheus reads, in its text format or as OpenMetrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest as as_text
from prometheus_client.openmetrics.exposition import generate_latest as as_openmetrics

from tpusmi.exporter.catalog import COUNTER, INFO
from tpusmi.exporter.families import Family

_MAKERS = {COUNTER: CounterMetricFamily, INFO: InfoMetricFamily}


class Format(Enum):
    """A format of Prometheus, by its media type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class _Scrape:
    """What prometheus_client calls a collector."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from map(_family, self._families)


def body(families: Sequence[Family], form: Format) -> bytes:
    """The families in that format."""
    make = as_openmetrics if form is Format.OPENMETRICS else as_text
    return make(_Scrape(families))


def _family(family: Family) -> Metric:
    kind = family.kind
    make = _MAKERS.get(kind.kind, GaugeMetricFamily)
    metric: Metric = make(kind.family, kind.help)
    for labels, value in family.samples.items():
        metric.add_sample(kind.name, dict(labels), value)
    return metric


ACCEPT_MOST = 1024
"""Characters of an Accept header that are read."""


def negotiated(accept: str) -> Format:
    """The format that the header prefers; the text format where it names neither."""
    best, weight = Format.TEXT, 0.0
    for part in accept[:ACCEPT_MOST].split(","):
        media, *parameters = (word.strip() for word in part.split(";"))
        form = {
            "application/openmetrics-text": Format.OPENMETRICS,
            "text/plain": Format.TEXT,
        }.get(media.lower())
        named = dict(p.split("=", 1) for p in parameters if "=" in p)
        if form is Format.OPENMETRICS and named.get("version", "1.0.0") != "1.0.0":
            continue
        quality = _quality(named.get("q", "1"))
        if form is not None and quality > weight:
            best, weight = form, quality
    return best


def accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding header allows it."""
    for part in header[:ACCEPT_MOST].split(","):
        coding, _, weight = part.partition(";")
        if coding.strip().lower() in ("gzip", "*"):
            return _quality(weight.strip().removeprefix("q=") or "1") > 0
    return False


def _quality(text: str) -> float:
    """A weight from 0 to 1; 0 for any other text."""
    try:
        weight = float(text[:8])
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0
