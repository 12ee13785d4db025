"""deploy/tpusmi.service under a real systemd, in namespaces of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.clocks import Stopwatch
from support.commands import environment
from support.requirements import needs
from support.run_as import another_user
from support.waits import until

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "support" / "booted.sh"
CGROUPS = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
NAMESPACES = (
    *("-C", "-m", "-p", "-u", "-i", "-n", "-f"),
    *("--mount-proc", "--propagation=private", "--kill-child=KILL"),
)
LIMIT_S = 40.0


@contextmanager
def cgroup() -> Iterator[Path]:
    """A cgroup for everything that systemd starts; skips where none can be made."""
    for parent in CGROUPS:
        if (parent / "cgroup.procs").exists() and (parent / "cgroup.controllers").exists():
            own = parent / f"tpusmi-test-{os.getpid()}"
            with suppress(OSError):
                own.mkdir()
                break
    else:
        pytest.skip("no cgroup can be made here")
    try:
        yield own
    finally:

        def is_gone() -> bool:
            for path in sorted(own.glob("**/"), reverse=True):
                with suppress(OSError):
                    path.rmdir()
            return not own.exists()

        until(is_gone, LIMIT_S, "the cgroup is gone")


@contextmanager
def booted(directory: Path, unit: str) -> Iterator[list[str]]:
    """The words before a command that is run beside that systemd."""
    path = directory / "tpusmi.service"
    path.write_text(unit, encoding="utf-8")
    as_root = another_user(0)  # with our Python within the reach of other users
    with cgroup() as own:
        enter = f'echo $$ >{own}/cgroup.procs && exec unshare "$@"'
        process = subprocess.Popen(
            ["bash", "-c", enter, "-", *NAMESPACES, *as_root, "bash", str(SCRIPT), str(path)],
            env=environment(directory),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            until(lambda: process.poll() is not None or children.read_text(), LIMIT_S, "a child")
            if process.poll() is not None:
                pytest.skip("no namespaces can be made here")
            systemd = children.read_text().strip()
            yield ["nsenter", "-t", systemd, "-C", "-m", "-p", "-u", "-i", "-n"]
        finally:
            process.kill()
            process.wait(LIMIT_S)


@needs("systemctl", "systemd-analyze", "unshare", "nsenter", "curl")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can boot a systemd")
def test_a_real_systemd_starts_the_unit_and_starts_it_again(tmp_path: Path) -> None:
    text = (ROOT / "deploy" / "tpusmi.service").read_text(encoding="utf-8")
    command = f'"{sys.executable}" -m tpusmi'
    text = text.replace("/opt/tpusmi/bin/tpusmi", command).replace("RestartSec=5", "RestartSec=0")
    path = ":".join(filter(None, sys.path))
    text = text.replace("[Install]", f'Environment="PYTHONPATH={path}"\n[Install]')
    with booted(tmp_path, text) as beside:

        def says(*words: str) -> str:
            command = [*beside, *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
            return done.stdout.strip()

        def pid() -> str:
            return says("systemctl", "show", "tpusmi", "-p", "MainPID", "--value")

        def serves() -> bool:
            return "tpusmi_source_up{" in says("curl", "-s", "http://127.0.0.1:8781/metrics")

        try:
            until(lambda: pid() != "", LIMIT_S, "systemd answers")
        except AssertionError:
            pytest.skip("no systemd can be booted here")
        until(serves, LIMIT_S, "the unit serves")
        first = pid()
        status = says("cat", f"/proc/{first}/status")
        assert "Uid:\t977\t977\t977\t977" in status
        assert "CapEff:\t0000000000080004" in status
        assert "NoNewPrivs:\t1" in status
        says("kill", "-TERM", first)  # not by systemd: earlyoom, or a person
        until(lambda: pid() not in ("0", first) and serves(), LIMIT_S, "it has been started again")
        with Stopwatch() as stop:
            says("systemctl", "stop", "tpusmi")
        assert stop.seconds() < 10
        assert says("systemctl", "show", "tpusmi", "-p", "Result", "--value") == "success"
        assert not serves()
