"""Arguments, exit codes, wiring."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tpusmi.cli.terminal import Looks
    from tpusmi.model import Host


_COMMANDS = (["simulate"], ["ps"], ["kill"], ["serve-tui"])
"""Those with options of their own, each in the module of its name."""


def script() -> None:
    """The `tpusmi` command: main(), started and ended without work a short life has no use for."""
    gc.disable()  # a one-shot run is over before it has made garbage; the dashboard turns it on
    os._exit(main())  # taking modules and threads apart costs as much as reading a segment


def main(argv: Sequence[str] | None = None) -> int:
    """Run tpusmi; returns the exit code. Everything that was printed has been written."""
    from tpusmi.cli.exits import ended

    arguments = list(sys.argv[1:] if argv is None else argv)
    return ended(lambda: _run(arguments))


def _run(arguments: Sequence[str]) -> int:
    from tpusmi.cli.options import parser

    parse = parser()
    if arguments[:1] == ["demo"]:
        from tpusmi.cli import demo

        return demo.run(parse, _settled(parse.parse_args(arguments[1:])))
    if arguments[:1] in _COMMANDS:
        import importlib

        command = importlib.import_module(f"tpusmi.cli.{arguments[0].replace('-', '_')}")
        return int(command.run(arguments[1:]))
    options = parse.parse_args(arguments)
    if options.help_query_tpu or options.help_query_processes:
        return _help_query(options.help_query_tpu)
    if options.print_config:
        from tpusmi.cli.config import print_config

        return print_config(options)
    options = _settled(options)
    if options.simulate is not None:
        from tpusmi.cli.simulated import show_simulated

        return show_simulated(parse, options)
    from tpusmi.collect import this_host

    return show(this_host(), parse, options)


def _settled(options: argparse.Namespace) -> argparse.Namespace:
    """The options, and the settings if a dashboard will want them: before anything is started."""
    options.settings = None
    if not wants_text(options):
        from tpusmi.cli.config import settings_of

        options.settings = settings_of(options)
    return options


def show(host: Host, parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """The dashboard of a host where one can be drawn and nothing else is asked for; else text."""
    from tpusmi.cli.terminal import looks_of, why_no_dashboard

    looks = looks_of(options)
    if not wants_text(options):
        return _dashboard(host, parse, options, looks)
    reason = "" if _asks_for_text(options) else why_no_dashboard(options.monitor)
    if reason:
        sys.stderr.write(f"tpusmi: {reason}\n")
    return _print(host, parse, options, looks)


def wants_text(options: argparse.Namespace) -> bool:
    """True when text is asked for, or nothing else can be shown here."""
    from tpusmi.cli.terminal import why_no_dashboard

    return _asks_for_text(options) or why_no_dashboard(options.monitor) is not None


def _asks_for_text(options: argparse.Namespace) -> bool:
    queries = (options.query_tpu, options.query_processes, options.loop)
    flags = options.once or options.json or options.list_tpus
    return flags or any(query is not None for query in queries)


def _print(
    host: Host, parse: argparse.ArgumentParser, options: argparse.Namespace, looks: Looks
) -> int:
    from tpusmi.cli import printing

    try:
        prepared = printing.prepare(options, looks)
        wanted = printing.wanted_of(options)
    except ValueError as error:
        parse.error(str(error))
    return printing.run(host, options, prepared, wanted)


def _help_query(of_devices: bool) -> int:
    from tpusmi.report import fields

    known = fields.device_fields() if of_devices else fields.process_fields()
    sys.stdout.write(fields.help_text(known))
    return 0


def _dashboard(
    host: Host, parse: argparse.ArgumentParser, options: argparse.Namespace, looks: Looks
) -> int:
    from tpusmi.cli import dashboard
    from tpusmi.cli.printing import wanted_of

    try:
        wanted = wanted_of(options)
    except ValueError as error:
        parse.error(str(error))
    return dashboard.run(host, options, looks, wanted)
