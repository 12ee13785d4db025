"""`tpusmi simulate`, `tpusmi demo` and `--simulate TYPE`: commands on a simulated TPU host."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence

from tpusmi.cli.argument_types import number
from tpusmi.cli.exits import Exit, end_on_signals, talk
from tpusmi.cli.options import flag, parser_of
from tpusmi.model import Host, Snapshot
from tpusmi.simulate import accelerator, faults
from tpusmi.simulate.directory import is_running
from tpusmi.simulate.host import HostPlan, PortBusyError, StartError, start
from tpusmi.simulate.metric_server import METRICS_PORT
from tpusmi.text import clean, counted

CHECK_EVERY_S = 0.5
AGENT_WITHIN_S = 30.0
"""How long a printed demo waits for the job's first steps."""
SDK_ON_IT = (
    "TPU_SKIP_MDS_QUERY=1 TPU_WORKER_HOSTNAMES=localhost python -c "
    "'from libtpu.sdk import tpumonitoring as sdk; "
    """print(sdk.get_metric("duty_cycle_pct").data())'    # where libtpu is installed"""
)
STRANGER = (
    f"  On port {METRICS_PORT} it looks like libtpu to every program on this machine: tpusmi "
    "without\n  --simulate also shows its rows, as rows of a process that it cannot identify."
)

TYPES = """
TYPE is an accelerator type of Google Cloud: v2-8, v3-8, v4-8, v5litepod-8 or v5e-8, v5p-8, v6e-8,
tpu7x-8 or 7x-8, or a larger slice. For a larger slice, one of its hosts is simulated: --worker
selects it, counted from 0. The number counts chips on v5e and v6e, TensorCores on the others.
"""


def run(arguments: Sequence[str]) -> int:
    """Simulate a host until interrupted; the exit code."""
    parse = parser()
    options = vars(parse.parse_args(arguments))
    plan = HostPlan(**options | {"faults": tuple(options["faults"])})
    end_on_signals(Exit.ANSWERED)

    def watch(host: Host) -> int:
        _introduce(host, plan)
        _watch(host)
        talk("the simulated host was ended by something else")
        return Exit.SOURCE_FAILED

    return _on_new_host(parse, plan, watch)


def on_new_host(
    parse: argparse.ArgumentParser,
    machine: str,
    act: Callable[[Host], int],
    with_agent: bool = False,
) -> int:
    """Act on a new simulated host of that type, which runs until then; the exit code. A host of a
    slice of several has agents: they know the others.
    """
    return _on_new_host(parse, HostPlan(machine, agent=with_agent or _is_of_slice(machine)), act)


def _is_of_slice(machine: str) -> bool:
    try:
        return accelerator.parse(machine).hosts > 1
    except ValueError:
        return False  # the plan says what is wrong with it


def _on_new_host(parse: argparse.ArgumentParser, plan: HostPlan, act: Callable[[Host], int]) -> int:
    try:
        plan.check()
    except ValueError as error:
        parse.error(str(error))
    try:
        with start(plan) as host:
            return act(host)
    except (StartError, PortBusyError) as error:
        talk(str(error))
        return Exit.BUSY if isinstance(error, PortBusyError) else Exit.NOTHING_HERE


