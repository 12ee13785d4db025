"""Who holds the device, on a busy machine: what a look costs as a multiple of the barest pass.

    python tests/bench/holders.py [--repeats 9] [--processes 2000]

So many extra processes with ten descriptors each, one that holds a stand-in for a node, and its
forked child, which holds it too. Everything is timed in turn, once per round, without the garbage
collector, as our command line runs; only our repeated looks have it, as the dashboard does. The
node is below a temporary directory and the host is this one: a host that is itself below one would
add a symbolic link to every look. tpu-info, which knows nodes by the text of a link, is shown the
text without that directory. It prints; it never asserts.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.hosts import NODE, chip, running  # noqa: E402

from tpusmi.model import Host  # noqa: E402
from tpusmi.sources.holders import Holders  # noqa: E402

READS, OPENS = 60, 5
"""Our repeated looks in all, and the opens that are waited for."""
SETTLED_S, GIVE_UP_S = 2.0, 70.0
GOALS = "goals: ours, new object < 1.2 x; ours, again < 0.16 x (10 ms where the bare pass takes 61)"

TO_THE_END = """
import signal
try:
    run()
finally:
    os.killpg(0, signal.SIGKILL)  # those that it forked too, whatever became of the bench
"""
CROWD = """
def run():
    files = hold(*["/dev/null"] * 7)
    for _ in range(int(sys.argv[1])):
        if not os.fork():
            signal.pause()
    say("ready")
    wait()
"""
PAIR = """
def run():
    files = hold(sys.argv[1])
    child = os.fork()
    if not child:
        signal.pause()
    say(child)
    wait()
"""
LATE = """
import time
sys.stdin.readline()
files = hold(sys.argv[1])
say(time.monotonic())
wait()
"""

Found = set[int] | str
"""The pids, or words that say why there are none."""


class Pair(NamedTuple):
    """Who really holds the node."""

    parent: int
    child: int


class Row(NamedTuple):
    """One way to look for holders."""

    name: str
    look: Callable[[], Found] | None
    """None where it is not installed."""
    looks: int = 1
    """In one round."""
    note: str = ""
    end: Callable[[], None] = lambda: None
    """After each round, and not timed."""


class Ours:
    """Our holders, asked again and again, half a second later each time."""

    def __init__(self, node: Path, detailed: bool = False) -> None:
        self._node = node
        self._detailed = detailed
        self._holders: Holders | None = None
        self._now_s = time.monotonic()

    def look(self) -> Found:
        """The next look; the first one after close() knows nothing."""
        if self._holders is None:
            self._holders = new_holders(self._node, self._detailed)
        self._now_s += self._holders.period_s
        return {process.pid for process in self._holders.read(self._now_s).processes}

    def close(self) -> None:
        """Let go of the watch, and forget."""
        if self._holders is not None:
            self._holders.close()
            self._holders = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--processes", type=int, default=2000)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of every `finally`
    with tempfile.TemporaryDirectory(prefix="tpusmi-bench-") as directory:
        node = make_node(Path(directory).resolve())
        with (
            running(CROWD + TO_THE_END, options.processes) as crowd,
            running(PAIR + TO_THE_END, node) as parent,
        ):
            if crowd.line() != "ready":
                raise SystemExit("the processes cannot be started")
            pair = Pair(parent.pid, int(parent.line()))
            print_machine(node)
            compare(node, pair, options.repeats)
            print_notice("told by the kernel", node, is_told=True)
            print_notice("not told (a node of another /dev)", node, is_told=False)
        wait_for_end(crowd.pid)


def wait_for_end(group: int) -> None:
    """Until init has buried the last of them: who measures next is not to meet them."""
    until_s = time.monotonic() + 20
    try:
        while time.monotonic() < until_s:
            os.killpg(group, 0)
            time.sleep(0.05)
    except ProcessLookupError:
        pass


def make_node(directory: Path) -> Path:
    """A device where we may make one, as a TPU's node is; a plain file elsewhere."""
    node = directory / NODE.removeprefix("/")
    node.parent.mkdir(parents=True)
    try:
        os.mknod(node, 0o666 | 0o020000, os.makedev(1, 3))
        os.close(os.open(node, os.O_RDWR))
    except OSError:
        node.unlink(missing_ok=True)
        node.touch()
    return node


