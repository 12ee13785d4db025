"""The kernel's list of mounts, in which any user may have names and sources of their own choice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tpusmi.sources import mounts
from tpusmi.sources.holders import procfs
from tpusmi.sources.segments.locks import Locks
from tpusmi.wire import places

ROOT = "24 1 254:0 / / rw - ext4 /dev/vda rw"
SHARED = "25 24 0:23 / /dev/shm rw,nosuid shared:4 - tmpfs tmpfs rw"
OWN = "/dev/shm/tpusmi-1001"


def proc_with(directory: Path, *lines: str, end: str = "\n") -> str:
    """A /proc whose own process has these mounts."""
    (directory / "self").mkdir(exist_ok=True)
    (directory / "self/mountinfo").write_bytes(("\n".join(lines) + end).encode())
    return str(directory)


def fuse(point: str, source: str = "x", kind: str = "fuse.sshfs") -> str:
    return f"90 24 0:77 / {point} rw,nosuid - {kind} {source} rw,user_id=1001,group_id=1001"


@pytest.mark.parametrize("end", "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
@pytest.mark.parametrize("space", ["\u2003", "\xa0", "\x1f"])
def test_the_name_of_a_mount_cannot_pose_as_another_line(
    tmp_path: Path, end: str, space: str
) -> None:
    name = f"/home/eve/x{end}25{space}24{space}0:23{space}y"
    proc = proc_with(tmp_path, ROOT, SHARED, fuse(name))
    assert Locks(proc).network(os.makedev(0, 23)) == ""
    assert Locks(proc).network(os.makedev(0, 77)) == "fuse.sshfs"
    assert procfs.mount_types(f"{proc}/self") == {
        "24": "ext4",
        "25": "tmpfs",
        "90": "fuse.sshfs",
    }
    under = mounts.mount_of(f"{name}/z".encode(), mounts.table(mounts.mounts(f"{proc}/self")))
    assert under is not None
    assert under.device == b"0:77"


@pytest.mark.parametrize("source", ["user_id=0,", "user_id=0", "x,user_id=0,"])
@pytest.mark.parametrize("kind", ["fuse", "fuse.user_id=0,", "fuse.,user_id=0,"])
def test_whose_a_mount_is_the_kernel_tells_and_not_its_source(
    tmp_path: Path, source: str, kind: str
) -> None:
    proc = proc_with(tmp_path, SHARED, fuse(OWN, source, kind))
    assert places.never_answering(proc) == {OWN: 1001}


def test_only_what_is_named_like_a_directory_for_segments_is_said_to_be_one(
    tmp_path: Path,
) -> None:
    proc = proc_with(tmp_path, SHARED, fuse(OWN), fuse("/dev/shm/data"), fuse(f"{OWN}/inside"))
    assert places.never_answering(proc) == {OWN: 1001}


def test_a_line_that_was_cut_tells_nothing(tmp_path: Path) -> None:
    whole = fuse(OWN).partition(",group_id")[0]
    proc = proc_with(tmp_path, SHARED, whole[:-2], end="")
    assert places.never_answering(proc) == {}
    assert procfs.mount_types(f"{proc}/self") == {"25": "tmpfs"}


def test_the_mounts_are_looked_at_once_for_all_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (tmp_path / f"run/user/{number}").mkdir(parents=True)
    asked: list[str] = []
    real = places.never_answering
    monkeypatch.setattr(places, "never_answering", lambda proc: (asked.append(proc), real(proc))[1])
    assert [*places.directories(str(tmp_path))] == []
    assert len(asked) == 1
