"""The dashboard in a pseudo-terminal: time to the first rows, and the cost of going on.

    python tests/bench/dashboard.py [--seconds 30] [--devices 8 256] [--hosts 8 256]

Once on a script, where every number of every device and job moves once a second: what drawing
costs. And on simulated v5e hosts, with the real sources and a real metrics server: what all of it
costs. It prints; it never asserts.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import statistics
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 160, 50
SETTLE_S = 5.0
NEEDLE = b"DEVICE"

CHILD = """
import sys
sys.path[:0] = [{root!r}, {root!r} + "/tests"]
from tpusmi.tui import Options, run
from support.feeds import many_devices
sys.exit(run(many_devices({devices}, tick_s=1.0, busy=True), Options()))
"""

PEERS = """\
peers (shared measurements, 160x50):   CPU    terminal       RSS
  tpu-top   0.5 s, 4 chips, mock       8.9 %    60 KB/s    194 MB
  nvitop    1 s, 4 stub GPUs           1.5 %   1.2 KB/s     26 MB
"""


class Terminal:
    """A command in a pseudo-terminal, and what it wrote there."""

    def __init__(self, argv: list[str]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self.started_s = time.perf_counter()
        self._child = subprocess.Popen(
            argv,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )
        os.close(theirs)
        self.written = 0
        self.rows_s: float | None = None
        self._drawn = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for_rows(self) -> float:
        """Seconds from exec until a device row is on the screen."""
        if not self._drawn.wait(30) or self.rows_s is None:
            raise SystemExit("no device row in 30 s")
        return self.rows_s

    def cpu_s(self) -> float:
        """Seconds of CPU that the child has used."""
        fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self) -> float:
        """The child's resident memory in MB."""
        status = Path(f"/proc/{self._child.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024 / 1e6

    def close(self) -> None:
        """End the child."""
        self._child.kill()
        self._child.wait()

    def _read(self) -> None:
        seen = b""
        while True:
            try:
                chunk = os.read(self._ours, 65536)
            except OSError:
                break
            self.written += len(chunk)
            if self.rows_s is None:
                seen += chunk
                if NEEDLE in seen:
                    self.rows_s = time.perf_counter() - self.started_s
                    self._drawn.set()
        os.close(self._ours)


def child(devices: int) -> list[str]:
    """The command line of a dashboard on that many devices."""
    return [sys.executable, "-c", CHILD.format(root=str(ROOT), devices=devices)]


def bare_s() -> float:
    """How long `python -c pass` takes."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - started


def start_up(runs: int) -> None:
    """Print the time to the first device rows as a multiple of bare Python, run by run in turn."""
    bare, first = [], []
    for _ in range(runs):
        bare.append(bare_s())
        terminal = Terminal(child(8))
        first.append(terminal.wait_for_rows())
        terminal.close()
    ratio = statistics.median(first) / statistics.median(bare)
    print(
        f"first frame with device rows: {ratio:.1f}x python -c pass"
        f" ({statistics.median(first) * 1e3:.0f} ms / {statistics.median(bare) * 1e3:.1f} ms,"
        f" medians of {runs}; goal < 20x)"
    )


def going_on(devices: int, seconds: float, argv: list[str], what: str) -> None:
    """Print what one dashboard costs once it has settled."""
    terminal = Terminal(argv)
    terminal.wait_for_rows()
    time.sleep(SETTLE_S)
    cpu_s, written, started = terminal.cpu_s(), terminal.written, time.perf_counter()
    time.sleep(seconds)
    took_s = time.perf_counter() - started
    cpu = (terminal.cpu_s() - cpu_s) / took_s
    rate = (terminal.written - written) / took_s
    print(
        f"{devices:4} {what}, 1 s: CPU {cpu:.2%} of a core, {rate / 1e3:.1f} KB/s to the terminal,"
        f" RSS {terminal.rss_mb():.1f} MB"
    )
    terminal.close()


def on_a_simulated_host(chips: int, seconds: float) -> None:
    """Print what the whole of tpusmi costs beside that many simulated chips."""
    words = [sys.executable, "-m", "tpusmi", "simulate", "v5e-8", "--chips", str(chips), "--age=60"]
    host = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert host.stdout is not None
    try:
        directory = host.stdout.readline().strip()
        argv = [sys.executable, "-m", "tpusmi", "--simulate", directory]
        going_on(chips, seconds, argv, "simulated chips")
    finally:
        host.terminate()
        host.wait()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--devices", type=int, nargs="*", default=[8, 256])
    parser.add_argument("--hosts", type=int, nargs="*", default=[8, 256])
    options = parser.parse_args()
    start_up(options.runs)
    for devices in options.devices:
        going_on(devices, options.seconds, child(devices), "scripted devices")
    print("goals: 8 devices < 1.5 %, < 10 KB/s, < 60 MB; 256 devices < 6 %")
    for chips in options.hosts:
        on_a_simulated_host(chips, options.seconds)
    print("goals: 8 chips < 1.5 %, 256 chips < 6 %")
    print(PEERS, end="")


if __name__ == "__main__":
    main()
