"""Keeps a simulated host: makes it, starts its processes, and clears it away in the end.

It reads a pipe that only the process that asked for the host holds open: however that process
ends, even by SIGKILL, the kernel closes the pipe. First it reads a plan there, a line of JSON; then
it writes to stdout, in a line of JSON, where the host is or why there is none; then what a real
program on the host prints.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Any

from tpusmi.simulate import description, faults, host_files, job
from tpusmi.simulate.accelerator import CUBIC, SliceHost, job_environment, parse
from tpusmi.simulate.directory import make, sweep
from tpusmi.simulate.host import PortBusyError, StartError, die_with
from tpusmi.simulate.program import Program
from tpusmi.wire import identity

READY_S = 20.0
LEFT_S = 3600.0
"""How long ago the job of an orphan died."""
TERMINATE_S = 2.0
TRIES = 3
"""A port that was free may be taken before the server is there."""
ENDINGS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def main() -> None:
    """Make the host that stdin asks for and keep it until stdin ends."""
    for ending in ENDINGS:
        signal.signal(ending, _exit)
    line = sys.stdin.buffer.raw.readline()  # type: ignore[union-attr]
    if not line:
        return  # the process that asked has ended
    plan = json.loads(line)
    host = None
    try:
        sweep()
        path, _ = make()  # the lock is held until this process ends
        host = _Host(path, plan)
        os.chmod(path, 0o755)  # other users may look too
        host.start()
        _reply({"directory": path})
        host.keep()
    except (PortBusyError, StartError) as error:
        kind = "busy" if isinstance(error, PortBusyError) else "failed"
        _reply({"failed": kind, "message": str(error)})
    except OSError as error:
        why = error.strerror or error
        _reply({"failed": "failed", "message": f"the simulated host cannot be made: {why}"})
    finally:
        for ending in ENDINGS:
            signal.signal(ending, signal.SIG_IGN)  # once is enough
        if host is not None:
            host.end()


class _Host:
    """The host, and its processes."""

    def __init__(self, directory: str, plan: dict[str, Any]) -> None:
        self._directory = directory
        self._plan = plan
        self._faults = faults.parse(plan["faults"])
        self._processes: list[subprocess.Popen[bytes]] = []
        self._orphans: list[int] = []
        self._program: Program | None = None

    def start(self) -> None:
        """Everything is open when this returns. Raises PortBusyError or StartError."""
        plan = self._plan
        machine = parse(plan["machine"], plan["worker"], plan["chips"])
        nodes = host_files.build(self._directory, machine, self._faults)
        host_files.build_machine(self._directory, machine)
        with open(f"{self._directory}/{faults.FILE}", "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in plan["faults"]))
        if "lockfile-left" in self._faults:
            os.close(host_files.open_lockfile(self._directory))
        for left in reversed(range(1 if plan["port"] else TRIES)):
            try:
                self._start_processes(machine, nodes)
                break
            except PortBusyError:
                self._end_processes()
                if not left:
                    raise
        if plan["program"]:
            self._start_program(machine)
        if "no-permission" in self._faults:
            for node in (node for of_chip in nodes.values() for node in of_chip):
                os.chmod(self._directory + node, 0)

    def keep(self) -> None:
        """Wait until stdin ends. No limit: the pipe ends with the process that asked."""
        if self._program is not None:
            self._program.pass_on(sys.stdin.fileno(), _print)
        while sys.stdin.buffer.raw.read(4096):  # type: ignore[union-attr]
            pass

    def end(self) -> None:
        if self._program is not None:
            self._program.end()
        self._end_processes()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _start_program(self, machine: SliceHost) -> None:
        described = description.read(self._directory)
        env = job_environment(machine, described["processes"], 0)
        env |= {"TPUSMI_DIR": described["segment_dir"], **dict(self._plan["variables"])}
        self._program = Program(self._directory, described, self._plan["program"], env)

    def _start_processes(self, machine: SliceHost, nodes: dict[int, list[str]]) -> None:
        described = self._describe(machine, nodes)
        description.write(self._directory, described)
        with open(f"{self._directory}/log", "ab") as log:
            for number in range(len(described["processes"])):
                process = self._start_process(machine, described, number, log.fileno())
                self._processes.append(process)
        until_s = time.monotonic() + READY_S
        for process, entry in zip(self._processes, described["processes"], strict=True):
            entry["pid"] = self._wait_for(process, until_s)
            entry["start_ticks"] = identity.start_ticks("/proc", entry["pid"])
        description.write(self._directory, described)

    def _describe(self, machine: SliceHost, nodes: dict[int, list[str]]) -> dict[str, Any]:
        from tpusmi.simulate.metric_answers import HBM_BYTES
        from tpusmi.simulate.metric_server import HARDWARE_PORT, METRICS_PORT, free_port

        plan = self._plan
        count = 0 if "lockfile-left" in self._faults else plan["processes"]
        each = machine.chips // count if count else 0
        processes = []
        for number in range(count):
            mine = list(range(number * each, (number + 1) * each))
            held = [node for chip in mine for node in nodes.get(chip, ())]
            processes.append(
                {
                    "pid": None,
                    "port": plan["port"] + number if plan["port"] else free_port(),
                    "chips": mine,
                    "holds": held if plan["hold"] else [],
                    # With smaller bounds libtpu lets several processes in and locks nothing.
                    "locks": plan["hold"] and count == 1,
                }
            )
        return {
            "version": description.VERSION,
            "keeper": [os.getpid(), identity.start_ticks("/proc", os.getpid())],
            "accelerator_type": machine.accelerator_type,
            "chips_chosen": plan["chips"] is not None,
            "generation": machine.generation.name,
            "worker": machine.worker,
            "hosts": machine.hosts,
            "cubic": machine.generation.name in CUBIC,
            "seed": plan["seed"],
            "born_at_s": time.monotonic() - plan["age_s"],
            "older_s": self._older_s(plan),
            "freeze_s": plan["freeze_s"],
            "chips": [
                {"id": chip, "nodes": nodes.get(index, [])}
                for index, chip in enumerate(machine.chip_ids)
            ],
            "devices": [device._asdict() for device in machine.devices],
            "processes": processes,
            "ports": [p["port"] for p in processes],
            "hardware_port": HARDWARE_PORT if plan["port"] == METRICS_PORT else None,
            "agent": plan["agent"],
            "followed_hbm_bytes": HBM_BYTES[machine.generation.name] if plan["program"] else None,
            "segment_dir": f"{self._directory}/segments",
        }  # fmt: skip

    def _older_s(self, plan: dict[str, Any]) -> float:
        """How much older the job is than its processes; a real program has its own age."""
        if plan["program"]:
            return 0.0
        return float(plan["age_s"]) + (LEFT_S if "orphan" in self._faults else 0.0)

    def _start_process(
        self, machine: SliceHost, described: dict[str, Any], number: int, log: int
    ) -> subprocess.Popen[bytes]:
        keeper = os.getpid()
        local = "addresses-local" in self._faults
        return subprocess.Popen(
            job.command(self._directory, number, len(described["processes"])),
            cwd=self._directory,
            env=job_environment(machine, described["processes"], number, local),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            preexec_fn=lambda: die_with(keeper),  # safe: this process has one thread
        )

    def _wait_for(self, process: subprocess.Popen[bytes], until_s: float) -> int:
        """The pid that holds and serves, once it does. Raises PortBusyError or StartError."""
        assert process.stdout is not None
        left_s = max(0.0, until_s - time.monotonic())
        line = ""
        if select.select([process.stdout], [], [], left_s)[0]:
            line = os.read(process.stdout.fileno(), 4096).decode().strip()
        kind, _, rest = line.partition(" ")
        if kind == "ready":
            if int(rest) != process.pid:
                self._orphans.append(int(rest))
            return int(rest)
        if kind == "busy":
            raise PortBusyError(rest)
        raise StartError(self._last_words())

    def _last_words(self) -> str:
        with open(f"{self._directory}/log", encoding="utf-8", errors="replace") as log:
            lines = log.read().strip().splitlines()
        return lines[-1] if lines else f"its process did not start within {READY_S:.0f} s"

    def _end_processes(self) -> None:
        """Close their pipes, and wait until they are gone."""
        until_s = time.monotonic() + TERMINATE_S
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(max(0.0, until_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()  # stopped, perhaps
                process.wait(TERMINATE_S)
        while any(map(_is_alive, self._orphans)) and time.monotonic() < until_s:
            time.sleep(0.01)
        self._processes.clear()
        self._orphans.clear()


def _is_alive(pid: int) -> bool:
    return identity.start_ticks("/proc", pid) is not None


def _reply(reply: dict[str, Any]) -> None:
    _print(json.dumps(reply))


def _print(line: str) -> None:
    try:
        os.write(sys.stdout.fileno(), f"{line}\n".encode())
    except BrokenPipeError:
        pass  # the process that asked has ended, which the other pipe shows as well


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
