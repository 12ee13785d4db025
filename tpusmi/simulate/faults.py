"""What can go wrong on a simulated host: the faults, their names, and the file that sets them.

What a fault does is where the simulator looks for its name: `"silent" in running.faults`.

Standard library only, and little of it: see workload.py.
"""

from __future__ import annotations

import os
import time

from tpusmi.simulate.description import content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "faults"
"""In the host's directory: one fault a line. Writing it changes what a running host does."""

AT_START = {
    "no-node": "the last chip has no device node",
    "half-removed": "the last chip's PCI entry is half gone",
    "no-permission": "only root may open the device nodes",
    "orphan": "the job died an hour ago, and a child of it still holds the device nodes",
    "stubborn": "the job ignores SIGTERM",
    "lockfile-left": "no process holds the TPU, but libtpu's lock file is still there",
    "addresses-local": "TPU_PROCESS_ADDRESSES=local, so that libtpu serves no metrics",
    "own-ids": "every process numbers its devices from 0",
}
ANY_TIME = {
    "no-server": "no process serves metrics",
    "silent": "the metrics port accepts, and never answers",
    "slow:SECONDS": "every answer of the metrics server takes this long (default 5)",
    "http": "a web server is on the metrics port",
    "not-libtpu": "another gRPC service is on the metrics port",
    "ipv6-only": "the metrics server listens on ::1 alone",
    "not-found:METRIC": "the server does not know this metric, as libtpu or tpusmi calls it "
    "(default hbm_bandwidth_utilization_percent)",
    "missing-device:COUNT": "the server leaves out this many devices (default 1)",
    "empty": "no program is loaded: answers without rows",
    "string-ids": "device ids are text",
    "int-ordinals": "ordinals are integers, as in older releases of libtpu",
    "core-rows": "memory of a 7x in a row for each TensorCore",
    "idle": "the job holds the chips and runs nothing: no steps, DUTY 0, IDLE grows",
    "stall": "the job waits for its input most of the time: little DUTY, few steps",
    "hang": "a program of the job never ends: busy chips, no more steps, idle after 30 s",
    "leak": "a line of the job keeps more memory every few steps, and the agent shows which",
    "throttle:SCORE": "the first chip is throttled, 1 to 10 (default 3), and the others wait for "
    "it: fewer steps, less MXU and BW, as much DUTY",
    "bad-link:HEALTH": "a link between chips is in trouble, 1 to 10 (default 7): collectives take "
    "longer, so there are fewer steps, and less MXU and BW",
    "silent-host:N": "host N of the slice, from 0 (default 1), stops reporting: this and the "
    "next 3 need a slice of several hosts, and another host than this one",
    "slow-host:N": "host N of the slice (default 1) takes twice as long for each step, and falls "
    "behind the others",
    "full-host:N": "host N of the slice (default 1) has almost no device memory left",
    "clock-host:N": "the clock of host N of the slice (default 1) is more than a minute ahead",
    "no-captures": "the job forbids captures, as with TPUSMI_PROFILE=0",
    "sdk-crash": "libtpu's SDK crashes with a segmentation fault",
    "sdk-hang": "libtpu's SDK never answers",
}
ARGUMENTS = {
    "slow": ("5", 0, 3600),
    "not-found": ("hbm_bandwidth_utilization_percent", 0, 0),
    "missing-device": ("1", 1, 512),
    "throttle": ("3", 1, 10),
    "bad-link": ("7", 1, 10),
    **{f"{what}-host": ("1", 0, 4095) for what in ("silent", "slow", "full", "clock")},
}
"""Default, least and most of the faults that take an argument; 0 and 0 for one that is text."""
PARTS = {"slow"}
"""Faults whose number need not be whole."""


def parse(texts: list[str]) -> dict[str, str]:
    """Faults by name with their argument, of `slow:3`, `silent`. Raises ValueError."""
    faults = {}
    for text in texts:
        name, _, argument = text.strip().partition(":")
        if name not in NAMES:
            raise ValueError(f"unknown fault {name!r}; choose from {', '.join(NAMES)}")
        if argument and name not in ARGUMENTS:
            raise ValueError(f"fault {name} takes no argument")
        default, least, most = ARGUMENTS.get(name, ("", 0, 0))
        argument = argument or default
        is_number = argument.isdecimal() or (name in PARTS and _is_number(argument))
        if most and not (is_number and least <= float(argument) <= most):
            raise ValueError(f"fault {name}: {argument} is not a number from {least} to {most}")
        faults[name] = argument
    return faults


def check_hosts(faults: Mapping[str, str], hosts: int, worker: int) -> None:
    """Raises ValueError for a fault of a host that the slice does not have, or of this worker."""
    for name, argument in faults.items():
        if not name.endswith("-host"):
            continue
        if hosts < 2:
            raise ValueError(f"fault {name} needs a slice of several hosts, such as v5e-16")
        if int(argument) >= hosts:
            raise ValueError(f"fault {name}: the slice has hosts 0 to {hosts - 1}")
        if int(argument) == worker:
            raise ValueError(f"fault {name}: host {argument} is the one that is simulated itself")


NAMES = tuple(text.partition(":")[0] for text in (*ANY_TIME, *AT_START))


def _is_number(text: str) -> bool:
    whole, _, fraction = text.partition(".")
    return whole.isdecimal() and (not fraction or fraction.isdecimal())


class FaultFile:
    """The faults of a running host, as its file says now."""

    def __init__(self, directory: str) -> None:
        self._path = f"{directory}/{FILE}"
        self._version: tuple[int, int] | None = None
        self.faults: dict[str, str] = {}
        self._from_start: set[str] | None = None
        """The faults of AT_START that the host began with; None before the file was read."""
        self.since_s = 0.0
        """When they were set, on CLOCK_MONOTONIC."""
        self.wrong = ""
        """Why the file, as it is now, changed nothing; empty when it did."""

    def refresh(self) -> bool:
        """Read the file if it has changed; True when it had. A bad line changes nothing."""
        try:
            status = os.stat(self._path)
            version = (status.st_mtime_ns, status.st_size)
            if version == self._version:
                return False
            self._version = version
            self.wrong = ""
            text = content(self._path).decode()
            faults = parse([line for line in text.splitlines() if line.strip()])
            self._check_late(faults)
            self.faults = faults
        except (OSError, ValueError) as error:
            self.wrong = str(error)
            return False
        self.since_s = time.monotonic() - (time.time() - status.st_mtime)
        return True

    def _check_late(self, faults: Mapping[str, str]) -> None:
        """Raises ValueError for a fault that a running host can no longer have."""
        from_start = {name for name in faults if name in AT_START}
        if self._from_start is None:
            self._from_start = from_start
        for name in sorted(from_start - self._from_start):
            raise ValueError(f"fault {name} works from the start only: --fault {name}")
