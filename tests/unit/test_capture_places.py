"""Where the agent lets JAX write a trace, and what it removes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tpusmi.agent import capture_places
from tpusmi.wire import capture_files

NONCE = "ab" * 16


@pytest.fixture
def segment(tmp_path: Path) -> str:
    directory = tmp_path / "segments"
    directory.mkdir()
    return str(directory / "71-12345.seg")


def made(segment: str, override: str | None = None) -> str:
    return capture_places.make_folder(segment, NONCE, os.getuid(), override)


def test_the_directory_of_the_user_comes_first_and_only_the_user_may_enter(segment: str) -> None:
    override = os.path.dirname(segment)
    folder = made(segment, override)
    assert folder == f"{override}/71-12345.{NONCE}.capture"
    assert os.stat(folder).st_mode & 0o777 == 0o700
    os.makedirs(f"{folder}/plugins/profile")
    Path(folder, "plugins", "x.pb").write_bytes(b"1")
    os.symlink("/etc", f"{folder}/plugins/profile/etc")
    os.unlink(f"{folder}/plugins/profile/etc")
    capture_places.remove_folder(folder, override)
    assert os.listdir(override) == []


def test_a_disk_comes_before_shared_memory_and_no_directory_stays(
    segment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    folder = made(segment)
    assert folder.startswith(f"{tmp_path}/tmp/tpusmi-{os.getuid()}/")
    capture_places.remove_folder(folder, None)
    assert os.listdir(tmp_path / "tmp") == []


def test_a_place_that_cannot_be_named_to_a_viewer_is_not_taken(
    segment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "tmp\udcff"
    odd.mkdir()
    link = tmp_path / "link"
    link.symlink_to(odd)
    for usual, override in ((odd, None), (link, None), (tmp_path, str(odd)), (tmp_path, str(link))):
        monkeypatch.setenv("TMPDIR", str(usual))
        folder = made(segment, override)
        assert folder.isprintable()
        capture_places.remove_folder(folder, override)
        assert os.listdir(odd) == []


def test_where_all_places_are_full_no_capture_begins(
    segment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_places, "ROOM_LEAST_BYTES", 2**70)
    monkeypatch.setattr(capture_places, "ROOM_AMPLE_BYTES", 2**70)
    with pytest.raises(capture_places.NoRoomError):
        made(segment, os.path.dirname(segment))
    assert os.listdir(os.path.dirname(segment)) == []


def test_a_directory_that_others_can_write_to_is_not_used(
    segment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tmp" / f"tpusmi-{os.getuid()}"
    place.mkdir(parents=True)
    place.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    folder = made(segment)
    assert not folder.startswith(str(tmp_path))
    capture_places.remove_folder(folder, None)


def test_what_a_killed_process_left_is_swept_when_it_is_old(segment: str) -> None:
    directory = Path(segment).parent
    names = [
        capture_files.answer_name(segment, NONCE),
        capture_files.ask_name(segment),
        capture_files.folder_name(segment, NONCE),
    ]
    for name in names[:2]:
        (directory / name).touch()
    (directory / names[2] / "plugins").mkdir(parents=True)
    Path(segment).touch()
    capture_places.sweep(segment, os.getuid(), str(directory))
    assert len(os.listdir(directory)) == 4
    for name in (*names, os.path.basename(segment)):
        os.utime(directory / name, (1, 1))
    capture_places.sweep(segment, os.getuid(), str(directory))
    assert os.listdir(directory) == [os.path.basename(segment)]


def test_a_link_in_the_place_of_the_directory_is_removed_and_not_followed(tmp_path: Path) -> None:
    others = tmp_path / "others"
    (others / "inner").mkdir(parents=True)
    (others / "inner" / "precious").touch()
    link = tmp_path / "71-12345.capture"
    link.symlink_to(others)
    capture_places.remove_folder(str(link), None)
    assert (others / "inner" / "precious").exists()
    folder = tmp_path / "72-12345.capture"
    folder.mkdir()
    (folder / "link").symlink_to(others)
    capture_places.remove_folder(str(folder), None)
    assert not folder.exists()
    assert (others / "inner" / "precious").exists()


def test_where_other_users_can_replace_the_directory_nothing_is_made_or_swept(
    segment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(shared / "tmp"))
    for override in (str(shared), str(shared / "tmp")):
        folder = made(segment, override)
        assert not folder.startswith(str(shared))
        capture_places.remove_folder(folder, override)
    left = shared / capture_files.folder_name(segment, NONCE)
    left.mkdir()
    os.utime(left, (1, 1))
    capture_places.sweep(segment, os.getuid(), str(shared))
    assert left.exists()
    shared.chmod(0o1777)  # as /tmp is
    capture_places.sweep(segment, os.getuid(), str(shared))
    assert not left.exists()


def test_a_mount_that_never_answers_is_not_swept(
    segment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = Path(os.path.dirname(segment), capture_files.answer_name(segment, NONCE))
    left.touch()
    os.utime(left, (1, 1))
    hanging = {str(left.parent): 1}
    monkeypatch.setattr(capture_places.places, "never_answering", lambda proc: hanging)
    capture_places.sweep(segment, os.getuid(), None)
    assert left.exists()


def test_a_trace_is_removed_also_without_a_free_descriptor(
    segment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(segment, os.path.dirname(segment))
    Path(folder, capture_files.TRACE_NAME).touch()

    def refuse(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "fwalk", refuse)
    capture_places.remove_folder(folder, os.path.dirname(segment))
    assert not os.path.exists(folder)
