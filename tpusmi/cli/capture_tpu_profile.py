"""`tpusmi capture_tpu_profile`: the flags of cloud-tpu-profiler, mapped to `tpusmi profile`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence

from tpusmi.cli import profile
from tpusmi.cli.argument_types import count, words
from tpusmi.cli.capture_arguments import folder
from tpusmi.cli.exits import talk
from tpusmi.cli.options import parser_of
from tpusmi.profiler.remote_addresses import parse

PORT = 8466
"""For an address without a port: that of the profiler service on TPU nodes."""
TRACE_MS, MONITOR_MS = 2000, 1000
EVERY_S = 10.0
"""The old command asked without a pause; a trace disturbs the job more than its question did."""
HERE = ("local", "localhost", "")
DESCRIPTION = """Capture a trace with the flags of capture_tpu_profile (cloud-tpu-profiler). In
tpusmi's own words it is tpusmi profile HOST:PORT --save DIR, or --monitoring-level 2 --every 10."""
EPILOG = f"""
Without an address it captures the job that runs here. Names of TPUs, zones and projects are looked
up with Google's API, which tpusmi never contacts: name addresses. --monitoring_level captures every
{EVERY_S:.0f} s.
"""


def run(arguments: Sequence[str]) -> int:
    """Do what `tpusmi profile` does with the same meaning; the exit code."""
    parse = parser()
    options = parse.parse_args(arguments)
    try:
        addresses = [*_addresses(options)]
    except ValueError as error:
        parse.error(str(error))
    for name in ("tpu_zone", "gcp_project"):
        if getattr(options, name) is not None:
            talk(f"--{name} has no effect: it is for Google's API, which tpusmi never contacts")
    inner = profile.parser()
    meant = inner.parse_args([*addresses, *_words(options)])
    meant.attempts, meant.timestamps = options.num_tracing_attempts, options.display_timestamp
    return profile.run_parsed(parse, meant)


# fmt: off
def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi capture_tpu_profile`."""
    p = parser_of("tpusmi capture_tpu_profile", "[options]", DESCRIPTION, EPILOG)
    p.add_argument("--service_addr", metavar="ADDRESS",
        help=f"profiler services: host:port[,host:port] (default port {PORT})")
    p.add_argument("--workers_list", metavar="ADDRESS",
        help="the same; only these are captured")
    p.add_argument("--tpu", "--tpu_name", metavar="NAME", help="an address, or local")
    p.add_argument("--logdir", type=_logdir, metavar="DIR",
        help="save the trace in this log folder")
    p.add_argument("--duration_ms", type=_number, default=0, metavar="MS",
        help=f"how long to trace (default {TRACE_MS}; {MONITOR_MS} for monitoring)")
    p.add_argument("--monitoring_level", type=int, choices=(0, 1, 2), default=0, metavar="{1,2}",
        help="print the lines of its monitoring, again and again")
    p.add_argument("--num_queries", type=count, default=100, metavar="N",
        help="stop monitoring after N captures (default 100)")
    p.add_argument("--num_tracing_attempts", type=count, default=3, metavar="N",
        help="try up to N times while a trace is empty or fails (default 3)")
    p.add_argument("--host_tracer_level", type=int, choices=range(4), default=2, metavar="N",
        help="how much of the host is traced (default 2)")
    for name, default, about in (
        ("display_timestamp", True, "print the time with the lines of monitoring (the default)"),
        ("include_dataset_ops", True, "has no effect"),
    ):
        p.add_argument(f"--{name}", nargs="?", type=_boolean, const=True, default=default,
            metavar="BOOL", help=about)
        p.add_argument(f"--no{name}", action="store_false", dest=name, help=argparse.SUPPRESS)
    for name in ("tpu_zone", "gcp_project"):
        p.add_argument(f"--{name}", metavar="NAME", help="has no effect")
    return p
# fmt: on


def _words(options: argparse.Namespace) -> Iterator[str]:
    """The options of `tpusmi profile` that mean the same."""
    is_monitoring = options.monitoring_level > 0
    duration_ms = options.duration_ms or (MONITOR_MS if is_monitoring else TRACE_MS)
    yield from ("--duration-ms", str(duration_ms))
    yield from ("--host-tracer-level", str(options.host_tracer_level))
    if options.logdir is not None:
        yield from ("--save", options.logdir)
    if is_monitoring:
        yield from ("--monitoring-level", str(options.monitoring_level))
        yield from ("--every", str(EVERY_S), "--count", str(options.num_queries))


def _addresses(options: argparse.Namespace) -> Iterator[str]:
    """The addresses of the services; none for the job that runs here. Raises ValueError."""
    if options.workers_list or options.service_addr:
        for word in words(options.workers_list or options.service_addr):
            yield _with_port(word)
        return
    name = options.tpu or ""
    if name in HERE or name == os.uname().nodename:
        return
    if not any(character in name for character in ":."):
        raise ValueError(
            f"--tpu {name}: names are looked up with Google's API, which tpusmi never contacts; "
            f"give the addresses: --service_addr HOST:{PORT}"
        )
    yield _with_port(name)


def _with_port(word: str) -> str:
    """The address; with the port of a TPU node's service where it has none."""
    return f"grpc://{parse(word, PORT)}"


def _logdir(text: str) -> str:
    """A local directory, with its variables expanded. Raises ArgumentTypeError."""
    return folder(os.path.expandvars(text))


def _number(text: str) -> int:
    return 0 if text == "0" else count(text)


def _boolean(text: str) -> bool:
    return text.lower() not in ("false", "f", "no", "n", "0")
