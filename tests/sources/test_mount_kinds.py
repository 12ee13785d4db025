"""On which file system a descriptor is, and what the answer may cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpusmi.sources.holders import allowance, mount_kinds
from tpusmi.sources.holders.allowance import Allowance
from tpusmi.sources.holders.mount_kinds import MountKinds
from tpusmi.sources.holders.nodes import Nodes
from tpusmi.sources.holders.procfs import read_status
from tpusmi.sources.holders.scan import Scan

STRANGER = 1001


def with_lists(monkeypatch: pytest.MonkeyPatch, lists: dict[str, dict[str, str]]) -> list[str]:
    """Processes of one namespace that see these mounts; those whose lists are read, as they are."""
    read: list[str] = []

    def mount_types(process: str) -> dict[str, str]:
        read.append(process)
        return dict(lists.get(process, {}))

    monkeypatch.setattr(mount_kinds, "mount_types", mount_types)
    monkeypatch.setattr(mount_kinds, "_of_each_namespace", lambda proc: ())
    monkeypatch.setattr(mount_kinds, "read_stat", lambda process: None)
    return read


def test_one_with_another_root_hides_no_mount_of_its_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any user may have one, in a user namespace alone: the kernel lists only the mounts in it."""
    monkeypatch.setattr(mount_kinds, "namespace", lambda process, kind: "mnt:[1]")
    read = with_lists(monkeypatch, {"/proc/8": {"70": "tmpfs"}, "/proc/9": {"70": "tmpfs"}})
    mounts = MountKinds("/proc", Allowance())
    assert mounts.answers_at_once("/proc/7", "5") is None
    assert mounts.answers_at_once("/proc/8", "70") is True
    assert mounts.answers_at_once("/proc/9", "70") is True
    assert read == ["/proc/7", "/proc/8"]


def test_the_lists_of_mounts_that_a_pass_reads_for_a_user_have_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(allowance, "FREE_DESCRIPTORS", 0)
    monkeypatch.setattr(allowance, "USER_DESCRIPTORS", 3 * mount_kinds.MOUNT_COST)
    monkeypatch.setattr(
        allowance, "read_status", lambda p: read_status("/proc/self")._replace(uid=STRANGER)
    )
    monkeypatch.setattr(mount_kinds, "namespace", lambda process, kind: None)  # each has its own
    lists = {f"/proc/{n}": {f"{n}": "tmpfs", f"1{n}": "tmpfs"} for n in (30, 31, 32)}
    with_lists(monkeypatch, lists)
    share = Allowance()
    mounts = MountKinds("/proc", share)
    answers = [mounts.answers_at_once(f"/proc/{n}", f"{n}") for n in (30, 31, 32)]
    assert answers == [True, True, None]
    share.renew()
    mounts.begin()
    assert mounts.answers_at_once("/proc/32", "32") is True  # what was not read is not remembered


def test_overlays_of_a_stranger_are_listed_once_and_not_beyond_the_share_of_a_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    overlay = {f"{n}": "overlay" for n in range(50)}
    with_lists(monkeypatch, {"/proc/7": overlay, "/proc/8": overlay})
    monkeypatch.setattr(mount_kinds, "namespace", lambda process, kind: process)
    monkeypatch.setattr(mount_kinds, "is_overlay_trusted", lambda process: False)
    listed: list[str] = []
    monkeypatch.setattr(mount_kinds, "overlays", lambda process: listed.append(process) or {})
    monkeypatch.setattr(allowance, "FREE_DESCRIPTORS", 310)
    monkeypatch.setattr(allowance, "USER_DESCRIPTORS", 0)
    monkeypatch.setattr(
        allowance, "read_status", lambda p: read_status("/proc/self")._replace(uid=STRANGER)
    )
    mounts = MountKinds("/proc", Allowance())
    for process in ("/proc/7", "/proc/8"):
        for number in range(50):
            assert mounts.answers_at_once(process, f"{number}") is None
    assert listed == ["/proc/self", "/proc/7"]


def test_what_is_remembered_of_unknown_mounts_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has very many brings about no look at all that the others have."""
    monkeypatch.setattr(mount_kinds, "UNKNOWN_MOST", 3)
    with_lists(monkeypatch, {})
    mounts = MountKinds("/proc", Allowance())
    for number in range(10):
        assert mounts.answers_at_once("/proc/7", f"{number}") is None
        assert len(mounts._unknown) <= 3


def test_a_process_with_the_number_of_another_begins_anew(tmp_path: Path) -> None:
    for name in ("7", "8", "next"):
        (tmp_path / name / "fd").mkdir(parents=True)
    looks = Scan(str(tmp_path), Nodes({}, {}, ()), ())
    looks.look(0.0)
    unknown = looks._descriptors._mounts._unknown
    unknown.update({(f"{tmp_path}/7", "70"), (f"{tmp_path}/8", "70")})
    (tmp_path / "7").rename(tmp_path / "before")
    (tmp_path / "next").rename(tmp_path / "7")
    looks.look(0.1)
    assert looks._descriptors._mounts._unknown == {(f"{tmp_path}/8", "70")}
