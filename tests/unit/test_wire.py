"""The segment format: round trips, refusals, torn writes, goldens."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import segments

from tpusmi.wire import layout, lock
from tpusmi.wire.__main__ import dump
from tpusmi.wire.layout import (
    DEVICE_FIELDS,
    FACTS_JSON,
    HEADER_BYTES,
    PROCESS_FIELDS,
    PROFILE_PPROF,
    SegmentError,
)
from tpusmi.wire.reader import SegmentReader
from tpusmi.wire.slice_summary import unpacked
from tpusmi.wire.writer import SegmentWriter

SEGMENTS = Path(__file__).parent.parent / "segments"


@pytest.fixture
def written(tmp_path: Path) -> str:
    return segments.golden(tmp_path)


def patched(path: str, offset: int, data: bytes) -> str:
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)
    return path


def refusal(path: str) -> str:
    with pytest.raises(SegmentError) as caught:
        SegmentReader(path)
    return str(caught.value)


def test_every_field_comes_back_at_its_extremes(tmp_path: Path) -> None:
    extremes = [0.0, 5e-324, 1.7e308, 2.0**62, 1e-9]
    writer = segments.segment(tmp_path, segments.KNOWN, devices=3)
    for value in extremes:
        process = dict.fromkeys(PROCESS_FIELDS, value)
        writer.append(segments.slot(7.0, process, [dict.fromkeys(DEVICE_FIELDS, value)] * 3))
        sample = SegmentReader(writer.path).newest()
        assert sample is not None
        assert sample.process == process
        assert sample.devices == (dict.fromkeys(DEVICE_FIELDS, value),) * 3


@pytest.mark.parametrize("unknown", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_unknown_and_not_zero(tmp_path: Path, unknown: float) -> None:
    writer = segments.segment(tmp_path, segments.KNOWN, devices=1)
    writer.append(segments.slot(7.0, {"steps": unknown}, [{"hbm_used_bytes": unknown}]))
    sample = SegmentReader(writer.path).newest()
    assert sample is not None
    assert sample.process == {}
    assert sample.devices == ({},)


def test_the_header_says_who_wrote_the_segment(written: str) -> None:
    header = SegmentReader(written).header
    assert header[:5] == tuple(segments.KNOWN)
    assert header.devices == 2


def test_a_segment_for_eight_devices_holds_ten_minutes_in_less_than_one_and_a_half_megabytes() -> (
    None
):
    header = layout.plan(segments.KNOWN, 8, 0.0, 0.0)
    assert header.slots >= 600
    assert header.size < 1_500_000


@pytest.mark.parametrize(("devices", "seconds"), [(1, 600), (256, 600), (512, 300)])
def test_a_job_of_many_devices_keeps_a_past_that_fits_into_shared_memory(
    devices: int, seconds: int
) -> None:
    header = layout.plan(segments.KNOWN, devices, 0.0, 0.0)
    assert header.slots >= seconds
    assert header.size < 14 * 1024 * 1024


def test_the_ring_keeps_the_newest_samples_in_order(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, segments.KNOWN)
    count = writer.header.slots + 17
    for i in range(count):
        writer.append(segments.slot(float(i), {}, [{}, {}]))
    past = list(SegmentReader(writer.path).past())
    assert [s.at_s for s in past] == [float(i) for i in range(17, count)]


def test_every_byte_is_reserved_when_the_segment_is_made(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, segments.KNOWN)
    found = os.stat(writer.path)
    assert found.st_size == writer.header.size
    assert found.st_blocks * 512 >= writer.header.size


def test_a_segment_appears_whole_under_its_name_and_replaces_the_one_before(tmp_path: Path) -> None:
    first = segments.segment(tmp_path, segments.KNOWN, devices=0)
    before = segments.inode(first.path)
    second = segments.segment(tmp_path, segments.KNOWN, devices=2)
    assert segments.inode(second.path) != before
    assert os.listdir(tmp_path) == [os.path.basename(second.path)]


def test_a_link_in_the_place_of_the_new_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    directory = tmp_path / "d"
    directory.mkdir()
    (directory / "4321-987654.seg.new").symlink_to(victim)
    segments.segment(directory, segments.KNOWN)
    assert victim.read_bytes() == b"precious"


def test_a_facts_blob_too_large_for_its_place_is_refused_and_the_old_one_stays(
    tmp_path: Path,
) -> None:
    writer = segments.segment(tmp_path, segments.KNOWN)
    assert not writer.facts.write(FACTS_JSON, b" " * (writer.facts.capacity + 1), 1.0)
    assert SegmentReader(writer.path).facts()[1]["platform"] == "tpu"


def test_a_blob_half_written_by_a_killed_writer_leaves_the_one_before(written: str) -> None:
    reader = SegmentReader(written)
    blob = reader.profile()
    assert blob is not None
    h = reader.header
    other_half = h.profile_offset + h.profile_half * ((blob.sequence + 1) % 2)
    patched(written, other_half, layout.BLOB_HEAD.pack(2, 1, 900, 104.0, 0) + b"half of it")
    assert reader.profile() == blob


def test_the_dump_of_a_known_segment_is_its_golden(written: str) -> None:
    expected = (SEGMENTS / "v1.4.txt").read_text()
    assert "\n".join(dump(written)) + "\n" == expected


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        pytest.param(
            gzip.compress(b"x" * 99)[:10] + b"\xff" * 40, "cannot be unpacked", id="damaged"
        ),
        pytest.param(gzip.compress(bytes(9 << 20)), "is cut short or too large", id="a bomb"),
    ],
)
def test_the_dump_of_a_profile_that_cannot_be_unpacked_says_so(
    tmp_path: Path, payload: bytes, why: str
) -> None:
    writer = segments.segment(tmp_path, segments.KNOWN)
    assert writer.profile.write(PROFILE_PPROF, payload, 1.0)
    (profile,) = (line for line in dump(writer.path) if line.startswith("profile"))
    assert f", {len(payload)} bytes: {why}" in profile


@pytest.mark.parametrize("path", sorted(SEGMENTS.glob("*.seg")), ids=lambda p: p.name)
def test_every_released_version_can_still_be_read(path: Path) -> None:
    expected = path.with_suffix(".txt").read_text()
    assert "\n".join(dump(str(path))) + "\n" == expected


def test_fields_of_a_newer_minor_version_are_skipped(tmp_path: Path) -> None:
    base = layout.plan(segments.KNOWN, 1, 0.0, 0.0)
    doubles = layout.fields_in_slot(base.process_fields + 2, base.device_fields + 1, 1)
    newer = base._replace(
        process_fields=base.process_fields + 2,
        device_fields=base.device_fields + 1,
        slot_bytes=layout.slot_size(doubles),
    )
    writer = SegmentWriter(str(tmp_path / "newer.seg"), newer)
    patched(writer.path, 10, struct.pack("<H", 1))
    body = Path(writer.path).read_bytes()[: HEADER_BYTES - 4]
    patched(writer.path, HEADER_BYTES - 4, struct.pack("<I", zlib.crc32(body)))
    process = [*[1.0] * base.process_fields, 77.0, 78.0]
    writer.append([5.0, 6.0, *process, *[2.0] * base.device_fields, 79.0])
    sample = SegmentReader(writer.path).newest()
    assert sample is not None
    assert sample.process == dict.fromkeys(PROCESS_FIELDS, 1.0)
    assert sample.devices == (dict.fromkeys(DEVICE_FIELDS, 2.0),)


def test_fields_that_an_older_minor_version_lacks_are_unknown() -> None:
    sample = SegmentReader(str(SEGMENTS / "v1.0.seg")).newest()
    assert sample is not None
    assert "duty_cycle_percent" not in sample.devices[1]
    assert "mfu_percent" not in sample.process
    assert sample.devices[1]["live_arrays"] == 2 * segments.GIB + 7


def test_a_foreign_file_is_refused_by_its_magic(written: str) -> None:
    assert refusal(patched(written, 0, b"X")) == "is not a tpusmi segment"


@pytest.mark.parametrize(
    ("major", "side"), [(2, "upgrade this tpusmi"), (0, "upgrade the tpusmi inside that job")]
)
def test_another_major_version_is_refused_with_the_side_to_upgrade(
    written: str, major: int, side: str
) -> None:
    assert side in refusal(patched(written, 8, struct.pack("<H", major)))


def test_a_damaged_header_is_refused_by_its_crc(written: str) -> None:
    assert refusal(patched(written, 20, b"\xff")) == "has a damaged header (CRC)"


def test_a_header_of_impossible_size_is_refused(written: str) -> None:
    assert refusal(patched(written, 12, struct.pack("<I", 2**31))) == (
        "has a header of impossible size"
    )


def test_a_file_cut_short_is_refused_with_its_sizes(written: str) -> None:
    os.truncate(written, 5000)
    assert refusal(written).startswith("is cut short: 5000 of")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_something_that_is_no_file_is_refused_without_waiting(tmp_path: Path, make: object) -> None:
    path = str(tmp_path / "1-1.seg")
    make(path)  # type: ignore[operator]
    assert refusal(path) == "is not a regular file"


def test_a_link_is_refused(tmp_path: Path, written: str) -> None:
    link = tmp_path / "link.seg"
    link.symlink_to(written)
    assert "cannot be opened" in refusal(str(link))


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.seg"
    path.touch()
    os.truncate(path, 1 << 40)
    assert "is larger than" in refusal(str(path))


def read_all(path: str) -> None:
    """Everything a viewer does with a segment; only SegmentError may come out."""
    try:
        reader = SegmentReader(path)
    except SegmentError:
        return
    try:
        reader.newest()
        list(reader.past())
        reader.facts()
        reader.profile()
        reader.profile_sequence()
        reader.slice_sequence()
        blob = reader.slice_blob()
        if blob is not None and (content := unpacked(blob.payload)) is not None:
            list(content[1])
        "\n".join(dump(path))
    except SegmentError:
        pass
    finally:
        reader.close()


def test_a_segment_cut_at_any_length_never_raises_anything_else(tmp_path: Path) -> None:
    whole = Path(segments.golden(tmp_path)).read_bytes()
    path = tmp_path / "cut.seg"
    path.write_bytes(whole)
    lengths = [*range(len(whole) - 1, len(whole) - 400, -7), *range(1200, 0, -1)]
    for length in lengths:
        os.truncate(path, length)
        read_all(str(path))


GOLDEN = (SEGMENTS / "v1.4.seg").read_bytes()


def resealed(data: bytearray) -> None:
    """Make the header's CRC true again, as a hostile writer would."""
    size = min(max(struct.unpack_from("<I", data, 12)[0], 20), len(data))
    data[size - 4 : size] = struct.pack("<I", zlib.crc32(bytes(data[: size - 4])))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_mutated_segment_never_raises_anything_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    mutated = bytearray(GOLDEN)
    # Half of the blows go to the header, where they hurt most; the CRC is made true again.
    for _ in range(data.draw(st.integers(1, 6))):
        end = data.draw(st.sampled_from([HEADER_BYTES, len(mutated)]))
        at = data.draw(st.integers(0, end - 1))
        piece = data.draw(st.binary(min_size=1, max_size=9))
        mutated[at : at + len(piece)] = piece
    if data.draw(st.booleans()):
        resealed(mutated)
    path = tmp_path_factory.getbasetemp() / "mutated.seg"
    path.write_bytes(mutated)
    read_all(str(path))


