"""`tpusmi serve-tui`: the dashboard in a browser."""

from __future__ import annotations

import argparse
import importlib.util
import os
import secrets
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpusmi.cli import on_host
from tpusmi.cli.config import settings_of
from tpusmi.cli.exits import Exit, end_on_signals, talk
from tpusmi.cli.listening import address as listening_address
from tpusmi.cli.listening import cannot_listen, refuse, shown_at
from tpusmi.cli.listening import port as listening_port
from tpusmi.cli.options import flag, parser_of
from tpusmi.cli.options import parser as dashboard_parser
from tpusmi.interpreter import WHERE, can_start, why_unknown
from tpusmi.text import clean

if TYPE_CHECKING:
    from tpusmi.web.server import Service

ABOUT = """Serve the dashboard to a browser. Each tab has its own dashboard, which ends with the
tab. Ctrl-C ends them all. From another machine, use: ssh -L PORT:localhost:PORT HOST."""
EPILOG = """The options of the dashboard, such as --interval and --simulate, also work: see
tpusmi --help."""
PORT = 8780
"""A port that no program next to a TPU uses: libtpu has 8431, and 8470 and above."""
NOT_INSTALLED = "textual-serve is not installed here: pip install 'tpusmi[web]'"
THREADS = 2
"""The minimum: one of them reads the files of the page."""
NOT_USABLE = "pip install 'tpusmi[web]' into an environment of its own"
TEXT = (
    "once", "json", "list_tpus", "query_tpu", "query_processes", "loop", "format",
    "help_query_tpu", "help_query_processes", "print_config", "completion", "count",
)  # fmt: skip
"""The options of `tpusmi` that print something, as its parser names them."""

EXIT_CODES = {
    signal.SIGINT: int(Exit.INTERRUPTED),
    signal.SIGTERM: int(Exit.ANSWERED),
    signal.SIGHUP: int(Exit.ANSWERED),
}


def run(arguments: Sequence[str]) -> int:
    """Serve dashboards until interrupted; the exit code."""
    parse = parser()
    mine, theirs = parse.parse_known_args(arguments)
    options = _checked(parse, theirs)
    if importlib.util.find_spec("textual_serve") is None:
        return refuse(NOT_INSTALLED, Exit.NOTHING_HERE)
    if reason := why_unknown():
        return refuse(f"no dashboard can be started: {reason}", Exit.NOTHING_HERE)
    if not can_start(THREADS):
        return refuse(f"no threads can be started: {WHERE}", Exit.SOURCE_FAILED)
    settings_of(options)  # reports a bad settings file before any dashboard starts
    end_on_signals(Exit.ANSWERED)
    may_end = mine.allow_kill and not options.readonly
    if not may_end:
        theirs.append("--readonly")
    if options.simulate is None:
        return _serve(mine, theirs, may_end)
    return on_host(  # one simulated host for all tabs
        parse,
        options.simulate,
        lambda host: _serve(mine, [*theirs, "--simulate", host.root], may_end),
    )


def parser() -> argparse.ArgumentParser:
    """The parser of the options that the dashboard does not have."""
    p = parser_of(
        "tpusmi serve-tui", "[--host HOST] [--port PORT] [--allow-kill] [options]", ABOUT, EPILOG
    )
    # fmt: off
    p.add_argument("--host", type=listening_address, default="127.0.0.1",
        help="address or name to listen on (default: %(default)s, for this machine only)")
    p.add_argument("--port", type=listening_port, default=PORT,
        help="port (default: %(default)s; 0: a free one)")
    flag(p, "--allow-kill",
        help="let the browser end processes, and capture traces of them. Anyone who knows the "
        "address can then do so; it contains a new secret at each start. Without this option the "
        "browser is view-only")
    # fmt: on
    return p


def _checked(parse: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The dashboard's options, as every tab will parse them. Ends the command on wrong usage."""
    dashboard = dashboard_parser()
    dashboard.prog = parse.prog
    options = dashboard.parse_args(arguments)
    if any(getattr(options, name) for name in TEXT):
        parse.error("a browser shows only the dashboard: options that print do not work")
    return options


def _serve(mine: argparse.Namespace, arguments: Sequence[str], may_end: bool) -> int:
    import asyncio
    import gc
    from contextlib import redirect_stdout

    try:
        from tpusmi.web.guard import is_loopback
        from tpusmi.web.server import Service, serve
    except ImportError as error:
        why = clean(str(error), 160)
        return refuse(f"the server cannot be loaded ({why}): {NOT_USABLE}", Exit.NOTHING_HERE)
    secret = secrets.token_urlsafe(16) if may_end else ""
    service = Service(_command(arguments), mine.host, mine.port, secret)

    def announce(port: int) -> None:
        if not is_loopback(mine.host):
            what = "watch this host and end processes" if may_end else "watch this host"
            talk(
                f"warning: anyone who reaches {mine.host} can {what}, unencrypted. "
                "Safer: without --host, through ssh -L PORT:localhost:PORT HOST"
            )
        talk(_address(service, port))

    gc.enable()  # each request leaves some garbage
    try:
        with redirect_stdout(sys.stderr):  # textual-serve prints a dashboard's error to stdout
            return asyncio.run(serve(service, announce, EXIT_CODES, talk))
    except OSError as error:
        return cannot_listen(service.host, service.port, error)


def _command(arguments: Sequence[str]) -> str:
    """A shell command for the dashboard behind a tab, with the modules of this Python.

    It changes the directory: `-m` searches the current one first, where the user may have a
    random.py.
    """
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    python = [sys.executable, "-m", "tpusmi.cli.dashboard", *arguments]
    return f"cd / && exec env {shlex.join([f'PYTHONPATH={path}', *python])}"


def _address(service: Service, port: int) -> str:
    where = f"{shown_at(service.host, port)}/{service.secret}{'/' if service.secret else ''}"
    return f"http://{where}  (Ctrl-C ends it)"
