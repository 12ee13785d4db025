"""The fleet as text: a table of groups, JSON or CSV; once, or again and again."""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from itertools import count

from tpusmi.cli.exits import Exit, talk
from tpusmi.cli.options import WATCH_S
from tpusmi.fleet.fleet_figures import FleetSnapshot, HostState
from tpusmi.fleet.fleet_source import FleetError, FleetSource
from tpusmi.fleet.groups.fleet_filter import filtered

Printer = Callable[[FleetSnapshot, FleetSnapshot, bool], str]
"""The text of the hosts that the filter lets through, of all hosts, and whether it is the first."""


def is_chosen(options: argparse.Namespace) -> bool:
    """True when the options select text."""
    flags = options.once or options.json or options.csv or options.format is not None
    return flags or options.loop is not None or options.count is not None


def run(options: argparse.Namespace, source: FleetSource) -> int:
    """Print the fleet once, --count times, or until interrupted. The exit code is that of the last
    time. Raises ValueError on wrong usage.
    """
    printer = _printer(options)
    every_s = _every_s(options)
    last = 1 if every_s is None else options.count
    if last == 1:
        gc.disable()  # reading makes very many objects and no garbage: looking for some costs time
    due_s = time.monotonic()
    is_first = True
    for number in count(1):
        code = Exit.SOURCE_FAILED
        try:
            whole = source.snapshot(options.time)
        except FleetError as error:
            if options.debug:
                raise
            talk(str(error))
        else:
            chosen = filtered(whole, options.filter)
            sys.stdout.write(printer(chosen, whole, is_first))
            sys.stdout.flush()
            is_first = False
            code = _exit_of(chosen, whole, options)
        if number == last:
            return code
        # Ticks are multiples of the period, so that printing does not delay the later ones.
        due_s = max(due_s + (every_s or 0.0), time.monotonic())
        time.sleep(max(0.0, due_s - time.monotonic()))
    raise AssertionError("count() ends never")


def _every_s(options: argparse.Namespace) -> float | None:
    """The period of a loop; None to print once."""
    period_s: float | None = options.loop or options.interval
    if options.once or options.time is not None or (period_s is None and options.count is None):
        return None
    return WATCH_S if period_s is None else period_s


def _exit_of(chosen: FleetSnapshot, whole: FleetSnapshot, options: argparse.Namespace) -> Exit:
    """What the hosts are, and a sentence on stderr where there is none."""
    if not whole.hosts and options.hosts is not None:
        talk(f"no host answers: {'; '.join(whole.problems[:1]) or 'the names have no addresses'}")
        return Exit.SOURCE_FAILED
    if not whole.hosts and options.time is not None:
        talk(f"{whole.source} has no host from that time: does it keep its numbers long enough?")
        return Exit.NOTHING_HERE
    if not whole.hosts:
        why = " that matches --match" if options.match else ": does it scrape tpusmi serve?"
        talk(f"{whole.source} knows no host{why}")
        return Exit.NOTHING_HERE
    if not any(h.state in (HostState.LIVE, HostState.OLD) for h in whole.hosts):
        talk(f"no host answers: {whole.hosts[0].name}: {whole.hosts[0].reason}")
        return Exit.SOURCE_FAILED
    if not chosen.hosts:
        talk(f"no host matches the filter {options.filter}")
        return Exit.NOTHING_HERE
    return Exit.ANSWERED


def _printer(options: argparse.Namespace) -> Printer:
    if options.json:
        return _json_printer(options)
    if options.csv or options.format is not None:
        return _csv_printer(options)
    return _table_printer(options)


def _json_printer(options: argparse.Namespace) -> Printer:
    import json

    from tpusmi.fleet.report.fleetkeys import to_dict

    indent = 2 if sys.stdout.isatty() and _every_s(options) is None else None
    return lambda s, whole, first: json.dumps(to_dict(s), indent=indent, allow_nan=False) + "\n"


def _csv_printer(options: argparse.Namespace) -> Printer:
    from tpusmi.fleet.report.fleet_csv import csv_text
    from tpusmi.report.query import parse_format

    layout = parse_format(options.format or "csv")
    return lambda s, whole, first: csv_text(s, layout, first)


def _table_printer(options: argparse.Namespace) -> Printer:
    from tpusmi.cli.looks import looks_of
    from tpusmi.cli.options import columns
    from tpusmi.fleet.report.fleet_table import TableOf, table
    from tpusmi.report.text_grid import Sheet

    looks = looks_of(options)
    of = TableOf(by=options.group or "job", order=options.sort or "worst", filter=options.filter)

    def text(s: FleetSnapshot, whole: FleetSnapshot, first: bool) -> str:
        drawn = table(s, whole, of, Sheet(looks.color, columns()), looks.ascii_only)
        return drawn if first else f"\n{drawn}"

    return text
