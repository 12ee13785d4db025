"""`tpusmi fleet`: many hosts at once, as a Prometheus server or their exporters know them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tpusmi.cli.argument_types import count, interval, past_time, period, setting
from tpusmi.cli.exits import Exit, end_on_signals, talk
from tpusmi.cli.options import LOOP_DEFAULT_S, WATCH_S, add_colors, flag, parser_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.fleet.fleet_source import FleetSource

DESCRIPTION = """Show many hosts at once: grouped by job, slice or host, as a heat map, the topology
of a slice, and each host with its history. The numbers come from tpusmi serve on each host, through
a Prometheus server that scrapes it, or directly."""
USAGE = "--prometheus URL | --hosts LIST | --simulate SPEC [options]"
INTERVAL_S = 5.0
"""Prometheus scrapes a few times a minute."""
NO_SOURCE = """which fleet?
  tpusmi fleet --prometheus http://prometheus:9090          all that a Prometheus server knows
  tpusmi fleet --hosts tpu-vm-0:8781,tpu-vm-1:8781          exporters, without Prometheus
  tpusmi fleet --hosts @tpu-workers                         all addresses of that name
  tpusmi fleet --simulate v5e-256,v5p-128*2                 a simulated fleet, to try it"""
EPILOG = """
On a terminal it shows a dashboard; elsewhere, and with --once, it prints a table of groups.
docs/fleet.md explains both, and all forms of an address.

  tpusmi fleet --prometheus http://prometheus:9090 --match 'cluster="a"'
  tpusmi fleet --hosts hosts.txt --group host --sort memory --once
  tpusmi fleet --prometheus http://prometheus:9090 --time 2h --once
  tpusmi fleet --simulate 16 --filter 'mxu<30' --csv

exit codes: 0 success, 1 no host (with --filter: none matches), or a package is missing, 2 usage,
4 the server does not answer, or no host does, 74 cannot write, 130 interrupted
"""


def run(arguments: Sequence[str]) -> int:
    """Show the fleet until the user quits, or print it. The exit code."""
    parse = parser()
    options = parse.parse_args(arguments)
    if (options.prometheus, options.hosts, options.simulate) == (None, None, None):
        talk(NO_SOURCE)
        return Exit.USAGE
    _check(parse, options)
    end_on_signals(Exit.INTERRUPTED)
    source = _source(parse, options)
    if isinstance(source, str):
        talk(source)
        return Exit.NOTHING_HERE
    try:
        return _show(parse, options, source)
    finally:
        source.close()


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi fleet`."""
    p = parser_of("tpusmi fleet", USAGE, DESCRIPTION, EPILOG)
    _add_sources(p.add_argument_group("fleet"))
    _add_choices(p.add_argument_group("what to show"))
    _add_output(p.add_argument_group("output"))
    return p


# fmt: off
def _add_sources(group: argparse._ArgumentGroup) -> None:
    g = group.add_mutually_exclusive_group()
    g.add_argument("--prometheus", metavar="URL",
        help="a Prometheus server, or another with its HTTP API, such as http://prometheus:9090")
    g.add_argument("--hosts", metavar="LIST",
        help="exporters: a comma-separated list of HOST[:PORT], tpu-vm-[0-63] for a range, "
        "@NAME[:PORT] for each address of a name, such as a headless service; or a file, one per "
        "line")
    g.add_argument("--simulate", metavar="SPEC",
        help="a simulated fleet: a number of hosts (16), or slices (v5e-256,v5p-128*2)")
    group.add_argument("--match", action="append", default=[], metavar="SELECTOR",
        help="only series with these labels, as in a query: cluster=\"a\",slice=~\"v5p.*\"; "
        "repeatable: all must match")
    group.add_argument("--http-config", "--http.config.file", metavar="FILE",
        help="credentials and certificates: a file in the form of Prometheus' http_config, as "
        "promtool takes it")


def _add_choices(g: argparse._ArgumentGroup) -> None:
    g.add_argument("--time", "--at", type=past_time, metavar="TIME",
        help="as it was at that time: 2026-07-28T09:30:00Z (RFC 3339), Unix seconds, or that long "
        "ago: 5m, 2h30m")
    g.add_argument("--group", choices=("job", "slice", "host"), metavar="{job,slice,host}",
        help="how to group the hosts (default: job)")
    g.add_argument("--sort", metavar="ORDER",
        help="order of the groups: worst (the default), name, hosts, chips, memory, mxu, duty, "
        "bandwidth, idle, step or problems")
    g.add_argument("--filter", default="", metavar="FILTER",
        help="only hosts that match: a word, job=, slice=, host=, user=, down, old, mxu<30, !WORD")


