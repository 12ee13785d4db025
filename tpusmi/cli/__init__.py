"""The `tpusmi` command: parses its arguments, and runs what they ask for."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from tpusmi.model import Host


def script() -> None:
    """The `tpusmi` command: main(), without the work that a short process does not need."""
    gc.disable()  # a one-shot run ends before it has made garbage; dashboards turn it on
    os._exit(main())  # tearing down modules and threads costs as much as reading a segment


def main(argv: Sequence[str] | None = None) -> int:
    """Run tpusmi; returns the exit code, after all output has been written."""
    from tpusmi.cli.exits import ended

    if "_ARGCOMPLETE" in os.environ:  # a Tab in a shell
        from tpusmi.cli.completion import complete

        return ended(complete)
    arguments = list(sys.argv[1:] if argv is None else argv)
    return ended(lambda: _run(arguments))


def _run(arguments: Sequence[str]) -> int:
    from tpusmi.cli.command_word import module_of, parser_of_command, split

    command, words = split(arguments)
    if command not in ("", "demo"):
        return int(module_of(command).run(words))
    parse = parser_of_command(command)
    options = parse.parse_args(words)
    options.settings = None
    if (code := _about_itself(options)) is not None:
        return code
    if not wants_text(options):  # before anything is started
        from tpusmi.cli.config import settings_of

        options.settings = settings_of(options)
    if command:
        from tpusmi.cli.simulate import run_demo

        return run_demo(parse, options)
    return on_host(parse, options.simulate, lambda host: show(host, parse, options))


def _about_itself(options: argparse.Namespace) -> int | None:
    """Print what needs no host. The exit code; None when that is not what the options select."""
    if options.help_query_tpu or options.help_query_processes:
        return _help_query(options.help_query_tpu)
    if options.completion:
        from tpusmi.cli.completion import print_script

        return print_script(options.completion)
    if options.print_config:
        from tpusmi.cli.config import print_config

        return print_config(options)
    return None


def on_host(
    parse: argparse.ArgumentParser,
    simulate: str | None,
    act: Callable[[Host], int],
    with_agent: bool = False,
) -> int:
    """Act on this host; or on a simulated one of that type, which runs until then, and whose job
    may have an agent; or on the running one in that directory. The exit code.
    """
    if simulate is None:
        from tpusmi.collect import this_host

        return act(this_host())
    if os.sep not in simulate and not os.path.isdir(simulate):
        from tpusmi.cli.command_word import COMMANDS
        from tpusmi.cli.simulate import on_new_host

        if simulate in COMMANDS:
            parse.error(f"--simulate needs a TYPE, such as v5e-8, before the command {simulate}")

        return on_new_host(parse, simulate, act, with_agent)
    from tpusmi.simulate.directory import attach

    try:
        host = attach(simulate)
    except ValueError as error:
        parse.error(str(error))
    return act(host)


def show(host: Host, parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Show the host: the dashboard, or text if the options or the terminal require it."""
    from tpusmi.cli import printing

    try:
        selection = printing.selection_of(options)
    except ValueError as error:
        parse.error(str(error))
    if options.metrics_port:
        from tpusmi.cli.options import with_ports

        host = with_ports(host, options.metrics_port)
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
        from tpusmi.cli.looks import CELL, CELL_WAYS, why_no_dashboard

        if reason := why_no_dashboard(options.monitor):
            talk(f"{reason} ({CELL_WAYS})" if reason == CELL else reason)
    return printing.run(host, options, prepared, selection)


def wants_text(options: argparse.Namespace) -> bool:
    """True when the options select text, or the terminal can show nothing else."""
    if _selects_text(options):
        return True
    from tpusmi.cli.looks import why_no_dashboard

    return why_no_dashboard(options.monitor) is not None


def _selects_text(options: argparse.Namespace) -> bool:
    queries = (options.query_tpu, options.query_processes, options.loop, options.count)
    flags = options.once or options.json or options.list_tpus or options.query
    return flags or any(query is not None for query in queries)


def _help_query(of_devices: bool) -> int:
    from tpusmi.report import query

    by_name = query.device_fields() if of_devices else query.process_fields()
    sys.stdout.write(query.help_text(by_name))
    return 0
