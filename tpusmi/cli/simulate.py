"""`tpusmi simulate`: a simulated TPU host in the foreground."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType

from tpusmi.cli.exits import Exit
from tpusmi.cli.options import Help
from tpusmi.model import Host
from tpusmi.simulate import faults
from tpusmi.simulate.attached import is_running
from tpusmi.simulate.host import Plan, PortBusyError, StartError, start
from tpusmi.simulate.vbar import METRICS_PORT
from tpusmi.text import clean

LOOK_S = 0.5
SDK_ON_IT = (
    "TPU_SKIP_MDS_QUERY=1 TPU_WORKER_HOSTNAMES=localhost python -c "
    "'from libtpu.sdk import tpumonitoring as sdk; "
    """print(sdk.get_metric("duty_cycle_pct").data())'    # where libtpu is installed"""
)
STRANGER = (
    f"  On port {METRICS_PORT} it looks like libtpu to everybody on this machine: tpusmi without "
    "--simulate\n  shows its rows too, as those of a process that it cannot place."
)

TYPES = """
types are those of Google Cloud: v2-8, v3-8, v4-8, v5litepod-8 or v5e-8, v5p-8, v6e-8, tpu7x-8 or
7x-8, and larger slices, of which one host is simulated: --worker picks it, counted from 0. The
number counts chips on v5e and v6e, TensorCores on the others.
"""


def run(arguments: Sequence[str]) -> int:
    """Simulate a host until interrupted; the exit code."""
    parse = parser()
    plan = checked(_plan(parse.parse_args(arguments)), parse)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _exit)
    try:
        with start(plan) as host:
            _introduce(host, plan)
            _watch(host)
    except (StartError, PortBusyError) as error:
        return refuse(error)
    sys.stderr.write("tpusmi: something has ended the simulated host\n")
    return Exit.SOURCE_FAILED


def _watch(host: Host) -> None:
    """Wait for the host's end; say so when its file of faults is not understood."""
    file, said = faults.FaultFile(host.root), ""
    while is_running(host.root):
        file.refresh()
        if file.wrong and file.wrong != said:
            sys.stderr.write(f"tpusmi: {faults.FILE}: {clean(file.wrong)}\n")
            sys.stderr.flush()
        said = file.wrong
        time.sleep(LOOK_S)


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi simulate`."""
    p = argparse.ArgumentParser(
        prog="tpusmi simulate",
        usage="tpusmi simulate TYPE [options]",
        description="A simulated TPU host: its files, processes that hold its device nodes, and "
        "their metrics servers. It runs until Ctrl-C; one in the background until `kill`. Its "
        "directory is printed on stdout.",
        epilog=TYPES + _faults_help(),
        formatter_class=Help,
        allow_abbrev=False,
    )
    p.add_argument("type", metavar="TYPE", help="an accelerator type: v5e-8")
    p.add_argument("--worker", type=int, default=0, metavar="N", help="which host of a slice")
    p.add_argument("--chips", type=int, metavar="N", help="give it another number of chips")
    p.add_argument(
        "--processes", type=int, default=1, metavar="N", help="split the chips among processes"
    )
    p.add_argument(
        "--port",
        type=int,
        metavar="PORT",
        help="of the first process's metrics, the next ones follow; libtpu's own clients look at "
        f"{METRICS_PORT}; default: free ones",
    )
    p.add_argument(
        "--fault", action="append", default=[], metavar="NAME[:ARG]", help="see below; repeatable"
    )
    p.add_argument(
        "--agent", action="store_true", help="the job has tpusmi's agent: steps, phases, memory"
    )
    p.add_argument("--seed", type=int, default=0, metavar="N", help="another course of events")
    p.add_argument(
        "--age", type=_seconds, default=0.0, metavar="SECONDS", help="so long has the job run"
    )
    p.add_argument(
        "--freeze", type=_seconds, metavar="SECONDS", help="time stands still at that age"
    )
    return p


def _plan(options: argparse.Namespace) -> Plan:
    return Plan(
        machine=options.type,
        worker=options.worker,
        chips=options.chips,
        processes=options.processes,
        port=options.port,
        faults=tuple(options.fault),
        seed=options.seed,
        age_s=options.age,
        freeze_s=options.freeze,
        agent=options.agent,
    )


def checked(plan: Plan, parse: argparse.ArgumentParser) -> Plan:
    """The plan, or the end of the command with usage and the reason."""
    try:
        plan.check()
    except ValueError as error:
        parse.error(str(error))
    return plan


def _faults_help() -> str:
    """Every fault, a line each."""

    def lines(known: dict[str, str]) -> str:
        return "".join(f"  {name:<22}{words}\n" for name, words in known.items())

    return (
        f"\nfaults, for --fault or, a line each, in the file `{faults.FILE}` of its directory at "
        f"any time:\n{lines(faults.ANY_TIME)}\nfaults for --fault:\n{lines(faults.AT_START)}"
    )


def _introduce(host: Host, plan: Plan) -> None:
    """Say how to look at the host: its directory on stdout, for scripts; the rest on stderr."""
    ports = ", ".join(map(str, host.metrics_ports)) or "none"
    words = [
        f"A simulated {plan.machine}. Metrics ports: {ports}. "
        f"Ctrl-C ends it; in the background: kill {os.getpid()}.",
        f"  tpusmi --simulate {host.root}",
        f"  echo silent > {host.root}/{faults.FILE}    # go wrong; tpusmi simulate --help",
    ]
    if METRICS_PORT in host.metrics_ports:
        words[2:2] = [f"  {SDK_ON_IT}", STRANGER]
    sys.stderr.write("\n".join(words) + "\n")
    sys.stderr.flush()
    sys.stdout.write(f"{host.root}\n")  # last: whoever reads it may end us at once
    sys.stdout.flush()


def refuse(error: Exception) -> int:
    """Say why there is no host; the exit code."""
    sys.stderr.write(f"tpusmi: {error}\n")
    return Exit.BUSY if isinstance(error, PortBusyError) else Exit.NOTHING_HERE


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not an age")
    return value


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(Exit.ANSWERED)
