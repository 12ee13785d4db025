"""Whom `tpusmi fleet` asks, by its options."""

from __future__ import annotations

import argparse

from tpusmi.fleet.fleet_source import FleetError, FleetSource
from tpusmi.text import clean

PACKAGES = {"yaml": "tpusmi[serve]"}
"""What to install for a module that is missing: of --http-config."""


class SourceUsageError(ValueError):
    """Why an option names no fleet, in a sentence without credentials."""


def source_of(options: argparse.Namespace, for_dashboard: bool) -> FleetSource:
    """The source, for one look or for many. Nothing is asked yet. Raises SourceUsageError, and
    ImportError if a package is missing.
    """
    if options.simulate is not None:
        from tpusmi.fleet.simulated.simulated_fleet import SimulatedFleet

        try:
            return SimulatedFleet(options.simulate)
        except FleetError as error:
            raise SourceUsageError(f"--simulate: {error}") from None
    if options.hosts is not None:
        return _exporters(options, for_dashboard)
    return _prometheus(options, for_dashboard)


def _exporters(options: argparse.Namespace, for_dashboard: bool) -> FleetSource:
    from tpusmi.fleet.exporters.exporters_fleet import ExporterFleet

    try:
        return ExporterFleet(options.hosts, options.http_config, is_patient=not for_dashboard)
    except FleetError as error:
        raise SourceUsageError(str(error)) from None


def _prometheus(options: argparse.Namespace, for_dashboard: bool) -> FleetSource:
    from tpusmi.fleet.prometheus.prometheus_fleet import PrometheusFleet

    try:
        return PrometheusFleet(
            options.prometheus, options.match, options.http_config, is_patient=not for_dashboard
        )
    except FleetError as error:
        raise SourceUsageError(str(error)) from None


def why_missing(error: ImportError) -> str:
    """The sentence about a package that is not installed."""
    name = (error.name or "").partition(".")[0]
    if name in PACKAGES:
        return f"{name} is not installed here: pip install '{PACKAGES[name]}'"
    return f"the fleet view cannot be loaded: {clean(str(error), 160)}"
