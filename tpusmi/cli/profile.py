"""`tpusmi profile`: what the cores really did, from a short trace of a job."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from tpusmi.actions import is_readonly
from tpusmi.cli.argument_types import count, seconds
from tpusmi.cli.capture_arguments import (
    cost_seconds,
    duration_ms,
    folder,
    limit_seconds,
    mebibytes,
    target,
)
from tpusmi.cli.exits import Exit, end_on_signals
from tpusmi.cli.options import add_colors, flag, parser_of
from tpusmi.model import Host
from tpusmi.profiler.capture import ANALYSIS_S, COST_S, ProfileSettings
from tpusmi.profiler.capture_target import ProfileTarget, TargetKind, are_paths
from tpusmi.profiler.requests import CaptureRequest
from tpusmi.trace.limits import MIB

TOP_DEFAULT = 20
DESCRIPTION = """Capture a short trace of a running job, and print what its cores did: how busy they
were, how fast the MXUs worked, how long a step took, and which operations took the time.
A TARGET is a pid, the address of a profiler service (localhost:9012, :9012), or a path: a trace, a
TensorBoard log folder, or what --json has printed. Without one: the job that runs here."""
USAGE = "[TARGET ...] [options]"
EPILOG = """
A capture disturbs the job: the output says for how long, and what it cost in steps per second.
TPUSMI_PROFILE=0 in the job's environment forbids it. docs/profile.md explains the page.

  tpusmi profile                          the job that runs here
  tpusmi profile 4321 --save /tmp/log     keep the trace, for TensorBoard and xprof
  tpusmi profile host-0:9012 host-1:9012  several hosts at the same moment
  tpusmi profile --every 60               a line a minute
  tpusmi profile --compare /tmp/log       against an earlier capture

exit codes: 0 success, 1 nothing to capture, 2 usage error or several jobs to choose from, 3 the job
or its files forbid it, 4 the capture or the analysis failed, 5 another capture is running,
74 cannot write, 130 interrupted; of several targets 4 if any failed. A loop ends with that of the
last capture.
"""


def run(arguments: Sequence[str]) -> int:
    """Capture and print, once or again and again; the exit code."""
    parse = parser()
    return run_parsed(parse, parse.parse_args(arguments))


def run_parsed(parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Act as the options say. SIGTERM and SIGHUP end it as Ctrl-C does, with nothing left."""
    from tpusmi import cli

    _check(parse, options)
    end_on_signals(Exit.INTERRUPTED)
    # Names in a trace are any text: what the terminal cannot show must not stop us half-way.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    act = partial(_run, options)
    return cli.on_host(parse, options.simulate, act, with_agent=True)


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi profile`."""
    p = parser_of("tpusmi profile", USAGE, DESCRIPTION, EPILOG)
    p.add_argument("targets", nargs="*", type=target, metavar="TARGET",
        help="a pid, an address or a path")  # fmt: skip
    _add_capture(p.add_argument_group("capture"))
    _add_output(p.add_argument_group("output"))
    p.set_defaults(attempts=1, timestamps=True)  # of capture_tpu_profile
    return p


# fmt: off
def _add_capture(g: argparse._ArgumentGroup) -> None:
    default = ProfileSettings()
    g.add_argument("--duration-ms", type=duration_ms, metavar="MS",
        default=default.request.duration_ms,
        help=f"how long to trace (default {default.request.duration_ms})")
    g.add_argument("--timeout", type=limit_seconds, metavar="SECONDS",
        help="how long to wait for the trace beyond its duration (default "
        f"{default.request.deadline_s:.0f}), and for its analysis (default {ANALYSIS_S:.0f})")
    g.add_argument("--cost-seconds", type=cost_seconds, default=COST_S, metavar="SECONDS",
        help="how long to watch the job's steps after the capture to measure what it cost (default "
        f"{COST_S:.0f}; 0: not at all)")
    g.add_argument("--max-mib", type=mebibytes, default=default.request.bytes_most, metavar="MIB",
        dest="bytes_most",
        help=f"refuse a larger trace (default {default.request.bytes_most // MIB})")
    g.add_argument("--host-tracer-level", type=int, choices=range(4), metavar="N",
        default=default.request.host_tracer_level,
        help="how much of the host is traced, 0 to 3 (default "
        f"{default.request.host_tracer_level})")
    flag(g, "--python-tracer",
        help="also trace each call in Python, which slows the job several times")
    flag(g, "--no-xprof", help="only tpusmi's own reading, even if xprof is installed")
    g.add_argument("--simulate", metavar="TYPE",
        help="use a simulated TPU host such as v5e-8, or the directory of a running one")
    g.add_argument("--readonly", action="store_true", default=is_readonly(),
        help="capture nothing, only read files (also TPUSMI_MODE=readonly)")


def _add_output(g: argparse._ArgumentGroup) -> None:
    shape = g.add_mutually_exclusive_group()
    flag(shape, "--json", help="print one JSON object; with --every, one per line")
    shape.add_argument("--monitoring-level", type=int, choices=(1, 2), metavar="{1,2}",
        help="print the lines of capture_tpu_profile's monitoring")
    g.add_argument("--top", type=count, metavar="N",
        help=f"how many operations to list (default {TOP_DEFAULT}, and all of them with --json)")
    g.add_argument("--every", type=seconds, metavar="SECONDS",
        help="capture again and again, and print a line for each")
    g.add_argument("--count", type=count, metavar="N", help="stop --every after N captures")
    g.add_argument("--save", type=folder, metavar="DIR",
        help="also save the trace in a log folder that TensorBoard and xprof open")
    g.add_argument("--compare", type=target, metavar="OLD",
        help="compare with an earlier one: a trace, a log folder, or what --json has printed")
    flag(g, "--progress", help="print a line on stderr for each step, even without a terminal")
    add_colors(g)
# fmt: on


def settings_of(options: argparse.Namespace) -> ProfileSettings:
    """How to capture and analyze, as the options say."""
    request = CaptureRequest(
        duration_ms=options.duration_ms,
        deadline_s=options.timeout or CaptureRequest().deadline_s,
        bytes_most=options.bytes_most,
        host_tracer_level=options.host_tracer_level,
        python_tracer_level=int(options.python_tracer),
    )
    has_line = options.every is not None and not options.json
    has_no_cost = has_line or options.monitoring_level is not None or options.compare is not None
    return ProfileSettings(
        request=request,
        analysis_s=options.timeout or ANALYSIS_S,
        with_xprof=not options.no_xprof,
        cost_s=0.0 if has_no_cost else options.cost_seconds,
    )


def _check(parse: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with a usage error for options that do not go together."""
    targets: list[ProfileTarget] = options.targets
    are_files = are_paths(targets)
    if options.readonly and not are_files:
        parse.error("readonly: a capture disturbs the job; only files can be read")
    if options.compare is not None and options.compare.kind is not TargetKind.PATH:
        parse.error(f"--compare takes a trace, a log folder or a file, not {options.compare.text}")
    if options.count is not None and options.every is None:
        parse.error("--count needs --every SECONDS")
    if options.every is not None and are_files:
        parse.error("--every captures a running job again and again; a file does not change")
    if options.every is not None and options.compare is not None:
        parse.error("--compare and --every do not go together")
    if options.compare is not None and options.monitoring_level is not None:
        parse.error("--compare and --monitoring-level do not go together")


def _run(options: argparse.Namespace, host: Host) -> int:
    from tpusmi.cli.capturing import Capturing

    return Capturing(host, options, settings_of(options)).run()
