"""`tpusmi serve`: this host's numbers for Prometheus."""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpusmi.cli import on_host
from tpusmi.cli.argument_types import seconds
from tpusmi.cli.exits import Exit, end_on_signals, talk
from tpusmi.cli.listening import address as listening_address
from tpusmi.cli.listening import cannot_listen, refuse, shown_at
from tpusmi.cli.listening import port as listening_port
from tpusmi.cli.options import add_colors, add_metrics_port, flag, parser_of, with_ports
from tpusmi.interpreter import WHERE, can_start
from tpusmi.text import clean

if TYPE_CHECKING:
    from tpusmi.exporter.guards import Guards
    from tpusmi.exporter.scrape_server import ListenAt
    from tpusmi.exporter.scrapes import ScrapeText
    from tpusmi.model import Host

ABOUT = """Serve this host's numbers to Prometheus, at /metrics, until Ctrl-C. With --textfile,
write them for node_exporter instead. docs/serve.md lists all of them."""
EPILOG = """
  tpusmi serve --bind 0.0.0.0 --web-config web.yml
  tpusmi serve --textfile /var/lib/node_exporter/textfile_collector
  tpusmi serve --simulate v5e-8

exit codes: 0 ended by SIGTERM, 1 a package is missing, 2 usage, 3 permission needed, 4 no threads,
5 the port is in use, 74 the file cannot be written, 130 interrupted
"""
PORT = 8781
"""A port that no other exporter next to a TPU uses: 8431 is libtpu's, 2112 that of GKE's device
plugin, 9431 Orbax's and Grain's. `model/series_names.py` has it once more: it takes time to load.
"""
INTERVAL_S = 15.0
PACKAGES = ("prometheus_client",)
OF_SERVER = ("aiohttp",)
"""Not needed for --textfile."""
OF_CONFIG = ("yaml", "bcrypt")
"""Needed for a web configuration only."""
OF_TLS = ("ssl", "_ssl")
"""Modules of Python itself: pip cannot install them."""
NOT_USABLE = "pip install 'tpusmi[serve]'"
THREADS = 8
"""One for each source, for each format and for passwords."""
FIRST_S = 3.0
"""How long the first file waits for the sources."""
CHECK_EVERY_S = 0.05
LABEL_MOST = 128

EXIT_CODES = {
    signal.SIGINT: int(Exit.INTERRUPTED),
    signal.SIGTERM: int(Exit.ANSWERED),
    signal.SIGHUP: int(Exit.ANSWERED),
}


def run(arguments: Sequence[str]) -> int:
    """Serve until interrupted; the exit code."""
    parse = parser()
    options = parse.parse_args(arguments)
    _check(parse, options)
    if why := _why_not_usable(options):
        return refuse(why, Exit.NOTHING_HERE)
    if not can_start(THREADS):
        return refuse(f"no threads can be started: {WHERE}", Exit.SOURCE_FAILED)
    end_on_signals(Exit.ANSWERED)
    return on_host(parse, options.simulate, lambda host: _export(host, options))


