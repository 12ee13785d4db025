"""`tpusmi pmon`: a line for each process on each device, in the format of `nvidia-smi pmon`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tpusmi.cli.dmon import add_stream_options, print_devices
from tpusmi.cli.options import parser_of
from tpusmi.report import stream_rows

COLUMNS = "um"
EPILOG = """
The numbers are those of the device; a dash where several processes have it. For other columns:
  tpusmi --query-processes=pid,user,used_memory,steps_per_s,command --format=csv --loop 1
"""


def run(arguments: Sequence[str]) -> int:
    """Print until interrupted, or as often as the options say."""
    parse = parser()
    options = parse.parse_args(arguments)
    columns = stream_rows.columns_of(COLUMNS)
    stream = stream_rows.Stream(columns, of_processes=True, clock=options.clock)
    return print_devices(parse, options, stream.text)


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi pmon`."""
    description = (
        "Print one line per process and device again and again, in the format of nvidia-smi pmon."
    )
    p = parser_of("tpusmi pmon", "[options]", description, EPILOG)
    add_stream_options(p)
    return p
