"""The fleet view on a terminal: time to its first screen, of a redraw, and its memory.

    python tests/bench/fleet.py [--sizes 10 100 1000] [--exporters 64] [--hanging 5]

Against a real Prometheus with the past of that many simulated hosts of 4 chips, put there by
promtool; and against exporters, some of which accept and never answer. It prints, also how loaded
the machine is, and never asserts.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.backfilled_prometheus import backfill
from support.exposition_servers import exporters
from support.scrapers import prometheus

WIDTH, HEIGHT = 160, 50
FIRST = re.compile(rb"(pretrain|finetune|train|evaluate|rlhf|distill)\.py")
"""The name of a job: a row of the first screen."""
QUIET_S = 0.25
KEYS = {"down": b"\x1b[B", "group": b"\t", "heat map": b"v", "back": b"v", "sort": b"."}
FIRST_WITHIN_S, KEY_WITHIN_S = 60.0, 20.0
STAYS_S = 12.0
"""How long it goes on refreshing before its memory is read."""


class Screen:
    """The command in a pseudo-terminal, and when it wrote what."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self._began_s = time.perf_counter()
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tpusmi", "fleet", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )
        os.close(theirs)
        self._written = bytearray()
        self._last_s = self._began_s
        self._first_s: float | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def first_screen_s(self) -> float | None:
        """Seconds from exec until the first row is there; None if it did not come."""
        until_s = self._began_s + FIRST_WITHIN_S
        while self._first_s is None and time.perf_counter() < until_s and self._lives():
            time.sleep(0.005)
        return None if self._first_s is None else self._first_s - self._began_s

    def key_s(self, key: bytes) -> float:
        """Seconds from a key until the screen has been drawn anew: until its last byte."""
        self._wait_quiet()
        before, began_s = len(self._written), time.perf_counter()
        os.write(self._ours, key)
        while len(self._written) == before and time.perf_counter() < began_s + KEY_WITHIN_S:
            time.sleep(0.002)
        self._wait_quiet()
        return self._last_s - began_s

    def peak_mb(self) -> float:
        """The most resident memory that it has had."""
        status = Path(f"/proc/{self._child.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6

    def cpu_s(self) -> float:
        """Seconds of CPU that it has used."""
        fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """Ends the command."""
        self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(5)
        os.close(self._ours)

    def last_words(self) -> str:
        """The end of what it wrote."""
        return bytes(self._written[-400:]).decode("utf-8", "replace")

    def _lives(self) -> bool:
        return self._child.poll() is None

    def _wait_quiet(self) -> None:
        until_s = time.perf_counter() + KEY_WITHIN_S
        while time.perf_counter() < until_s and time.perf_counter() - self._last_s < QUIET_S:
            time.sleep(0.005)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 1 << 16)
            except OSError:
                return
            self._last_s = time.perf_counter()
            self._written += data
            if self._first_s is None and FIRST.search(self._written):
                self._first_s = self._last_s


def measure(name: str, arguments: Sequence[str]) -> None:
    """Print a line about the command with these arguments."""
    screen = Screen(arguments)
    try:
        first_s = screen.first_screen_s()
        if first_s is None:
            print(f"{name:>16}  no screen: {screen.last_words()}")
            return
        first_cpu_s = screen.cpu_s()
        keys = {what: screen.key_s(key) for what, key in KEYS.items()}
        cpu_s, began_s = screen.cpu_s(), time.perf_counter()
        time.sleep(STAYS_S)
        busy = (screen.cpu_s() - cpu_s) / (time.perf_counter() - began_s)
        redraws = "  ".join(f"{what} {1000 * seconds:4.0f} ms" for what, seconds in keys.items())
        print(
            f"{name:>16}  first screen {first_s:5.2f} s ({first_cpu_s:4.2f} s CPU)   {redraws}   "
            f"peak {screen.peak_mb():4.0f} MB   CPU {100 * busy:4.1f} %",
            flush=True,
        )
    finally:
        screen.end()


def print_once(name: str, arguments: Sequence[str]) -> None:
    """Print what the command takes to print the fleet as JSON."""
    began_s = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "tpusmi", "fleet", *arguments, "--json"],
        capture_output=True,
        timeout=120,
        check=False,
    )
    took_s = time.perf_counter() - began_s
    if done.returncode:
        print(f"{name:>16}  --json: {done.returncode} {done.stderr.decode()[-300:]}")
        return
    fleet = json.loads(done.stdout)
    chips = sum(host["chips"] or 0 for host in fleet["hosts"])
    states = {s: sum(h["state"] == s for h in fleet["hosts"]) for s in ("live", "old", "down")}
    print(
        f"{name:>16}  --json {took_s:5.2f} s, {len(done.stdout) / 1e6:.1f} MB: {chips} chips, "
        + ", ".join(f"{count} {state}" for state, count in states.items()),
        flush=True,
    )


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=[10, 100, 1000])
    parser.add_argument("--exporters", type=int, default=64)
    parser.add_argument("--hanging", type=int, default=5)
    parser.add_argument("--interval", default="5")
    options = parser.parse_args()
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}, CPUs: {os.cpu_count()}")
    for hosts in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            count = backfill(Path(folder), str(hosts))
            print(f"{hosts} hosts: {count:,} samples in Prometheus", flush=True)
            with prometheus(Path(folder), []) as server:
                arguments = ["--prometheus", server.base, "--interval", options.interval]
                measure(f"{hosts} hosts", arguments)
                print_once(f"{hosts} hosts", arguments[:2])
    if options.exporters:
        with exporters(str(options.exporters), options.hanging) as addresses:
            name = f"{options.exporters} exporters"
            print(f"{name}, {options.hanging} of them hang", flush=True)
            arguments = ["--hosts", ",".join(addresses)]
            measure(name, [*arguments, "--interval", options.interval])
            print_once(name, arguments)


if __name__ == "__main__":
    main()
