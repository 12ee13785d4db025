"""One process of the simulated job: holds its chips, locks libtpu's file, serves metrics.

`python train.py --config=simulated`, as real jobs are called, started by the keeper in the host's
directory. It ends when its stdin does, however the keeper has ended.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from tpusmi.interpreter import WHERE, can_start, is_none_left
from tpusmi.simulate.host_files import lock, open_lockfile, open_nodes
from tpusmi.simulate.running import Running

SCRIPT, CONFIG, TASK = "train.py", "--config=simulated", "--task="
"""Its command after the interpreter; of several processes each has a task."""
_SOURCE = """\
\"\"\"The job of a simulated TPU host: it trains nothing.\"\"\"
import os, sys
own = os.path.dirname(__file__)  # first in the path, unless PYTHONSAFEPATH is set
sys.path[:] = [place for place in sys.path if place != own]
from tpusmi.simulate.job import main
main({directory!r}, sys.argv)
"""
LOOK_S = 0.2
"""How soon other faults are noticed."""
NO_THREADS = f"no threads can be started for its metrics server: {WHERE}"
THREADS = 8
"""What a gRPC server needs: with fewer it neither serves nor fails."""


def command(directory: str, number: int, processes: int) -> list[str]:
    """The command of that process of the job, to be run in the directory; its script is there."""
    with open(f"{directory}/{SCRIPT}", "w", encoding="utf-8") as file:
        file.write(_SOURCE.format(directory=directory))
    task = [f"{TASK}{number}"] if processes > 1 else []
    return [sys.executable, SCRIPT, CONFIG, *task]


def main(directory: str, arguments: list[str]) -> None:
    """Hold and serve until stdin ends. One line on stdout says that everything is open."""
    process = next((int(a.removeprefix(TASK)) for a in arguments if a.startswith(TASK)), 0)
    running = Running(directory)
    me = running.description["processes"][process]
    held = open_nodes(directory, me["holds"])
    if "stubborn" in running.faults:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if me["locks"]:
        lock(open_lockfile(directory))
    if "orphan" in running.faults:
        _become_an_orphan()
        output = _let_go_of_output()
        _say(f"ready {os.getpid()}", output)
        os.close(output)
        _wait_s(None)
    else:
        _serve_or_say_why(running, process, me["port"])
    for descriptor in held:
        os.close(descriptor)
    os._exit(0)  # threads of slow answers would hold up a polite end


def _serve_or_say_why(running: Running, process: int, number: int) -> None:
    """Serve, or end at once with a sentence: Python would wait at its end for threads of a gRPC
    server that is only half there.
    """
    try:
        _serve(running, process, number)
    except (RuntimeError, MemoryError) as error:
        is_of_threads = isinstance(error, RuntimeError) and is_none_left(error)
        why = NO_THREADS if is_of_threads else f"its metrics server failed: {error!r}"
        os.write(sys.stderr.fileno(), f"{why}\n".encode())
        os._exit(1)


def _serve(running: Running, process: int, number: int) -> None:
    """Serve metrics, as the faults of the moment allow, until stdin ends."""
    from tpusmi.simulate.host import PortBusyError
    from tpusmi.simulate.job_files import JobFiles
    from tpusmi.simulate.metric_server import IPV4, IPV6, Port, hardware_metrics, open_grpc

    if not can_start(THREADS):
        sys.exit(NO_THREADS)
    port = Port(running, process, number)
    hardware_port = running.description["hardware_port"]
    servers = []  # a server ends with the last reference to it
    try:
        port.update()
        if hardware_port is not None and process == 0:
            servers.append(open_grpc(hardware_metrics(running), (IPV4, IPV6), hardware_port))
    except PortBusyError as error:
        _say(f"busy {error}")
        os._exit(1)
    files = JobFiles(running, process)
    files.update()
    _say(f"ready {os.getpid()}")
    while not _wait_s(LOOK_S):
        running.refresh()
        port.update()
        files.update()


def _wait_s(limit_s: float | None) -> bool:
    """True when stdin has ended within the limit."""
    return bool(select.select([sys.stdin], [], [], limit_s)[0])


def _become_an_orphan() -> None:
    """Go on as a process whose parent and session have ended, with the nodes in its hands alone."""
    if os.fork():
        os._exit(0)
    os.setsid()
    leader = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == leader:
        time.sleep(0.001)


def _let_go_of_output() -> int:
    """Close what the keeper reads, which would be a sign of life of the orphan. Returns a copy for
    the last line, so that nothing changes after the keeper has read it.
    """
    output = os.dup(sys.stdout.fileno())
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    return output


def _say(words: str, output: int | None = None) -> None:
    os.write(sys.stdout.fileno() if output is None else output, f"{words}\n".encode())
