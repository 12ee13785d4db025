"""Where no thread can be started a command ends, with what it could read or with a sentence."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import TPUSMI, environment
from support.run_as import another_user
from support.simulated_hosts import host_of
from support.terminals import terminal
from support.users import ROOT

from tpusmi.model import Host

LONELY = itertools.count(1 << 28 | os.getpid() << 6)
"""Users of whom nothing else runs: the limit counts whatever is the user's, and what the test
before has started may not be gone yet.
"""
LIMIT_S = 60.0

host = host_of("v5e-4")


@pytest.mark.parametrize("threads", [1, 2, 4, 6, 8, 10])
@pytest.mark.parametrize("command", ["--json", "-1", "ps", "kill --stale --dry-run"])
def test_a_command_ends_in_a_sentence_and_without_a_traceback(
    host: Host, command: str, threads: int
) -> None:
    shell = f'ulimit -c 0; ulimit -u {threads}; exec "$@"'
    words = [*TPUSMI, *command.split(), "--simulate", host.root]
    found = subprocess.run(
        another_user(next(LONELY), "bash", "-c", shell, "bash", *words),
        env=environment("/", HOME="/"), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert found.returncode in (0, 1, 3, 4), found.stderr
    assert "Traceback" not in found.stderr
    assert "Fatal" not in found.stderr
    if command == "--json":
        failed = [s["message"] for s in json.loads(found.stdout)["sources"]]
        refused = [m for m in failed if m == "not asked: can't start new thread"]
        assert len(refused) == (5 if threads == 1 else 0)


def test_a_simulated_host_that_cannot_be_started_is_told_in_a_sentence() -> None:
    found = subprocess.run(
        limited(1, *TPUSMI, "-1", "--simulate", "v5e-1"),
        env=environment("/", HOME="/"), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert found.returncode == 1
    assert found.stderr.startswith("tpusmi: the simulated host did not start: ")
    assert found.stderr.count("\n") == 1


def limited(threads: int, *command: str) -> list[str]:
    """That command of a lonely user with so many threads and processes."""
    shell = f'ulimit -c 0; ulimit -u {threads}; exec "$@"'
    return another_user(next(LONELY), "bash", "-c", shell, "bash", *command)


@pytest.mark.parametrize("threads", [1, 2, 5, 8, 9])
def test_a_dashboard_without_threads_is_refused_and_the_terminal_is_left_alone(
    host: Host, threads: int
) -> None:
    command = limited(threads, *TPUSMI, "--simulate", host.root)
    with terminal(command, environment("/", HOME="/"), 200, 30) as screen:
        assert screen.end() == 4
        screen.take(0.2)
    assert screen.text.count("threads") == 1
    assert "see ulimit -u, or the pod's pids limit; tpusmi -1 needs fewer" in screen.text
    assert b"\x1b" not in screen.written


WITHOUT_A_LOOK = """
import sys
from tpusmi.cli import dashboard, main
dashboard.can_start = lambda count: True
sys.exit(main())
"""


@pytest.mark.parametrize("threads", [2, 6])
def test_a_dashboard_that_loses_its_threads_while_it_starts_gives_the_terminal_back(
    host: Host, threads: int
) -> None:
    command = limited(threads, sys.executable, "-c", WITHOUT_A_LOOK, "--simulate", host.root)
    with terminal(command, environment("/", HOME="/"), 200, 30) as screen:
        assert screen.end() == 4
        screen.take(0.2)
    assert "no thread can be started: see ulimit -u" in screen.text
    assert "Traceback" not in screen.text
    opened, closed = (screen.written.count(b"\x1b[?1049" + end) for end in (b"h", b"l"))
    assert closed >= opened


@pytest.mark.parametrize("threads", [1, 2, 4, 6, 9])
@pytest.mark.parametrize("command", ["simulate v5e-1", "demo --json"])
def test_what_starts_processes_ends_in_a_sentence(command: str, threads: int) -> None:
    found = subprocess.run(
        limited(threads, *TPUSMI, *command.split()),
        env=environment("/", HOME="/"), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (1, "")
    assert "Traceback" not in found.stderr
    assert "Failed to start" not in found.stderr
    assert any(why in found.stderr for why in ("temporarily unavailable", "pids limit"))


@pytest.mark.parametrize(("command", "threads"), [("serve-tui", 1), ("serve", 1), ("serve", 5)])
def test_a_server_without_threads_is_refused_in_a_sentence(command: str, threads: int) -> None:
    found = subprocess.run(
        limited(threads, *TPUSMI, command, "--port", "0"),
        env=environment("/", HOME="/"), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (4, "")
    assert found.stderr.startswith("tpusmi: no threads can be started: see ulimit -u")
    assert found.stderr.count("\n") == 1


SHOW = """
import threading, tpusmi
threading.stack_size()
panel = tpusmi.show()
print(panel)
"""


def test_a_panel_without_threads_says_what_could_not_be_asked() -> None:
    found = subprocess.run(
        limited(1, sys.executable, "-c", SHOW),
        env=environment("/", HOME="/"), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (0, "")
    assert "can't start new thread" in found.stdout
    assert found.stdout.rstrip().endswith("(printed once: this is not a notebook)>")


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Path]:
    """A group of processes with a limit of its own, as of a pod."""
    mounted = subprocess.run(["mount", "-t", "cgroup", "-o", "pids", "none", str(tmp_path)])
    if mounted.returncode:
        pytest.skip("needs cgroup v1's controller of pids")
    group = tmp_path / f"tpusmi-test-{os.getpid()}"
    try:
        group.mkdir()
        yield group
        remove(group)
    finally:
        subprocess.run(["umount", str(tmp_path)])


def remove(group: Path) -> None:
    """Once the last of its processes has been taken apart."""
    until_s = time.monotonic() + LIMIT_S
    while group.exists():
        try:
            group.rmdir()
        except OSError:
            assert time.monotonic() < until_s, (group / "cgroup.procs").read_text()
            time.sleep(0.05)


@ROOT
@pytest.mark.parametrize("limit", [1, 2, 3, 8])
@pytest.mark.parametrize("command", ["--json", "-1", "ps"])
def test_at_a_pods_limit_a_command_ends_with_what_it_has(
    host: Host, pids: Path, command: str, limit: int
) -> None:
    (pids / "pids.max").write_text(str(limit))
    shell = f'echo $$ > {pids}/cgroup.procs; exec "$@"'
    found = subprocess.run(
        ["sh", "-c", shell, "sh", *TPUSMI, command, "--simulate", host.root],
        env=environment("/"), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert found.returncode in ((0, 5) if limit > 1 else (3, 4))
    assert "Traceback" not in found.stderr
    if limit > 1:
        assert "vfio" in found.stdout or "held" in found.stdout
