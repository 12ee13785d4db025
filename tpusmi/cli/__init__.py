"""The `tpusmi` command: parses its arguments, and runs what they ask for."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from tpusmi.model import Host


_COMMANDS = (["simulate"], ["ps"], ["kill"], ["serve-tui"])
"""Subcommands with their own options, each in the module of its name."""


def script() -> None:
    """The `tpusmi` command: main(), without the work that a short process does not need."""
    gc.disable()  # a one-shot run ends before it has made garbage; dashboards turn it on
    os._exit(main())  # tearing down modules and threads costs as much as reading a segment


def main(argv: Sequence[str] | None = None) -> int:
    """Run tpusmi; returns the exit code, after all output has been written."""
    from tpusmi.cli.exits import ended

    arguments = list(sys.argv[1:] if argv is None else argv)
    return ended(lambda: _run(arguments))


def _run(arguments: Sequence[str]) -> int:
    from tpusmi.cli.options import parser

    if arguments[:1] in _COMMANDS:
        return int(_module(arguments[0]).run(arguments[1:]))
    is_demo = arguments[:1] == ["demo"]
    parse = parser(is_demo)
    options, unknown = parse.parse_known_args(arguments[1:] if is_demo else arguments)
    if unknown:
        parse.error(_why_unknown(arguments, unknown))
    options.settings = None
    if options.help_query_tpu or options.help_query_processes:
        return _help_query(options.help_query_tpu)
    if options.print_config:
        from tpusmi.cli.config import print_config

        return print_config(options)
    if not wants_text(options):  # before anything is started
        from tpusmi.cli.config import settings_of

        options.settings = settings_of(options)
    if is_demo:
        from tpusmi.cli.simulate import run_demo

        return run_demo(parse, options)
    return on_host(parse, options.simulate, lambda host: show(host, parse, options))


def _module(command: str) -> ModuleType:
    import importlib

    return importlib.import_module(f"tpusmi.cli.{command.replace('-', '_')}")


def _why_unknown(arguments: Sequence[str], unknown: Sequence[str]) -> str:
    """Why those are not understood: a command that is late (two take all options) or mistyped."""
    from difflib import get_close_matches

    commands = [*(name for (name,) in _COMMANDS), "demo"]
    late = next((word for word in unknown if word in commands), None)
    if late is None:
        near = get_close_matches(unknown[0], commands, 1)
        if unknown[0] != arguments[0] or unknown[0].startswith("-"):
            return f"unrecognized arguments: {' '.join(unknown)}"
        return f"unknown command {unknown[0]}" + (f"; did you mean {near[0]}?" if near else "")
    taken = "" if late in ("demo", "serve-tui") else _module(late).parser().format_help()
    options = taken.replace(",", " ").split()
    before = (word.partition("=")[0] for word in arguments[: arguments.index(late)])
    for option in (word for word in before if word.startswith("-")):
        if taken and option not in options:
            return f"{late} does not take {option}; see tpusmi {late} --help"
    return f"the command comes first: tpusmi {late} [options]"


def on_host(
    parse: argparse.ArgumentParser, simulate: str | None, act: Callable[[Host], int]
) -> int:
    """Act on this host; or on a simulated one of that type, which runs until then; or on the
    running one in that directory. The exit code.
    """
    if simulate is None:
        from tpusmi.collect import this_host

        return act(this_host())
    if os.sep not in simulate and not os.path.isdir(simulate):
        from tpusmi.cli.simulate import on_new_host

        return on_new_host(parse, simulate, act)
    from tpusmi.simulate.directory import attach

    try:
        host = attach(simulate)
    except ValueError as error:
        parse.error(str(error))
    return act(host)


def show(host: Host, parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Show the host: the dashboard, or text if the options or the terminal require it."""
    from tpusmi.cli import printing

    selection = printing.selection_of(options)
    if not wants_text(options):
        from tpusmi.cli import dashboard
        from tpusmi.cli.looks import looks_of

        return dashboard.run(host, options, looks_of(options), selection)
    try:
        prepared = printing.prepare(options)
    except ValueError as error:
        parse.error(str(error))
    if not _selects_text(options):
        from tpusmi.cli.exits import talk
        from tpusmi.cli.looks import why_no_dashboard

        if reason := why_no_dashboard(options.monitor):
            talk(reason)
    return printing.run(host, options, prepared, selection)


def wants_text(options: argparse.Namespace) -> bool:
    """True when the options select text, or the terminal can show nothing else."""
    if _selects_text(options):
        return True
    from tpusmi.cli.looks import why_no_dashboard

    return why_no_dashboard(options.monitor) is not None


def _selects_text(options: argparse.Namespace) -> bool:
    queries = (options.query_tpu, options.query_processes, options.loop)
    flags = options.once or options.json or options.list_tpus
    return flags or any(query is not None for query in queries)


def _help_query(of_devices: bool) -> int:
    from tpusmi.report import query

    by_name = query.device_fields() if of_devices else query.process_fields()
    sys.stdout.write(query.help_text(by_name))
    return 0
