"""Names of files are another user's text: what is shown of them moves no terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import hosts
from support.users import ROOT

from tpusmi.model import Host, Outcome
from tpusmi.sources.segments import Segments
from tpusmi.wire import places

STRANGER = 41001
NASTY = [b"\x1b]0;owned\x07", b"\x1b[2J", b"a\nb", b"\xff\x9b31m", "\u202e".encode(), b"a b", b"/"]


def texts(found: Outcome) -> Iterator[str]:
    yield from (found.message, *found.notes, *(m.message for m in found.missing))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    found = hosts.host(tmp_path)._replace(segment_dir=None)
    Path(found.path("/dev/shm")).mkdir(parents=True)
    return found


@ROOT
@pytest.mark.parametrize("name", NASTY[:-1])
def test_a_directory_with_terminal_codes_in_its_name_reaches_no_screen(
    host: Host, name: bytes
) -> None:
    path = os.fsencode(host.path(f"/dev/shm/tpusmi-{STRANGER}.")) + name
    os.symlink("nowhere", path)
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    for text in texts(Segments(host).read(time.monotonic())):
        assert text.isprintable()
        text.encode()


def test_where_a_user_names_the_directory_himself_its_name_is_shown_without_codes(
    tmp_path: Path,
) -> None:
    named = tmp_path / "\x1b[2J"
    named.mkdir()
    (named / "1-1.seg").write_text("no segment")
    host = Host(root=str(tmp_path), segment_dir=str(named))
    found = [*texts(Segments(host).read(time.monotonic()))]
    assert any("1-1.seg" in text for text in found)
    assert all(text.isprintable() for text in found)


@pytest.mark.parametrize("name", NASTY)
def test_a_name_that_no_agent_makes_is_no_directory_of_segments(name: bytes) -> None:
    assert places.user_in_name(f"tpusmi-{STRANGER}.{os.fsdecode(name)}") is None


def test_the_names_that_agents_make_are_known_again() -> None:
    for random in ("", os.urandom(8).hex()):
        assert places.user_in_name(places.directory_name(STRANGER, random)) == STRANGER
    assert places.user_in_name(f"other-{STRANGER}") is None
    assert places.user_in_name(f"tpusmi-{STRANGER}.") is None
