"""Files that are not traces, broken traces and huge ones: a sentence, in bounded time."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.clocks import takes_at_most
from support.step_traces import step_trace

from tpusmi.simulate.trace_bytes import TraceWriter, field
from tpusmi.trace.direct import read_trace
from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.limits import MIB, TraceLimits, size_words
from tpusmi.trace.plain_objects import from_object, to_object
from tpusmi.trace.troubles import CaptureError, Trouble

DATA = Path(__file__).parents[1] / "data"
GPU = DATA / "xplane" / "gpu_mi300x" / "gemm.xplane.pb"
V6E = DATA / "xplane" / "v6e-4_inference" / "tpu_inference.xplane.pb"
CPU = DATA / "xplane" / "cpu_2_devices" / "cpu.xplane.pb"
EVENTS = 150_000
LONG_S = 30.0


def read(path: Path, limit_s: float = LONG_S, **limits: int) -> TraceProfile:
    """The profile of a file."""
    return read_trace(str(path), TraceLimits(until_s=time.monotonic() + limit_s, **limits))


def refusal(path: Path, limit_s: float = LONG_S, **limits: int) -> CaptureError:
    """Why there is no profile of it."""
    with pytest.raises(CaptureError) as error:
        read(path, limit_s, **limits)
    return error.value


def written(directory: Path, data: bytes) -> Path:
    """A file of these bytes."""
    path = directory / "some.xplane.pb"
    path.write_bytes(data)
    return path


FOREIGN = {
    "empty": (b"", "it is empty"),
    "json": (b'{"traceEvents": []}', "it is JSON; tpusmi reads the file that ends in .xplane.pb"),
    "trace viewer": (gzip.compress(b'{"displayTimeUnit":"ns"}'), "it is gzip'ed JSON for the"),
    "gzip'ed trace": (gzip.compress(step_trace()), "it is gzip'ed; unpack it first"),
    "damaged gzip": (b"\x1f\x8b\x08\x00 and more", "it is gzip'ed, and damaged"),
    "memory profile": ((DATA / "ajax.prof").read_bytes(), "it is a memory profile (pprof)"),
    "bare pprof": (
        gzip.decompress((DATA / "ajax.prof").read_bytes()), "it is a memory profile (pprof)",
    ),
    "text": (b"step time: 12.3 ms, and a few more words of a log", "it is text"),
    "random": (random.Random(1).randbytes(5000), "is not a profiler trace"),
    "zeros": (bytes(5000), "is not a profiler trace"),
    "cut off": (GPU.read_bytes()[:-1000], "it is cut off at the end"),
    "cut off at the start": (step_trace()[:40], "it is cut off at the end"),
    "without its start": (GPU.read_bytes()[77:], "is not a profiler trace"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_is_not_a_trace_is_named(kind: str, tmp_path: Path) -> None:
    data, sentence = FOREIGN[kind]
    error = refusal(written(tmp_path, data))
    assert error.trouble is Trouble.UNREADABLE
    assert f"{tmp_path}/some.xplane.pb is not a profiler trace: " in str(error)
    assert sentence in str(error)
    assert str(error).endswith(".")
    assert len(str(error)) < 300


def test_a_trace_that_was_saved_as_text_is_named() -> None:
    path = DATA / "xplane" / "corrupt_utf8_mangled" / "tpu_inference.xplane.pb"
    error = refusal(path)
    assert (error.trouble, "UTF-8 mangled" in str(error)) == (Trouble.UNREADABLE, True)


def test_a_folder_a_pipe_and_a_missing_file(tmp_path: Path) -> None:
    assert "it is a folder" in str(refusal(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert "it is not a regular file" in str(refusal(tmp_path / "pipe"))
    assert refusal(tmp_path / "missing").trouble is Trouble.ABSENT
    assert refusal(Path("/proc/self/mem\0")).trouble is Trouble.UNREADABLE


def test_a_name_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2Jb"
    path.write_bytes(b"")
    assert "\x1b" not in str(refusal(path))


def test_limits_of_size_time_and_operations(tmp_path: Path) -> None:
    path = written(tmp_path, step_trace())
    assert "is too large" in str(refusal(path, bytes_most=1000))
    late = refusal(path, limit_s=0.0)
    assert (late.trouble, "takes longer to read" in str(late)) == (Trouble.FAILED, True)
    many = refusal(path, operations_most=3)
    assert (many.trouble, "more different operations" in str(many)) == (Trouble.FAILED, True)
    assert "more different operations" in str(refusal(GPU, operations_most=3))
    assert "more different operations" in str(refusal(CPU, operations_most=3))


def test_the_rows_of_all_devices_together_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, several = (step_trace(cores=cores) for cores in (1, 9))
    monkeypatch.setattr("tpusmi.trace.direct.ROWS_MOST", 60)
    assert len(read(written(tmp_path, one)).cores) == 1
    assert "more different operations" in str(refusal(written(tmp_path, several)))


def test_a_part_of_the_events_of_a_cpu_is_not_taken_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread that is not read would make its device idle."""
    monkeypatch.setattr("tpusmi.trace.host_plane.EVENTS_MOST", 20)
    error = refusal(CPU)
    assert (error.trouble, "capture less time" in str(error)) == (Trouble.FAILED, True)


