"""Hostile and very large traces: a sentence and an exit code, little memory and time, and nothing
left behind.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import traces
from support.measured_command import Measured, measured
from support.reading_traces import CRASHED, Reading, readings

LIMIT_S, LATE_S = 1.0, 10.0
"""How long one trace may be read, and what a busy machine adds."""
MEMORY_MIB = 300
"""Python, our reader and the page have about 30; the largest tables of names cost the most."""
COMMAND_MIB = 200
UNREADABLE = (
    "empty", "one_byte", "half_of_a_real_one", "mangled_utf8", "gzipped", "trace_of_the_viewer",
    "json_text", "deep_json", "memory_profile", "unpacked_memory_profile", "program", "noise",
    "zeros", "text", "endless_varint", "length_beyond_the_file", "length_of_64_bits",
    "length_beyond_its_plane", "groups", "durations_of_64_bits", "negative_times",
    "devices_with_absurd_numbers", "a_million_planes",
)  # fmt: skip
"""Those that are not traces. The others may be read, or take too long, or be too much."""
COMMANDED = (
    "empty", "half_of_a_real_one", "mangled_utf8", "gzipped", "memory_profile", "program",
    "no_events", "control_characters", "peaks_that_are_not_numbers", "names_of_ten_megabytes",
    "deeply_nested_events",
)  # fmt: skip
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """The path of each hostile trace. They are large, and go when their tests are over."""
    directory = tmp_path_factory.mktemp("hostile")
    paths = {name: directory / f"{name}.xplane.pb" for name in traces.HOSTILE}
    for name, path in paths.items():
        path.write_bytes(traces.HOSTILE[name]())
    yield paths
    for path in paths.values():
        path.unlink()


@pytest.fixture(scope="module")
def read(made: dict[str, Path]) -> dict[str, Reading]:
    """What came of each, read in one process."""
    return dict(zip(made, readings([*made.values()], LIMIT_S), strict=True))


@pytest.mark.parametrize("name", traces.HOSTILE)
def test_a_hostile_trace_is_refused_with_a_sentence_or_read(
    name: str, read: dict[str, Reading]
) -> None:
    reading = read[name]
    assert reading.trouble != CRASHED, reading.text
    assert reading.took_s < LIMIT_S + LATE_S
    assert not CONTROL.search(reading.text)
    if name in UNREADABLE:
        assert reading.trouble == "unreadable"
    if reading.trouble is not None:
        assert reading.text.startswith(reading.trace)
        assert reading.text.endswith(".")
        assert "\n" not in reading.text


def test_hostile_traces_take_little_memory(read: dict[str, Reading]) -> None:
    assert max(reading.peak_mib for reading in read.values()) < MEMORY_MIB


def test_a_trace_cut_off_anywhere_is_refused_or_read(tmp_path: Path) -> None:
    whole = traces.ordinary(2)
    paths = []
    for at in traces.cuts(whole):
        paths.append(tmp_path / f"{at}.xplane.pb")
        paths[-1].write_bytes(whole[:at])
    cut = readings(paths, LIMIT_S)
    assert {reading.trouble for reading in cut} == {"unreadable", None}
    sentences = {reading.text.partition(" is not a profiler trace: ")[2] for reading in cut}
    assert "it is cut off at the end." in sentences


def profiled(path: Path, temporary: Path, *options: str) -> Measured:
    """`tpusmi profile` of that trace."""
    return measured(("profile", str(path), *options), temporary)


@pytest.mark.parametrize("name", COMMANDED)
def test_the_command_ends_with_a_sentence_and_a_code(
    name: str, made: dict[str, Path], tmp_path: Path
) -> None:
    before = traces.leftovers(made[name].parent)
    done = profiled(made[name], tmp_path / "tmp")
    assert "Traceback" not in done.err
    assert not CONTROL.search(done.out + done.err)
    assert done.peak_mib < COMMAND_MIB
    assert done.code == 4 or (done.code == 0 and name not in UNREADABLE)
    if done.code == 4:
        assert not done.out
        assert "is not a profiler trace" in done.err
    else:
        assert done.out
    assert traces.leftovers(made[name].parent) == before
    assert not traces.leftovers(tmp_path / "tmp")


@pytest.mark.parametrize(
    ("kind", "code", "sentence"),
    [
        ("host", 0, "The host's lines take too long to read"),
        ("devices", 4, "takes longer to read than the limit allows"),
        ("name", 0, "no operations of any device"),
    ],
)
def test_a_trace_of_300_megabytes_is_bounded_in_time_and_memory(
    tmp_path: Path, kind: str, code: int, sentence: str
) -> None:
    (tmp_path / "traces").mkdir()
    path = tmp_path / "traces" / "large.xplane.pb"
    traces.write_large(path, kind)
    try:
        began_s = time.monotonic()
        done = profiled(path, tmp_path / "tmp", "--timeout", "2", "--no-xprof")
        took_s = time.monotonic() - began_s
        files = traces.leftovers(tmp_path / "traces")
    finally:
        path.unlink()
    assert done.code == code, done.err
    assert sentence in " ".join((done.out + done.err).split())
    assert took_s < 2.0 + 2 * LATE_S
    assert done.peak_mib < COMMAND_MIB
    assert (files, traces.leftovers(tmp_path / "tmp")) == (["large.xplane.pb"], [])


def test_xprof_gives_up_a_large_trace_within_its_limits(tmp_path: Path) -> None:
    pytest.importorskip("xprof")
    (tmp_path / "traces").mkdir()
    path = tmp_path / "traces" / "large.xplane.pb"
    traces.write_large(path, "host")
    try:
        done = profiled(path, tmp_path / "tmp", "--timeout", "3")
    finally:
        path.unlink()
    assert done.code == 0, done.err
    assert "xprof" in " ".join(done.out.split()).partition("NOTES")[2]
    assert not traces.leftovers(tmp_path / "traces", tmp_path / "tmp")
