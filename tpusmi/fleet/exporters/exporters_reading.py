"""Asks one exporter, and makes a host of what it says."""

from __future__ import annotations

import time
from collections.abc import Set
from threading import BoundedSemaphore

from tpusmi.fleet.exporters.exporter_addresses import Exporter
from tpusmi.fleet.exporters.exporter_record import ExporterReading
from tpusmi.fleet.exporters.exposition_text import ExpositionError, samples_in
from tpusmi.fleet.fleet_series import STAMP
from tpusmi.fleet.hosts.from_samples import hosts_from
from tpusmi.fleet.http.http_config import HttpConfig
from tpusmi.fleet.http.http_reading import HttpError, HttpLengthError, HttpRoomError, get
from tpusmi.fleet.samples import SeriesSample
from tpusmi.model.series_names import PREFIX

USUAL_BYTES = 256 * 1024
LARGE_BYTES = 4 << 20
LARGE_AT_ONCE = 4
"""A host with 64 processes can have a long text. Many strangers must not fill the memory."""
ACCEPT = "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5"
_HOST_INFO = f"{PREFIX}host_info"

_large = BoundedSemaphore(LARGE_AT_ONCE)


class ExporterError(Exception):
    """Why there are no numbers of a host: a sentence without credentials."""


class NotAskedError(ExporterError):
    """The exporter was not asked: there are no files, memory or threads left for that here."""


def read(
    exporter: Exporter, config: HttpConfig, until_s: float, names: Set[str], is_large: bool
) -> tuple[ExporterReading, bool]:
    """What the exporter says of its host, and whether its answer is a long one. `until_s` is of
    time.monotonic(). Raises ExporterError, NotAskedError if this process is the reason.
    """
    try:
        if not is_large:
            try:
                return _read(exporter, config, until_s, names, USUAL_BYTES), False
            except HttpLengthError:
                pass
        if not _large.acquire(timeout=max(0.0, until_s - time.monotonic())):
            raise ExporterError("its answer is long, and others are read first")
        try:
            return _read(exporter, config, until_s, names, LARGE_BYTES), True
        finally:
            _large.release()
    except HttpRoomError as error:
        raise NotAskedError(str(error)) from None
    except (HttpError, ExpositionError) as error:
        raise ExporterError(str(error)) from None


def _read(
    exporter: Exporter, config: HttpConfig, until_s: float, names: Set[str], most_bytes: int
) -> ExporterReading:
    answer = get(exporter.server, exporter.path, config, until_s, most_bytes, ACCEPT)
    address = str(exporter)
    samples = samples_in(answer.body, answer.content_type, names)
    for sample in samples:
        sample.labels["instance"] = address  # type: ignore[index]  # a dict of its own
    at_s = next((s.value for s in samples if s.name == STAMP), None)
    hosts = hosts_from(samples, time.time() if at_s is None else at_s)
    if len(hosts) > 1:
        raise ExporterError(f"it reports {len(hosts)} hosts: is it a Prometheus? see --prometheus")
    if not hosts:
        raise ExporterError("it has no numbers of a host")
    return ExporterReading(host=hosts[0], at_s=at_s, identity=_identity(samples))


def _identity(samples: list[SeriesSample]) -> tuple[str, ...] | None:
    """Name, slice and boot of the machine. Simulated hosts have the boot of the real one."""
    for sample in samples:
        if sample.name == _HOST_INFO:
            labels = sample.labels
            if labels.get("simulated") == "true" or not labels.get("boot_id"):
                return None
            return labels.get("host", ""), labels.get("slice", ""), labels["boot_id"]
    return None