def run_demo(parse: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Start the demo's job, show it as the options say, and leave nothing behind; the exit code."""
    from tpusmi import demo
    from tpusmi.cli import printing, show, wants_text

    if options.simulate is not None:
        parse.error("the demo starts its own simulated host: leave --simulate or demo out")
    try:
        printing.prepare(options)
    except ValueError as error:
        parse.error(str(error))

    def watch(host: Host) -> int:
        if wants_text(options):
            _wait_for_steps(host)
        return show(host, parse, options)

    return demo.run(watch)


def _wait_for_steps(host: Host) -> None:
    """Wait, with a limit, until the job's agent reports steps."""
    from tpusmi.collect import Collector
    from tpusmi.sources.segments import Segments

    until_s = time.monotonic() + AGENT_WITHIN_S
    collector = Collector(host, [Segments(host)])
    while time.monotonic() < until_s and not _has_steps(collector.read_once()):
        time.sleep(0.05)


def _has_steps(s: Snapshot) -> bool:
    """True once a job has a step rate: before, most of its numbers are unknown."""
    return any(s.value("steps_per_s", p.key) for p in s.processes)


def _watch(host: Host) -> None:
    """Wait for the host's end; report a file of faults that has an error, once for each error."""
    file, reported = faults.FaultFile(host.root), ""
    while is_running(host.root):
        file.refresh()
        if file.wrong and file.wrong != reported:
            talk(f"{faults.FILE}: {clean(file.wrong)}")
        reported = file.wrong
        time.sleep(CHECK_EVERY_S)


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi simulate`."""
    description = (
        "Run a simulated TPU host: its files, processes that hold its device nodes, and their "
        "metrics servers. It runs until Ctrl-C, or in the background until `kill`, and prints its "
        "directory on stdout."
    )
    p = parser_of("tpusmi simulate", "TYPE [options]", description, TYPES + _faults_help())
    # fmt: off
    p.add_argument("machine", metavar="TYPE", help="an accelerator type, such as v5e-8")
    p.add_argument("--worker", type=int, default=0, metavar="N", help="which host of a slice")
    p.add_argument("--chips", type=int, metavar="N", help="number of chips")
    p.add_argument("--processes", type=int, default=1, metavar="N",
        help="split the chips among processes")
    p.add_argument("--port", type=int, metavar="PORT",
        help="metrics port of the first process, the others follow; libtpu's own clients use "
        f"{METRICS_PORT} (default: free ports)")
    p.add_argument("--fault", action="append", dest="faults", default=[], metavar="NAME[:ARG]",
        help="make something fail, see below; repeatable")
    flag(p, "--agent", help="give the job tpusmi's agent: steps, phases, memory")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="random seed of the events")
    p.add_argument("--age", type=_seconds, dest="age_s", default=0.0, metavar="SECONDS",
        help="how long the job has run at the start")
    p.add_argument("--freeze", type=_seconds, dest="freeze_s", metavar="SECONDS",
        help="stop the clock at that age of the job")
    # fmt: on
    return p


def _faults_help() -> str:
    """Every fault, with what it does."""

    def lines(texts: dict[str, str]) -> str:
        return "".join(f"  {name:<22}{text}\n" for name, text in texts.items())

    return (
        f"\nfaults for --fault, or at any time, one per line, in the file `{faults.FILE}` of its "
        f"directory:\n{lines(faults.ANY_TIME)}\nfaults for --fault:\n{lines(faults.AT_START)}"
    )


def _introduce(host: Host, plan: HostPlan) -> None:
    """Print how to view the host: its directory on stdout, for scripts; the rest on stderr."""
    ports = ", ".join(map(str, host.metrics_ports)) or "none"
    chips = f" with {counted(plan.chips, 'chip')}" if plan.chips else ""
    lines = [
        f"A simulated {plan.machine}{chips}. Metrics ports: {ports}. "
        f"Ctrl-C ends it; in the background: kill {os.getpid()}.",
        f"  tpusmi --simulate {host.root}",
        f"  echo silent > {host.root}/{faults.FILE}    # a fault; see tpusmi simulate --help",
    ]
    if METRICS_PORT in host.metrics_ports:
        lines[2:2] = [f"  {SDK_ON_IT}", STRANGER]
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()
    sys.stdout.write(f"{host.root}\n")  # last: its reader may end this process at once
    sys.stdout.flush()


def _seconds(text: str) -> float:
    value = number(text, "seconds")
    if not 0 <= value <= 1e9:
        raise argparse.ArgumentTypeError("must be from 0 to 1e9 seconds")
    return value
