"""The dashboard of a fleet on this terminal."""

from __future__ import annotations

import argparse
import os

from tpusmi.cli.config import settings_of
from tpusmi.cli.exits import Exit, talk
from tpusmi.cli.looks import looks_of
from tpusmi.fleet.fleet_source import FleetSource
from tpusmi.interpreter import WHERE, can_start

THREADS = 4
"""Two for Textual, one that asks for the fleet, and one for a host's history."""


def run(options: argparse.Namespace, source: FleetSource, interval_s: float) -> int:
    """Show the dashboard until the user quits; the exit code."""
    from tpusmi.cli.dashboard import forget_exported_size
    from tpusmi.tui import UnusableError, run_fleet
    from tpusmi.tui.fleet.fleet_options import FleetOptions

    if not can_start(THREADS):
        talk(f"the dashboard needs threads, but they cannot be started: {WHERE}")
        return Exit.SOURCE_FAILED
    settings, looks = settings_of(options), looks_of(options)
    # The theme decides about colors. Textual would obey even an empty NO_COLOR.
    os.environ.pop("NO_COLOR", None)
    forget_exported_size()
    shown = FleetOptions(
        interval_s=interval_s,
        ascii=looks.ascii_only or settings.ascii,
        color=looks.color or (options.theme is not None and not options.no_color),
        theme=settings.theme,
        colors=settings.colors,
        keys=settings.keys,
        group=options.group or "job",
        sort=options.sort or "",
        filter=options.filter,
        at_s=options.time,
    )
    try:
        return run_fleet(source, shown)
    except UnusableError as error:
        if options.debug:
            raise
        talk(str(error))
        return Exit.NOTHING_HERE
