"""What every source promises: it answers with a status and a sentence, whatever it meets.

A new source joins SOURCES, and has all of this.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from support import machines, segments
from support.users import as_another_user

from tpusmi.collect import Source
from tpusmi.model import ABSENT, DENIED, FAILED, OK, Host, Outcome
from tpusmi.sources.segments import Segments
from tpusmi.sources.sysfs import BUS, Sysfs

ANSWERS_WITHIN_S = 1.0


class Case(NamedTuple):
    """A source, and how a directory becomes the machines that it meets."""

    open: Callable[[Path], Source]
    good: Callable[[Path], object]
    """Adds what it should find."""
    found: Callable[[Outcome], bool]
    """True when it found that."""
    garbage: Callable[[Path], str]
    """Adds something broken; gives what the sentence about it must name."""
    closed: Callable[[Path], Path]
    """What of a good machine mode 000 makes unreadable."""


def _segments_of(root: Path) -> Path:
    directory = root / f"dev/shm/tpusmi-{os.getuid()}"
    directory.mkdir(parents=True, exist_ok=True, mode=0o755)
    if not (root / "proc").exists():
        (root / "proc").symlink_to("/proc")
    return directory


def _bad_segment(root: Path) -> str:
    (_segments_of(root) / "12-34.seg").write_bytes(b"garbage" * 99)
    return "12-34.seg"


def _bad_function(root: Path) -> str:
    function = root / BUS.lstrip("/") / "0000:00:1f.0"
    function.mkdir(parents=True)
    (function / "vendor").write_bytes(b"\xff\x00garbage" * 99)
    return "0000:00:1f.0"


SEGMENTS = Case(
    open=lambda root: Segments(Host(root=str(root))),
    good=lambda root: segments.my_segment(_segments_of(root)),
    found=lambda outcome: bool(outcome.readings),
    garbage=_bad_segment,
    closed=lambda root: next(_segments_of(root).glob("*.seg")),
)
SYSFS = Case(
    open=lambda root: Sysfs(Host(root=str(root))),
    good=lambda root: machines.unpack("v5e-8", root),
    found=lambda outcome: len(outcome.chips) == 8,
    garbage=_bad_function,
    closed=lambda root: root / BUS.lstrip("/"),
)
SOURCES = {"segments": SEGMENTS, "sysfs": SYSFS}

every_source = pytest.mark.parametrize("case", SOURCES.values(), ids=SOURCES.keys())


def read(case: Case, root: Path) -> Outcome:
    """What the source answers; that it does so in time is part of every promise."""
    source = case.open(root)
    now_s = time.monotonic()
    found = source.read(now_s)
    assert time.monotonic() - now_s < ANSWERS_WITHIN_S
    assert found.source == source.name
    assert found.message
    assert all(text.isprintable() for text in (found.message, *found.notes))
    return found


@every_source
def test_an_empty_machine_is_absent(case: Case, tmp_path: Path) -> None:
    found = read(case, tmp_path)
    assert found.status == ABSENT
    assert not case.found(found)


@every_source
def test_a_good_machine_gives_what_is_there(case: Case, tmp_path: Path) -> None:
    case.good(tmp_path)
    found = read(case, tmp_path)
    assert found.status == OK
    assert case.found(found)
    assert found.notes == ()
    assert 0 <= found.took_s < ANSWERS_WITHIN_S


@every_source
def test_garbage_is_failed_with_its_path(case: Case, tmp_path: Path) -> None:
    named = case.garbage(tmp_path)
    found = read(case, tmp_path)
    assert found.status == FAILED
    assert named in found.message


@every_source
def test_one_bad_thing_does_not_lose_the_good_ones(case: Case, tmp_path: Path) -> None:
    case.good(tmp_path)
    named = case.garbage(tmp_path)
    found = read(case, tmp_path)
    assert found.status == OK
    assert case.found(found)
    assert len(found.notes) == 1
    assert named in found.notes[0]


@every_source
def test_what_may_not_be_read_is_denied(case: Case, tmp_path: Path) -> None:
    case.good(tmp_path)
    closed = case.closed(tmp_path)
    mode = closed.stat().st_mode
    closed.chmod(0)
    try:
        with as_another_user(tmp_path):
            found = read(case, tmp_path)
    finally:
        closed.chmod(mode)
    assert found.status == DENIED
    assert not case.found(found)
