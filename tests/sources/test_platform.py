"""An agent of the platform is known by what only root can arrange, never by a name alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.hosts import running
from support.users import NOBODY, ROOT, as_another_user, reachable

from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.life import is_platform_agent

WAITS = "say('runs', os.getpid()); wait()"


def is_agent(pid: int) -> bool:
    path = f"/proc/{pid}"
    comm, groups = (procfs.read(f"{path}/{name}") for name in ("comm", "cgroup"))
    return is_platform_agent(path, comm.rstrip("\n"), procfs.read_status(path).uid, groups)


@contextmanager
def program(path: Path, user: int | None = None) -> Iterator[int]:
    """The pid of a process that runs a copy of the shell under that name."""
    shutil.copy("/bin/sh", path)
    path.chmod(0o755)
    process = subprocess.Popen(
        [path, "-c", "echo runs; read -r x"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        user=user,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == b"runs\n"
        yield process.pid
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


@ROOT
def test_roots_program_of_that_name_in_a_place_that_only_root_writes_is_one(tmp_path: Path) -> None:
    with program(tmp_path / "tpu-runtime") as pid:
        assert is_agent(pid)
    with program(tmp_path / "google_osconfig_agent") as pid:  # longer than the kernel's name for it
        assert is_agent(pid)
    with program(tmp_path / "train") as pid:
        assert not is_agent(pid)


@ROOT
@pytest.mark.parametrize(("mode", "owner"), [(0o777, 0), (0o1777, 0), (0o775, 0), (0o755, NOBODY)])
def test_in_a_place_that_others_write_it_is_none(tmp_path: Path, mode: int, owner: int) -> None:
    place = tmp_path / "place"
    place.mkdir()
    os.chown(place, owner, owner)
    place.chmod(mode)
    with program(place / "tpu-runtime") as pid:
        assert not is_agent(pid)
    below = place / "below"
    below.mkdir()
    with program(below / "tpu-runtime") as pid:
        assert is_agent(pid) == (mode == 0o1777)  # there nobody else can move what is root's


@ROOT
def test_another_user_is_none_whatever_he_runs_and_calls_it(tmp_path: Path) -> None:
    with reachable(tmp_path), program(tmp_path / "tpu-runtime", NOBODY) as pid:
        assert not is_agent(pid)
    renames = "open('/proc/self/comm', 'w').write('tpu-runtime')\n" + WAITS
    with running(renames, user=NOBODY, argv0="tpu-runtime") as child:
        child.line()
        assert not is_agent(child.pid)


def test_the_first_word_of_a_command_line_makes_no_agent() -> None:
    """`exec -a tpu-runtime python train.py`."""
    with running(WAITS, argv0="/usr/bin/tpu-runtime") as child:
        child.line()
        assert not is_agent(child.pid)


@ROOT
def test_whoever_may_not_see_the_program_takes_the_uid_and_the_kernels_name(
    tmp_path: Path,
) -> None:
    renames = "open('/proc/self/comm', 'w').write('tpu-runtime')\n" + WAITS
    with (
        program(tmp_path / "tpu-runtime") as pid,
        running(renames, user=1001) as other,
        running(WAITS) as python,
    ):
        other.line(), python.line()
        with as_another_user(tmp_path):
            assert is_agent(pid)
            assert not is_agent(other.pid)
            assert not is_agent(python.pid)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("0::/system.slice/tpu-runtime.service\n", True),
        ("5:devices:/x\n1:name=systemd:/system.slice/google-guest-agent.service\n0::/\n", True),
        ("0::/system.slice/train.service\n", False),
        ("0::/user.slice/user-1001.slice/user@1001.service/app.slice/tpu-runtime.service\n", False),
        ("0::/system.slice/docker-12.scope/system.slice/tpu-runtime.service\n", False),
        ("", False),
    ],
)
def test_a_group_of_the_systems_own_unit_is_proof_and_a_users_copy_of_it_is_none(
    groups: str, expected: bool
) -> None:
    assert is_platform_agent(f"/proc/{os.getpid()}", "python", 1001, groups) is expected


@pytest.mark.parametrize("character", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_control_group_of_a_user_that_is_named_like_two_lines_is_none(character: str) -> None:
    """The kernel refuses a newline in its name and no other character; any user may make one below
    their own.
    """
    own = "0::/user.slice/user-1000.slice/user@1000.service"
    groups = f"{own}/x{character}0::/system.slice/tpu-runtime.service\n"
    assert not is_platform_agent("/proc/self", "python", 1000, groups)
    assert is_platform_agent("/proc/self", "x", 1000, "0::/system.slice/tpu-runtime.service\n")