def test_a_file_that_shrinks_meanwhile_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, V6E.read_bytes())
    whole = os.fstat
    monkeypatch.setattr(os, "fstat", lambda handle: (whole(handle), os.truncate(path, 99_000))[0])
    assert refusal(path).trouble is Trouble.UNREADABLE


def test_lines_of_no_use_are_skipped_whatever_their_size(tmp_path: Path) -> None:
    """A hole of a gigabyte in a line that is not read: nothing of it is."""
    size = 1 << 30
    line = field(1, 9) + field(2, b"XLA TraceMe") + b"\x22" + _varint(size)
    plane = field(2, b"/device:TPU:0") + b"\x1a" + _varint(len(line) + size) + line
    path = tmp_path / "large.xplane.pb"
    path.write_bytes(step_trace(cores=1) + b"\x0a" + _varint(len(plane) + size) + plane)
    os.truncate(path, path.stat().st_size + size)
    with takes_at_most(1.0):
        profile = read(path)
    assert profile.capture.trace_bytes == path.stat().st_size
    assert profile.steps is not None


def _varint(value: int) -> bytes:
    return field(0, value)[1:]


def many_events(events: int) -> bytes:
    """A device with so many operations."""
    writer = TraceWriter()
    plane = writer.plane("/device:TPU:0")
    line = plane.line("XLA Ops")
    kinds = [plane.new_kind(f"%fusion.{i} = f32[8] fusion()", {"flops": 5}) for i in range(100)]
    for i in range(events):
        line.event(kinds[i % 100], 1_000_000_000 + 1000 * i, 900 + i % 50)
    return writer.message


def test_memory_does_not_grow_with_the_number_of_events(tmp_path: Path) -> None:
    """A list of the starts and lengths alone would take 10 MB here."""
    small, large = tmp_path / "small.pb", tmp_path / "large.pb"
    small.write_bytes(many_events(10_000))
    large.write_bytes(many_events(EVENTS))
    code = (
        "import resource, sys, time\n"
        "from tpusmi.trace.direct import read_trace\n"
        "from tpusmi.trace.limits import TraceLimits\n"
        "most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "kb = []\n"
        "for path in sys.argv[1:]:\n"
        "    profile = read_trace(path, TraceLimits(until_s=time.monotonic() + 30))\n"
        "    kb.append(most())\n"
        "print(kb[1] - kb[0], sum(o.runs for o in profile.operations))\n"
    )
    command = [sys.executable, "-c", code, str(small), str(large)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True, text=True)
    grown_kb, runs = map(int, done.stdout.split())
    assert runs == EVENTS
    assert grown_kb < 8 * 1024


def test_more_parts_than_any_trace_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpusmi.trace.open_trace.PARTS_MOST", 20)
    assert "more parts than any real trace" in str(refusal(written(tmp_path, step_trace())))
    monkeypatch.undo()
    planes = field(1, field(2, b"/host:x")) * 10_001
    assert "more planes than any real trace" in str(refusal(written(tmp_path, planes)))


