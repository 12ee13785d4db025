"""What every source promises: it answers with a status and a sentence, whatever it meets."""

from __future__ import annotations

import os
import time
from pathlib import Path

import forge
import pytest

from tpusmi.collect import Source
from tpusmi.model import ABSENT, DENIED, FAILED, OK, Host
from tpusmi.sources.segments import Segments

SHM = "dev/shm/tpusmi-{uid}"


def segments(root: Path) -> Source:
    return Segments(Host(root=str(root)))


SOURCES = pytest.mark.parametrize("source", [segments], ids=["segments"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with our own /proc and a place for segments."""
    (tmp_path / "proc").symlink_to("/proc")
    (tmp_path / SHM.format(uid=os.getuid())).mkdir(parents=True, mode=0o755)
    return tmp_path


def place(root: Path) -> Path:
    return root / SHM.format(uid=os.getuid())


@SOURCES
def test_an_empty_machine_is_absent(source: object, tmp_path: Path) -> None:
    found = source(tmp_path).read(time.monotonic())  # type: ignore[operator]
    assert found.status == ABSENT
    assert found.message
    assert found.readings == ()


@SOURCES
def test_a_good_machine_gives_its_readings(source: object, root: Path) -> None:
    forge.my_segment(place(root))
    found = source(root).read(time.monotonic())  # type: ignore[operator]
    assert found.status == OK
    assert found.readings
    assert 0 <= found.took_s < 1


@SOURCES
def test_garbage_is_failed_with_its_path(source: object, root: Path) -> None:
    (place(root) / "12-34.seg").write_bytes(b"garbage" * 99)
    found = source(root).read(time.monotonic())  # type: ignore[operator]
    assert found.status == FAILED
    assert "12-34.seg" in found.message


@SOURCES
def test_what_may_not_be_read_is_denied(source: object, root: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root ignores modes; test_segments reads as another user")
    os.chmod(forge.my_segment(place(root)).path, 0)
    assert source(root).read(time.monotonic()).status == DENIED  # type: ignore[operator]


@SOURCES
def test_one_bad_thing_does_not_lose_the_good_ones(source: object, root: Path) -> None:
    forge.my_segment(place(root))
    (place(root) / "12-34.seg").write_bytes(b"garbage" * 99)
    found = source(root).read(time.monotonic())  # type: ignore[operator]
    assert found.status == OK
    assert len(found.notes) == 1
