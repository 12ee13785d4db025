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


def script() -> None:
    """The `tpusmi` command: main(), started and ended without work that a short life has no use
    for.
    """
    gc.disable()  # a one-shot run is over before it has made garbage; the dashboard turns it on
    code = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)  # taking modules and threads apart costs as much as reading a segment


def main(argv: Sequence[str] | None = None) -> int:
    """Run tpusmi; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments[:1] == ["demo"]:
            return _demo(arguments[1:])
        return _show(arguments)
    except KeyboardInterrupt:
        from tpusmi.cli.exits import Exit

        return Exit.INTERRUPTED


def _show(arguments: Sequence[str]) -> int:
    from tpusmi.cli.options import parser

    parse = parser()
    options = parse.parse_args(arguments)
    if options.help_query_tpu or options.help_query_processes:
        return _help_query(options.help_query_tpu)
    from tpusmi.cli.terminal import looks_of, why_no_dashboard

    looks = looks_of(options)
    asked = options.once or options.json or options.list_tpus or options.loop is not None
    if not (asked or options.query_tpu is not None or options.query_processes is not None):
        reason = why_no_dashboard()
        if reason is None:
            return _dashboard(options, looks)
        if reason:
            sys.stderr.write(f"tpusmi: {reason}\n")
    return _print(parse, options, looks)


def _print(parse: argparse.ArgumentParser, options: argparse.Namespace, looks: Looks) -> int:
    from tpusmi.cli import printing

    if looks.ascii_only:
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        return printing.run(options, looks)
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ValueError as error:
        parse.error(str(error))


def _help_query(of_devices: bool) -> int:
    from tpusmi.report import fields

    known = fields.device_fields() if of_devices else fields.process_fields()
    sys.stdout.write(fields.help_text(known))
    return 0


def _dashboard(options: argparse.Namespace, looks: Looks) -> int:
    from tpusmi.cli import dashboard
    from tpusmi.cli.printing import wanted_of
    from tpusmi.collect import this_host

    return dashboard.run(this_host(), options, looks, wanted_of(options))


def _demo(arguments: Sequence[str]) -> int:
    from tpusmi.cli import demo

    return demo.run(arguments)
