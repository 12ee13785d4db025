"""Processes of an ordinary user that write monstrous things into /proc: they cost `ps` next to
nothing, and hide nobody.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

import pytest
from support.clocks import takes_at_most
from support.hosts import NODE, SEES_ALL, chip, host, running

from tpusmi.model import DENIED, OK
from tpusmi.sources.holders import Holders
from tpusmi.sources.holders.passes import MAPS_MOST_BYTES, SHOWN_MOST, Loaded

MAPPED = """
import mmap
with open(sys.argv[1], "rb") as file:
    kept = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
say("mapped"); wait()
"""
TEXTS = {
    "double quotes": '"' * 60_000 + "key",
    "quotes": "'" * 60_000 + "key",
    "backslashes": "\\" * 60_000 + "token",
    "web tokens": "eyJ-" * 15_000,
    "names": "token=" * 10_000,
    "not UTF-8": "\udcff" * 60_000,
}
MOST_S = 2.0
"""For a look at every process; it was 17 s for 8,000 quotes."""


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_command_line_of_64_kilobytes_costs_next_to_nothing(tmp_path: Path, text: str) -> None:
    library = tmp_path / "libtpu.so"
    library.write_bytes(bytes(mmap.PAGESIZE))
    environment = {"TPU_PROCESS_ADDRESSES": text, "LIBTPU_INIT_ARGS": text}
    there = host(tmp_path, NODE)
    with running(MAPPED, library, text, env=environment) as process:
        assert process.line() == "mapped"
        with takes_at_most(MOST_S):
            outcome = Holders(there, lambda: (chip(0, NODE),), detailed=True).read(time.monotonic())
    (found,) = [p for p in outcome.processes if p.pid == process.pid]
    assert (outcome.status, found.loaded_only) == (OK if SEES_ALL else DENIED, True)
    assert len(found.command) <= 1024


MANY = """
import mmap
with open(sys.argv[1], "rb") as file:
    kept = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
for _ in range(3 * int(sys.argv[2])):
    if not os.fork(): break
else: say("mapped")
wait()
"""


def test_of_very_many_processes_that_map_libtpu_some_are_described(tmp_path: Path) -> None:
    library = tmp_path / "libtpu.so"
    library.write_bytes(bytes(mmap.PAGESIZE))
    there = host(tmp_path, NODE)
    with running(MANY, library, SHOWN_MOST, '"' * 60_000) as process:
        assert process.line() == "mapped"
        with takes_at_most(MOST_S):
            outcome = Holders(there, lambda: (chip(0, NODE),), detailed=True).read(time.monotonic())
    assert len(outcome.processes) == SHOWN_MOST
    (note,) = outcome.notes
    assert "more processes have libtpu loaded, and hold no TPU" in note


def test_a_holder_with_a_monstrous_command_line_is_a_holder_like_others(tmp_path: Path) -> None:
    there = host(tmp_path, NODE)
    node = tmp_path / NODE.removeprefix("/")
    code = "files = hold(sys.argv[1]); say('holds'); wait()"
    # Two arguments of 64 KB: the kernel takes 128 KB of one.
    with running(code, node, '"' * 65_000, '"' * 65_000, "key") as process:
        assert process.line() == "holds"
        holders = Holders(there, lambda: (chip(0, NODE),), detailed=True)
        with takes_at_most(MOST_S):
            outcome = holders.read(time.monotonic())
    (found,) = [p for p in outcome.processes if p.pid == process.pid]
    assert (outcome.status, found.holds) == (OK, (NODE,))
    assert len(found.command) <= 1024


def test_maps_without_end_are_read_in_part(tmp_path: Path) -> None:
    directory = tmp_path / ("x" * 200) / ("y" * 200)
    directory.mkdir(parents=True)
    code = """
import ctypes
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 4096)
libc = ctypes.CDLL(None)
for i in range(60000): libc.mmap(None, 4096, 1 if i % 2 else 3, 1, file, 0)
say("mapped"); wait()
"""
    with running(code, directory / "z") as process:
        assert process.line() == "mapped"
        loaded = Loaded("/proc")
        with takes_at_most(MOST_S):
            loaded.look({process.pid: 1}, 10)
        with open(f"/proc/{process.pid}/maps", "rb") as maps:
            assert len(maps.read(2 * MAPS_MOST_BYTES)) > MAPS_MOST_BYTES
    assert loaded.pids() == ()


def test_what_libtpu_maps_is_found_across_the_ends_of_what_is_read(tmp_path: Path) -> None:
    loaded = Loaded(str(tmp_path))
    process = tmp_path / "7"
    process.mkdir()
    (process / "stat").write_text(f"7 (x) S {' '.join(['1'] * 40)}")
    for before in (65_536 - 4, 65_536, 131_072 - 9, 10):
        (process / "maps").write_bytes(b"/" * before + b"libtpu.so\n")
        loaded.look({7: before}, 10)
        assert loaded.pids() == (7,)


def test_an_environment_of_any_length_gives_its_first_values(tmp_path: Path) -> None:
    from tpusmi.sources.holders.procfs import environment

    (tmp_path / "environ").write_bytes(
        b"A=1\0XTPU_WORKER_ID=9\0TPU_WORKER_ID=3\0TPU_WORKER_ID=4\0TPU_TOPOLOGY=2x2"
        + b"\0" * 99_000
    )
    assert environment(str(tmp_path)) == {"TPU_WORKER_ID": "3", "TPU_TOPOLOGY": "2x2"}
    assert environment(os.devnull) == {}
