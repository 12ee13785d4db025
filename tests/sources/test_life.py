"""Who has lost its launcher, and who has not, as the kernel tells it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.requirements import needs
from support.users import ROOT

from tpusmi.sources.holders.life import life_of
from tpusmi.sources.holders.procfs import read_stat, read_status

TERMINAL = 34816  # pts/0
OURS = 20


def put(proc: Path, pid: int, *numbers: int, state: str = "S", comm: str = "bash") -> None:
    """A process with that parent, group, session and terminal."""
    (proc / str(pid)).mkdir(parents=True)
    fields = [state, *numbers, *[0] * 12, 1, 0, 100]
    (proc / str(pid) / "stat").write_text(f"{pid} ({comm}) {' '.join(map(str, fields))}\n")
    (proc / str(pid) / "comm").write_text(f"{comm}\n")


def test_a_name_with_a_character_that_ends_a_line_elsewhere_adds_none_to_the_status(
    tmp_path: Path,
) -> None:
    """The kernel escapes a newline in it, and no other."""
    (tmp_path / "status").write_text("Name:\tx\x0cNSpid:\t7 1\nUid:\t5\t5\t5\t5\n")
    status = read_status(str(tmp_path))
    assert (status.uid, status.inner_pid) == (5, None)


def codes(proc: Path) -> list[str]:
    process = f"{proc}/{OURS}"
    stat = read_stat(process)
    assert stat is not None
    life = life_of(process, (stat, read_status(process)), ["python"], stat.parent, 0.0)
    return [sign.code for sign in life.signs]


@pytest.mark.parametrize(
    ("init", "ours", "expected"),
    [
        pytest.param((0, 1, 1, 0), (1, OURS, OURS, 0), [], id="leader of its own session"),
        pytest.param((0, 1, 1, 0), (1, 1, 1, 0), [], id="child of a shell that is the init"),
        pytest.param((0, 1, 1, 0), (1, OURS, 1, 0), [], id="that made a group of its own"),
        pytest.param(
            (0, 1, 1, 0), (1, 19, 1, 0), ["orphaned"], id="whose launcher's group is gone"
        ),
        pytest.param(
            (0, 1, 1, TERMINAL), (1, 19, 1, TERMINAL), [], id="second of a pipeline on a terminal"
        ),
        pytest.param((0, 1, 1, 0), (1, OURS, 19, 0), ["session_gone"], id="its session ended"),
        pytest.param((0, 0, 0, 0), (1, 19, 19, 0), ["orphaned"], id="init's session is outside"),
        pytest.param((0, 0, 0, 0), (1, 19, 0, 0), ["orphaned"], id="session outside, group gone"),
        pytest.param((0, 0, 0, 0), (1, 0, 0, 0), [], id="session and group outside"),
        pytest.param((0, 1, 1, 0), (1, 0, 0, 0), ["orphaned"], id="entered from outside"),
        pytest.param((0, 1, 1, 0), (0, OURS, 0, 0), [], id="its parent is outside"),
    ],
)
def test_a_launcher_is_gone_only_where_the_parent_cannot_be_it(
    tmp_path: Path,
    init: tuple[int, int, int, int],
    ours: tuple[int, int, int, int],
    expected: list[str],
) -> None:
    put(tmp_path, 1, *init)
    put(tmp_path, OURS, *ours, comm="python")
    assert codes(tmp_path) == expected


@ROOT
@needs("bash", "unshare")
def test_an_orphan_is_known_in_a_container_whose_session_is_outside(tmp_path: Path) -> None:
    code = """
import os, signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)
parent = os.getpid()
if os.fork():
    time.sleep(0.05)
    os._exit(0)
while os.getppid() == parent: time.sleep(0.001)
from tpusmi.sources.holders.life import life_of
from tpusmi.sources.holders.procfs import read_stat, read_status
me = f"/proc/{os.getpid()}"
stat = read_stat(me)
life = life_of(me, (stat, read_status(me)), ["python"], stat.parent, 0.0)
print(stat.session, [sign.code for sign in life.signs], flush=True)
open(sys.argv[1], "w")
"""
    job = f"{shlex.quote(sys.executable)} -c '{code}' {shlex.quote(str(tmp_path))}/said"
    until_said = f"for n in $(seq 600); do [ -e {tmp_path}/said ] && break; sleep 0.05; done"
    script = f"set -m; {job} & wait; {until_said}"  # a group of its own
    inside = ["unshare", "--pid", "--fork", "--mount-proc", "bash", "-c", script]
    done = subprocess.run(inside, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n")[0] == "0 ['orphaned']", done.stderr
