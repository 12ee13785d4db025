"""`tpusmi clear` removes the segments of ended jobs, and none that lives or may live."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from support.commands import TPUSMI, environment
from support.network_mounts import mounted_as
from support.segments import RUNNING, dead_identity, device, my_segment, segment, slot, without_lock

from tpusmi.actions import clearing
from tpusmi.model import Host
from tpusmi.sources.segments import Segments, quota
from tpusmi.wire import capture_files, identity
from tpusmi.wire.writer import SegmentWriter


def ended(directory: Path, name: str | None = None) -> Path:
    writer = segment(directory, dead_identity(), name=name)
    writer.append(slot(100.0, RUNNING, [device(), device(1)]))
    writer.close()
    return Path(writer.path)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(segment_dir=str(tmp_path))


def test_it_removes_what_ended_jobs_left_and_nothing_else(tmp_path: Path, host: Host) -> None:
    dead, living = ended(tmp_path), my_segment(tmp_path)
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    would = clearing.forget(host, dry_run=True)
    assert [f.path for f in would.removed] == [str(dead)]
    assert dead.exists()
    done = clearing.forget(host)
    assert [f.path for f in done.removed] == [str(dead)]
    assert done.living == 1
    assert sorted(os.listdir(tmp_path)) == sorted((os.path.basename(living.path), other.name))
    living.close()


def test_it_removes_what_old_captures_left_and_not_what_a_new_one_needs(
    tmp_path: Path, host: Host
) -> None:
    living = my_segment(tmp_path)
    names = [
        capture_files.ask_name(living.path),
        capture_files.answer_name(living.path, "1" * 32),
        capture_files.folder_name(living.path, "1" * 32),
    ]
    for name in names[:2]:
        (tmp_path / name).write_text("{}")
    folder = tmp_path / names[2]
    (folder / "plugins").mkdir(parents=True)
    (folder / "plugins" / "x.xplane.pb").write_bytes(b"1")
    assert clearing.forget(host).captures == ()
    for name in names:
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / "notes.ask.txt").symlink_to("/etc/passwd")
    paths = sorted(f"{tmp_path}/{name}" for name in names)
    assert sorted(clearing.forget(host, dry_run=True).captures) == paths
    assert folder.exists()
    assert sorted(clearing.forget(host).captures) == paths
    assert sorted(os.listdir(tmp_path)) == sorted((os.path.basename(living.path), "notes.ask.txt"))
    living.close()


def test_a_lock_that_is_held_keeps_the_file_of_a_pid_that_has_ended(
    tmp_path: Path, host: Host
) -> None:
    writer = segment(tmp_path, dead_identity())
    writer.append(slot(100.0, RUNNING, [device(), device(1)]))
    assert clearing.forget(host).removed == ()
    assert os.path.exists(writer.path)
    writer.close()


def test_one_that_cannot_be_judged_is_kept_with_the_reason(tmp_path: Path, host: Host) -> None:
    writer = segment(tmp_path, dead_identity()._replace(pid_namespace=1))
    writer.append(slot(100.0, RUNNING, [device(), device(1)]))
    without_lock(writer)
    (kept,) = clearing.forget(host).kept
    assert kept.why == "nothing proves that its process has ended"
    assert not kept.failed
    assert os.path.exists(writer.path)


def test_a_new_file_of_that_name_is_not_removed(
    tmp_path: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process takes the name between the judgment and the removal: locked, or not yet."""
    dead = ended(tmp_path)
    doubt = clearing._doubt
    new: list[SegmentWriter] = []

    def replaced(judged: clearing.Judged) -> str:
        dead.unlink()
        new.append(segment(tmp_path, identity.me(), name=dead.name))
        new[0].close()
        return doubt(judged)

    monkeypatch.setattr(clearing, "_doubt", replaced)
    (kept,) = clearing.forget(host).kept
    assert kept.why == "it is now another file"
    assert dead.exists()