def _why_not_usable(options: argparse.Namespace) -> str:
    """A sentence about a package that is missing or broken; empty if there is none."""
    of_server = () if options.textfile is not None else OF_SERVER
    of_config = () if options.web_config is None else OF_CONFIG
    for name in (*PACKAGES, *of_server, *of_config):
        if importlib.util.find_spec(name) is None:
            return f"{name} is not installed here: {NOT_USABLE}"
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001  # a broken package raises anything
            if isinstance(error, ImportError) and error.name in OF_TLS:
                return f"{name} needs the module ssl, and this Python was built without it"
            why = clean(f"{type(error).__name__}: {error}", 160)
            return f"{name} cannot be loaded ({why}): {NOT_USABLE}"
    return ""


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi serve`."""
    p = parser_of("tpusmi serve", "[--bind HOST] [--port PORT] [options]", ABOUT, EPILOG)
    # fmt: off
    p.add_argument("--bind", type=listening_address, default="127.0.0.1", metavar="HOST",
        help="address or name to listen on (default: %(default)s, for this machine only)")
    p.add_argument("--port", type=listening_port, default=PORT,
        help="port (default: %(default)s; 0: a free one)")
    p.add_argument("--web-config", "--web.config.file", metavar="FILE",
        help="certificate and passwords: a web configuration file, in the form of Prometheus")
    p.add_argument("--textfile", metavar="DIR",
        help="write tpusmi.prom into this directory of node_exporter's textfile collector, and "
        "listen on no port")
    p.add_argument("--interval", type=seconds, metavar="SECONDS",
        help=f"with --textfile: seconds between writes (default: {INTERVAL_S:.0f})")
    p.add_argument("--host-name", type=_label, metavar="NAME",
        help="value of the label `host` of all series (default: the machine's name)")
    p.add_argument("--slice", type=_label, metavar="NAME",
        help="add the label `slice` with this value to all series")
    flag(p, "--no-processes", help="leave out the numbers of single processes")
    p.add_argument("--simulate", metavar="TYPE",
        help="use a simulated TPU host such as v5e-8, or the directory of a running one")
    # fmt: on
    add_metrics_port(p)
    add_colors(p)
    return p


def _check(parse: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Ends the command on options that do not fit together."""
    if options.textfile is None:
        if options.interval is not None:
            parse.error("--interval needs --textfile: Prometheus decides how often it scrapes")
    elif options.web_config is not None:
        parse.error("--web-config is for the server: leave out either that or --textfile")
    elif not os.path.isdir(options.textfile):
        parse.error(f"{clean(options.textfile, 200)} is not a directory")


def _export(host: Host, options: argparse.Namespace) -> int:
    """Run the collector, and serve or write what it has. The exit code."""
    import gc

    from tpusmi.collect import open_collector
    from tpusmi.exporter.scrapes import Exported, ScrapeText

    collector = open_collector(with_ports(host, options.metrics_port))
    exported = Exported(
        with_processes=not options.no_processes,
        host=options.host_name or "",
        slice=options.slice or "",
    )
    text = ScrapeText(collector, exported)
    gc.enable()  # each scrape leaves some garbage
    collector.start()
    try:
        return (_serve if options.textfile is None else _write)(text, options)
    finally:
        collector.stop()


def _serve(text: ScrapeText, options: argparse.Namespace) -> int:
    import asyncio

    from tpusmi.configuration_file import ConfigurationError
    from tpusmi.exporter.guards import Guards
    from tpusmi.exporter.scrape_server import Answering, ListenAt, serve
    from tpusmi.exporter.scrapes import Scrapes
    from tpusmi.web.server_log import Log

    try:
        guards = Guards(options.web_config, Log(talk))
    except ConfigurationError as error:
        return refuse(clean(str(error), 400), Exit.USAGE)
    address = ListenAt(options.bind, options.port)
    answering = Answering(Scrapes(text), text.is_ready, guards)

    def announce(port: int) -> None:
        if why := _warning(address, guards):
            talk(f"warning: {why}")
        talk(f"{_url(address, port, guards)}  (Ctrl-C ends it)")

    try:
        return asyncio.run(serve(address, answering, announce, EXIT_CODES, talk))
    except OSError as error:
        return cannot_listen(address.bind, address.port, error)


def _warning(address: ListenAt, guards: Guards) -> str:
    """What others can do who should not; empty where they can do nothing."""
    from tpusmi.web.guard import is_loopback

    if is_loopback(address.bind):
        return ""
    if not guards.has_users:
        how = "" if guards.has_tls else ", unencrypted"
        return f"anyone who reaches {address.bind} can read these numbers{how}: see --web-config"
    return "" if guards.has_tls else "without tls_server_config, passwords are sent unencrypted"


def _url(address: ListenAt, port: int, guards: Guards) -> str:
    return f"http{'s' if guards.has_tls else ''}://{shown_at(address.bind, port)}/metrics"


def _write(text: ScrapeText, options: argparse.Namespace) -> int:
    from tpusmi.exporter.exposition import Format
    from tpusmi.exporter.textfile import NAME, keep_writing, write

    until_s = time.monotonic() + FIRST_S
    while not text.is_ready() and time.monotonic() < until_s:
        time.sleep(CHECK_EVERY_S)
    try:
        write(options.textfile, text(Format.TEXT))
    except OSError as error:
        code = Exit.PERMISSION if isinstance(error, PermissionError) else Exit.CANNOT_WRITE
        return refuse(f"{options.textfile}/{NAME} cannot be written: {error.strerror}", code)
    every_s = options.interval or INTERVAL_S
    talk(f"writing {options.textfile}/{NAME} every {every_s:g} s  (Ctrl-C ends it)")
    keep_writing(options.textfile, lambda: text(Format.TEXT), every_s, threading.Event(), talk)
    return Exit.ANSWERED


def _label(text: str) -> str:
    name = clean(text, LABEL_MOST)
    if not name or name != text:
        raise argparse.ArgumentTypeError(f"must be a name of up to {LABEL_MOST} characters")
    return name