@given(st.lists(st.sampled_from([0, 1, 2**16, 2**32 - 1]), min_size=18, max_size=18))
@settings(max_examples=100, deadline=None)
def test_a_true_header_with_absurd_numbers_never_raises_anything_else(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int]
) -> None:
    mutated = bytearray(GOLDEN)
    widths = [4, 4, 8, 16, 8, 8, 8, 4, 4, 4, 8, 8, 8, 8, 8, 8, 4, 4]
    at = layout.PREAMBLE.size
    for width, number in zip(widths, numbers, strict=True):
        if number:
            mutated[at : at + width] = number.to_bytes(width, "little")
        at += width
    resealed(mutated)
    path = tmp_path_factory.getbasetemp() / "absurd.seg"
    path.write_bytes(mutated)
    read_all(str(path))


def test_the_lock_tells_who_may_only_read_that_the_writer_lives(tmp_path: Path) -> None:
    writer = segments.my_segment(tmp_path)
    reader = SegmentReader(writer.path)
    assert reader.header.locked
    assert reader.is_locked()
    writer.close()
    assert reader.is_locked() is False
    with open(writer.path, "rb") as pretender:
        assert not lock.hold(pretender.fileno())
        assert reader.is_locked() is False
    reader.close()


def test_a_free_lock_of_a_segment_that_never_had_one_tells_nothing() -> None:
    reader = SegmentReader(str(SEGMENTS / "v1.2.seg"))
    assert not reader.header.locked
    assert reader.is_locked() is None
    reader.close()