def test_a_lock_taken_after_the_judgment_keeps_the_file(
    tmp_path: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(tmp_path)
    monkeypatch.setattr(clearing.lock, "is_held", lambda fd: True)
    done = clearing.forget(host)
    assert done.removed == ()


def test_a_link_is_not_followed(
    tmp_path: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = ended(tmp_path)
    treasure = tmp_path / "treasure"
    doubt = clearing._doubt

    def swapped(judged: clearing.Judged) -> str:
        dead.rename(treasure)
        dead.symlink_to(treasure)
        return doubt(judged)

    monkeypatch.setattr(clearing, "_doubt", swapped)
    (kept,) = clearing.forget(host).kept
    assert kept.failed
    assert treasure.exists()


def test_more_jobs_than_one_read_shows_are_all_forgotten(
    tmp_path: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = quota.OF_TRUSTED._replace(segments=2)
    monkeypatch.setattr(quota, "OF_TRUSTED", few)
    paths = [ended(tmp_path)]
    for number in range(1, 5):
        who = dead_identity()
        writer = segment(tmp_path, who._replace(start_ticks=who.start_ticks + number))
        writer.append(slot(100.0, RUNNING, [device(), device(1)]))
        writer.close()
        paths.append(Path(writer.path))
    done = clearing.forget(host)
    assert sorted(f.path for f in done.removed) == sorted(map(str, paths))
    assert (done.unread, os.listdir(tmp_path)) == ("", [])


def run(directory: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = environment(directory, **variables)
    return subprocess.run(
        [*TPUSMI, "clear", *more], env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_command_reports_and_obeys_readonly(tmp_path: Path) -> None:
    dead = ended(tmp_path)
    refused = run(tmp_path, TPUSMI_MODE="readonly")
    assert refused.returncode == 2
    assert "readonly: clear is disabled" in refused.stderr
    assert dead.exists()
    assert run(tmp_path, "-n").stdout.startswith(f"would forget pid {dead_identity().pid} (")
    answer = json.loads(run(tmp_path, "--json").stdout)
    assert [f["path"] for f in answer["removed"]] == [str(dead)]
    assert answer["done"] is True
    assert not dead.exists()
    again = run(tmp_path)
    assert (again.returncode, again.stdout) == (0, "nothing to forget: no job of yours has ended\n")


def fresh(directory: Path, age_s: float = 0.0, **more: Any) -> SegmentWriter:
    """The segment of a process that is not here, with a sample of that age; its lock is free."""
    writer = segment(directory, dead_identity()._replace(**more))
    at_s, wall_s = time.monotonic() - age_s, time.time() - age_s
    writer.append(slot(at_s, RUNNING, [device(), device(1)], wall_s))
    writer.close()
    return writer


OTHER_BOOT = b"elsewhere".ljust(16)


def test_a_job_of_another_machine_on_a_network_file_system_lives_and_is_kept(
    tmp_path: Path,
) -> None:
    """Its pid and pid namespace are numbers that mean nothing here, and its lock does not show."""
    writer = fresh(tmp_path, boot_id=OTHER_BOOT)
    host = mounted_as(tmp_path, "nfs4")
    (process,) = Segments(host).read(time.monotonic()).processes
    assert (process.state, process.is_verified) == ("live", False)
    done = clearing.forget(host)
    assert (done.files, done.living) == ((), 1)
    assert os.path.exists(writer.path)
    os.unlink(writer.path)
    fresh(tmp_path, 60.0, boot_id=OTHER_BOOT)
    (kept,) = clearing.forget(host).kept
    assert kept.process.state == "unknown"
    assert kept.why == "nothing proves that its process has ended"


@pytest.mark.parametrize("boot_id", [OTHER_BOOT, bytes(16)])
def test_a_job_whose_lock_this_kernel_may_not_know_is_kept_while_it_writes(
    tmp_path: Path, host: Host, boot_id: bytes
) -> None:
    """As in gVisor, on a directory of the host: the first look sees a free lock, and no more."""
    path = fresh(tmp_path, boot_id=boot_id, pid_namespace=1).path
    (kept,) = clearing.forget(host).kept
    assert kept.why.startswith("it was written within the last minute")
    os.utime(path, (time.time() - 61, time.time() - 61))
    assert [f.path for f in clearing.forget(host).removed] == [path]


def test_a_job_of_a_container_of_this_machine_is_forgotten_at_once(
    tmp_path: Path, host: Host
) -> None:
    path = fresh(tmp_path, pid_namespace=1).path
    assert [f.path for f in clearing.forget(host).removed] == [path]
