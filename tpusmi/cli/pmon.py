"""`tpusmi pmon`: a line for each process on each device, in the format of `nvidia-smi pmon`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tpusmi.cli.nvidia_style import GROUPS, add_stream_options, print_stream
from tpusmi.cli.options import parser_of

DEFAULT_GROUPS = "um"
EPILOG = f"""{GROUPS}
The numbers are those of the device; a dash where several processes have it. For other columns:
  tpusmi --query-processes=pid,user,used_memory,steps_per_s,command --format=csv --loop 1
"""


def run(arguments: Sequence[str]) -> int:
    """Print until interrupted, or as often as the options say."""
    parse = parser()
    return print_stream(parse, parse.parse_args(arguments), of_processes=True)


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi pmon`."""
    description = (
        "Print one line per process and device again and again, in the format of nvidia-smi pmon."
    )
    p = parser_of("tpusmi pmon", "[options]", description, EPILOG)
    add_stream_options(p, DEFAULT_GROUPS)
    return p