def test_a_message_of_impossible_size_is_not_loaded(tmp_path: Path) -> None:
    stat = b"\x32" + _varint(100 * MIB)
    plane = field(2, b"/device:TPU:0") + stat
    path = tmp_path / "some.xplane.pb"
    path.write_bytes(b"\x0a" + _varint(len(plane) + 100 * MIB) + plane)
    os.truncate(path, path.stat().st_size + 100 * MIB)
    assert "a message of an impossible size" in str(refusal(path))


def test_events_out_of_order_are_sorted(tmp_path: Path) -> None:
    writer = TraceWriter()
    plane = writer.plane("/device:TPU:0")
    line = plane.line("XLA Ops")
    for name, start, length in (("b", 500, 100), ("a", 100, 50), ("c", 100, 200), ("d", 550, 100)):
        line.event(plane.kind(name), start, length)
    profile = read(written(tmp_path, writer.message))
    assert {o.name: round(o.self_s * 1e12) for o in profile.operations} == {
        "a": 50, "b": 100, "c": 150, "d": 100,
    }  # fmt: skip
    assert profile.cores[0].busy_s == pytest.approx(350e-12)
    assert profile.cores[0].captured_s == pytest.approx(550e-12)


def test_an_event_in_an_unusual_form_is_read(tmp_path: Path) -> None:
    """Fields in another order, unknown ones among them, and numbers longer than needed."""
    body = field(3, 70) + field(9, b"later") + field(2, 40) + b"\x08\x81\x80\x00"
    line = field(4, body) + field(4, field(1, 1)) + field(2, b"XLA Ops") + field(4, field(5, 3))
    kind = field(1, 1) + field(2, field(1, 1) + field(2, b"%copy.1 = f32[] copy()"))
    plane = field(4, kind) + field(3, line) + field(2, b"/device:TPU:3")
    profile = read(written(tmp_path, field(1, plane)))
    assert [(o.name, o.runs, round(o.self_s * 1e12)) for o in profile.operations] == [
        ("copy.1", 2, 70),
        ("(unnamed)", 1, 0),
    ]
    assert profile.cores[0].local_index == 3


def test_the_start_of_an_event_may_come_after_its_duration(tmp_path: Path) -> None:
    events = (field(1, 1) + field(3, 70) + field(2, start) for start in (40, 140))
    line = b"".join(field(4, body) for body in events) + field(2, b"XLA Ops")
    profile = read(written(tmp_path, field(1, field(3, line) + field(2, b"/device:TPU:0"))))
    assert profile.cores[0].captured_s == pytest.approx(170e-12)
    assert profile.cores[0].busy_s == pytest.approx(140e-12)


def test_a_small_size_is_not_zero() -> None:
    assert size_words(8_700) == "less than 0.1 MiB"
    assert size_words(1_300 * MIB) == "1,300.0 MiB"


def test_a_time_of_no_clock_is_refused(tmp_path: Path) -> None:
    line = field(2, b"XLA Ops") + field(4, field(1, 1) + field(2, 1 << 62) + field(3, 5))
    plane = field(2, b"/device:TPU:0") + field(3, line)
    assert "an impossible time" in str(refusal(written(tmp_path, field(1, plane))))


def test_a_mutated_trace_gives_a_profile_or_a_sentence(tmp_path: Path) -> None:
    """Ten times a second in all: `tests/fuzz` goes on for longer."""
    random_ = random.Random(14)
    seeds = [GPU.read_bytes(), CPU.read_bytes(), step_trace(), step_trace(cores=1, steps=2)]
    for _ in range(150):
        data = bytearray(random_.choice(seeds))
        for _ in range(random_.choice((1, 2, 8))):
            at = random_.randrange(random_.choice((len(data), min(len(data), 2000))))
            if random_.random() < 0.6:
                data[at] = random_.randrange(256)
            else:
                data[at : at + random_.randrange(8)] = random_.randbytes(random_.randrange(8))
        profile = read_or_refused(written(tmp_path, bytes(data)))
        if profile is not None:
            text = json.dumps(to_object(profile), allow_nan=False)
            assert from_object(json.loads(text)) == profile
            for core in profile.cores:
                assert 0 <= core.busy_s <= core.captured_s
                assert 0 <= (core.duty_cycle_percent or 0) <= 100.001


def read_or_refused(path: Path) -> TraceProfile | None:
    """The profile, or None after a sentence: any other exception fails the test."""
    try:
        return read(path, limit_s=5)
    except CaptureError:
        return None