def _add_output(group: argparse._ArgumentGroup) -> None:
    g = group.add_mutually_exclusive_group()
    flag(g, "-1", "--once", help="print one plain table")
    flag(g, "--json", help="print one JSON object; with --loop, one per line")
    flag(g, "--csv", help="print a line for each device")
    group.add_argument("--format", metavar="csv[,noheader][,nounits]",
        help="--csv, without the names of the columns or without units")
    group.add_argument("-l", "--loop", nargs="?", type=period, const=LOOP_DEFAULT_S,
        metavar="SECONDS", help=f"print again and again (default: every {LOOP_DEFAULT_S:.0f} s)")
    group.add_argument("--count", type=count, metavar="N",
        help=f"stop after printing N times; without --loop, every {WATCH_S:.0f} s")
    group.add_argument("-i", "--interval", type=interval, metavar="SECONDS",
        help=f"refresh interval of the dashboard (default: {INTERVAL_S:.0f} s); for printed output "
        "the same as --loop")
    group.add_argument("--theme", type=lambda text: setting("theme", text), metavar="NAME",
        help="theme of the dashboard: dark, light, colorblind, ansi or mono")
    group.add_argument("--config", metavar="PATH",
        help="settings file of the dashboard: its theme, colors and keys (also TPUSMI_CONFIG)")
    flag(group, "--debug", help="show tracebacks")
    add_colors(group)
    group.set_defaults(view=None, no_header=False, no_processes=False)  # of a host's dashboard
# fmt: on


def _check(parse: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with a usage error for options that do not go together, or that have no meaning."""
    if options.match and options.prometheus is None:
        parse.error("--match selects series of a Prometheus server: --filter selects hosts")
    if options.time is not None:
        _check_time(parse, options)
    if options.http_config is not None and options.simulate is not None:
        parse.error("--http-config is for a server: a simulated fleet has none")
    if options.format is not None and (options.once or options.json):
        parse.error("--format is that of --csv: leave out --once and --json")
    if options.once and options.count is not None:
        parse.error("--once prints one table: leave out either that or --count")
    from tpusmi.fleet.groups.fleet_filter import problem
    from tpusmi.fleet.groups.fleet_orders import ORDERS

    if options.sort is not None and options.sort not in ORDERS:
        parse.error(f"--sort takes {', '.join(ORDERS)}")
    if wrong := problem(options.filter):
        parse.error(f"--filter: {wrong}")


def _check_time(parse: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """The same for --time."""
    if options.hosts is not None:
        parse.error("--time needs a past: exporters have none, a Prometheus server has one")
    if options.loop is not None or options.count is not None:
        parse.error("--time shows one moment: leave out --loop and --count")


def _source(parse: argparse.ArgumentParser, options: argparse.Namespace) -> FleetSource | str:
    """Whom to ask; a sentence about a package that is missing here."""
    from tpusmi.cli.fleet_sources import SourceUsageError, source_of

    try:
        return source_of(options, _wants_dashboard(options))
    except SourceUsageError as error:
        parse.error(str(error))
    except ImportError as error:
        if options.debug:
            raise
        from tpusmi.cli.fleet_sources import why_missing

        return why_missing(error)


def _wants_dashboard(options: argparse.Namespace) -> bool:
    """True where the options and the terminal allow it."""
    from tpusmi.cli.fleet_output import is_chosen
    from tpusmi.cli.looks import why_no_dashboard

    return not is_chosen(options) and why_no_dashboard() is None


def _show(parse: argparse.ArgumentParser, options: argparse.Namespace, source: FleetSource) -> int:
    from tpusmi.cli import fleet_output

    if _wants_dashboard(options):
        from tpusmi.cli.fleet_dashboard import run as run_dashboard

        # A Prometheus has new numbers less often than a host, whose interval is in the settings.
        return run_dashboard(options, source, options.interval or INTERVAL_S)
    if not fleet_output.is_chosen(options):
        from tpusmi.cli.looks import why_no_dashboard

        if why := why_no_dashboard():
            talk(why)
    # Names in a fleet are any text: what the terminal cannot show must not stop us half-way.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        return fleet_output.run(options, source)
    except ValueError as error:
        parse.error(str(error))
