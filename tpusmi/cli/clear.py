"""`tpusmi clear`: forget ended jobs, by removing the segments that they have left."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tpusmi.cli.exits import Exit
from tpusmi.cli.options import add_colors, flag, parser_of
from tpusmi.model import Host

EPILOG = """
A job that called tpusmi.start() leaves its last numbers in a file when it ends. This removes those
files of your own jobs, as root of all jobs. It removes a file only if the kernel proves that its
process has ended; never one that is locked, that may be in use, or that cannot be judged.

exit codes: 0 forgotten or nothing to forget, 2 usage error, 5 something could not be removed, 74
cannot write
"""


def run(arguments: Sequence[str]) -> int:
    """Forget ended jobs; the exit code says whether all of them are forgotten."""
    from tpusmi import cli
    from tpusmi.actions import is_readonly

    parse = parser()
    options = parse.parse_args(arguments)
    if is_readonly() and not options.dry_run:
        parse.error("TPUSMI_MODE=readonly: clear is disabled")
    # Command lines are any bytes: text that the terminal cannot show must not stop us half-way.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    return cli.on_host(parse, options.simulate, lambda host: _run(host, options))


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi clear`."""
    p = parser_of("tpusmi clear", "[options]", "Forget the jobs that have ended.", EPILOG)
    flag(p, "--dry-run", "-n", help="only print what would be removed")
    flag(p, "--json", help="print one JSON object")
    p.add_argument(
        "--simulate", metavar="DIR", help="use the directory of a running simulated TPU host"
    )
    add_colors(p)
    return p


def _run(host: Host, options: argparse.Namespace) -> int:
    from tpusmi.actions.clearing import forget
    from tpusmi.cli.holder_options import print_json
    from tpusmi.cli.looks import looks_of
    from tpusmi.report import clearing_text
    from tpusmi.report.text_grid import in_ascii

    clearing = forget(host, options.dry_run)
    if options.json:
        print_json(clearing_text.to_dict(clearing))
    else:
        text = clearing_text.text(clearing)
        sys.stdout.write(in_ascii(text) if looks_of(options).ascii_only else text)
    sys.stdout.flush()
    return Exit.BUSY if any(f.failed for f in clearing.files) else Exit.ANSWERED