def print_machine(node: Path) -> None:
    """What is measured, and on what."""
    processes, descriptors = bare()
    kind = "plain file" if node.is_file() else "character device"
    print(f"{processes:,} processes, {descriptors:,} descriptors, {os.cpu_count()} cores")
    print(f"Linux {platform.release()}, Python {platform.python_version()}, uid {os.geteuid()}")
    print(f"the node is a {kind}; truth: a parent and its child hold it")


def compare(node: Path, pair: Pair, rounds: int) -> None:
    """Time every way once per round, in turn, and print the table."""
    ours = [Ours(node), Ours(node), Ours(node, detailed=True), Ours(node, detailed=True)]
    looks = -(-READS // rounds)
    rows = [
        Row("bare pass: listdir, readlink", lambda: ("-", bare())[0]),
        Row("ours, new object each time", ours[0].look, end=ours[0].close),
        Row("ours, again every 0.5 s", ours[1].look, looks),
        Row("ours, new object, detailed", ours[2].look, end=ours[2].close),
        Row("ours, again, detailed", ours[3].look, looks),
        *peers(node),
    ]
    found = [warm_up(row) for row in rows]
    times: list[list[list[float]]] = [[] for _ in rows]
    for _ in range(rounds):
        for i, row in enumerate(rows):
            if not isinstance(found[i], str) or found[i] == "-":
                times[i].append(timed(row))
    for each in ours:
        each.close()
    print(f"\n{f'median of {rounds} rounds':30} {'ms':>6}  {'(min-max)':15} x bare  found")
    for row, who, seconds in zip(rows, found, times, strict=True):
        print_row(row, words_for(who, pair), seconds, times[0])
    print(GOALS)


def peers(node: Path) -> list[Row]:
    """The other ways that are known, installed or not."""
    return [
        Row("tpu-info, as shipped", tpu_info(node, is_patched=False)),
        Row("tpu-info, its crash patched", tpu_info(node, is_patched=True)),
        Row("psutil open_files()", psutil_files(node), note=" (it lists regular files only)"),
        Row("lsof -t NODE", command("lsof", "-t", str(node))),
        Row("fuser NODE", command("fuser", str(node))),
    ]


def warm_up(row: Row) -> Found:
    """What it finds, in a look that is not timed."""
    if row.look is None:
        return "not installed"
    try:
        return row.look()
    except (OSError, RuntimeError) as error:
        return f"raises {type(error).__name__}: {error}"
    finally:
        row.end()


def timed(row: Row) -> list[float]:
    """Seconds of each of its looks in one round."""
    assert row.look is not None
    seconds = []
    gc.collect()
    if row.looks == 1:
        gc.disable()
    try:
        for _ in range(row.looks):
            started = time.perf_counter()
            row.look()
            seconds.append(time.perf_counter() - started)
    finally:
        gc.enable()
        row.end()
    return seconds


def print_row(row: Row, who: str, times: list[list[float]], bare_s: list[list[float]]) -> None:
    """One line. The multiple is the median of those of each round."""
    if not times:
        print(f"{row.name:30} {'-':>6}  {'':15} {'-':>6}  {who}")
        return
    every = [seconds * 1e3 for one in times for seconds in one]
    middle, span = statistics.median(every), f"({min(every):.1f}-{max(every):.1f})"
    pairs = zip(times, bare_s, strict=True)
    ratio = statistics.median(statistics.median(one) / first[0] for one, first in pairs)
    many = f", {len(every)} looks" if row.looks > 1 else ""
    print(f"{row.name:30} {middle:6.1f}  {span:15} {ratio:6.2f}  {who}{row.note}{many}")


def words_for(found: Found, pair: Pair) -> str:
    """Whom of the two it has found, and how many more."""
    if isinstance(found, str):
        return found
    known = {pair.parent: "parent", pair.child: "child"}
    names = [name for pid, name in known.items() if pid in found]
    words = "both" if len(names) == len(known) else names[0] + " only" if names else "none"
    others = len(found - known.keys())
    return f"{words} and {others} others" if others else words


def bare() -> tuple[int, int]:
    """Read the link of every descriptor, and nothing else; processes and descriptors."""
    processes = descriptors = 0
    for name in os.listdir(b"/proc"):
        if not name.isdigit():
            continue
        processes += 1
        directory = b"/proc/" + name + b"/fd/"
        try:
            numbers = os.listdir(directory)
        except OSError:
            continue
        for number in numbers:
            try:
                os.readlink(directory + number)
            except OSError:
                continue
        descriptors += len(numbers)
    return processes, descriptors


def new_holders(node: Path, detailed: bool) -> Holders:
    """Ours for that node."""
    return Holders(Host(), lambda: [chip(0, str(node))], detailed)


def tpu_info(node: Path, is_patched: bool) -> Callable[[], Found] | None:
    """tpu-info's get_chip_owners(), by its own account or without the crash that a descriptor
    that may not be read is to it.
    """
    try:
        device = import_module("tpu_info.device")
    except ImportError:
        return None
    root = str(node).removesuffix(NODE)

    def readlink(link: str) -> str:
        try:
            return os.readlink(link).removeprefix(root)
        except PermissionError as error:
            raise (FileNotFoundError(link) if is_patched else error) from error

    def look() -> Found:
        device.os = SimpleNamespace(readlink=readlink)
        try:
            return {pid for path, pid in device.get_chip_owners().items() if path == NODE}
        finally:
            device.os = os

    return look


def psutil_files(node: Path) -> Callable[[], Found] | None:
    """Every process asked for its open files."""
    try:
        import psutil
    except ImportError:
        return None

    def look() -> Found:
        found = set()
        for process in psutil.process_iter():
            try:
                if any(file.path == str(node) for file in process.open_files()):
                    found.add(process.pid)
            except psutil.Error:
                continue
        return found

    return look


def command(name: str, *arguments: str) -> Callable[[], Found] | None:
    """A command that prints pids."""
    path = shutil.which(name)
    if path is None:
        return None

    def look() -> Found:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
        return {int(pid) for pid in re.findall(r"\d+", done.stdout)}

    return look


def print_notice(how: str, node: Path, is_told: bool) -> None:
    """How long an open by a process that was looked at before stays unseen, in real time."""
    delays = [notice_s(node, is_told, random.Random(n)) for n in range(OPENS)]
    middle = statistics.median(delays)
    print(f"an open is noticed after {middle:.2f} s (max {max(delays):.2f}, {OPENS} opens): {how}")


def notice_s(node: Path, is_told: bool, chance: random.Random) -> float:
    """Seconds from an open at any moment between two looks until a look shows it."""
    holders = new_holders(node, detailed=False)
    opens_s = time.monotonic() + SETTLED_S + chance.random()
    opened_s = None
    try:
        with running(LATE, node) as late:
            while opened_s is None or time.monotonic() < opened_s + GIVE_UP_S:
                found = holders.read(time.monotonic())
                if any(process.pid == late.pid for process in found.processes):
                    assert opened_s is not None
                    return time.monotonic() - opened_s
                if not is_told:
                    holders.close()  # it goes on without its watch
                next_s = time.monotonic() + holders.period_s
                if opened_s is None and next_s > opens_s:
                    time.sleep(max(0.0, opens_s - time.monotonic()))
                    assert late.process.stdin is not None
                    late.process.stdin.write("\n")
                    late.process.stdin.flush()
                    opened_s = float(late.line())
                time.sleep(max(0.0, next_s - time.monotonic()))
        return float("inf")
    finally:
        holders.close()


if __name__ == "__main__":
    main()
