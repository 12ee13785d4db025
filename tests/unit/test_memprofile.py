"""JAX's memory profiles, decoded: real ones, hostile ones."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.clocks import takes_at_most

from tpusmi.memprofile import (
    ALLOCATIONS_MOST,
    device_id,
    held_memory,
    packed_sites,
    totals,
    unpacked_sites,
)
from tpusmi.model import Allocation, Site
from tpusmi.pprof import ProfileError

DATA = Path(__file__).parent.parent / "data"


def sites(profile: bytes) -> tuple[Site, ...]:
    return held_memory(profile).sites


def varint(value: int) -> bytes:
    out = bytearray()
    value &= 2**64 - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def profile(samples: list[tuple[int, int, dict[str, str]]], frames: list[tuple[str, str]]) -> bytes:
    """A pprof of samples (count, bytes, labels), all with one stack of frames, innermost first."""
    strings = [""]

    def text(value: str) -> int:
        if value not in strings:
            strings.append(value)
        return strings.index(value)

    out = b""
    stack = b"".join(varint(i + 1) for i in range(len(frames)))
    for count, size, labels in samples:
        label_fields = b"".join(
            field(3, field(1, text(k)) + field(2, text(v))) for k, v in labels.items()
        )
        out += field(2, field(1, stack) + field(2, varint(count) + varint(size)) + label_fields)
    for i, (function, file) in enumerate(frames, 1):
        line = field(1, i) + field(2, 10 * i)
        out += field(4, field(1, i) + field(4, line))
        out += field(5, field(1, i) + field(2, text(function)) + field(4, text(file)))
    out += b"".join(field(6, s.encode()) for s in strings)
    return gzip.compress(out)


@pytest.mark.parametrize(
    ("name", "buffers", "size", "executables"),
    [
        ("ajax", 290, 172_002_251, 58),
        ("microjax", 4, 32_064, 99),
        ("ledgetter", 18, 17_870_202, 608),
        ("exploration", 37, 3_232_672, 51),
    ],
)
def test_the_totals_of_a_real_profile_are_those_it_was_recorded_with(
    name: str, buffers: int, size: int, executables: int
) -> None:
    found = totals((DATA / f"{name}.prof").read_bytes())
    assert found.executables == executables
    assert found.devices.keys() == {0}
    assert found.devices[0] == (size, buffers)


def test_the_largest_site_of_a_real_profile_is_the_users_own_line() -> None:
    site = sites((DATA / "ajax.prof").read_bytes())[0]
    assert (site.function, site.line, site.kind) == ("set_key_and_train", 122, "buffer")
    assert site.file.endswith("ajax/agents/sac/sac.py")
    assert (site.bytes, site.count) == (167_492_928, 114)


def test_a_tracked_function_keeps_its_callers_line() -> None:
    frames = [
        ("call", "/venv/lib/python3.12/site-packages/tpusmi/agent/tracked.py"),
        ("train_step", "/home/me/train.py"),
    ]
    (site,) = sites(profile([(1, 64, {"kind": "buffer", "device": "TPU_0"})], frames))
    assert (site.function, site.file) == ("train_step", "/home/me/train.py")


def test_the_sites_of_a_profile_add_up_to_its_totals() -> None:
    data = (DATA / "ledgetter.prof").read_bytes()
    buffers = [s for s in sites(data) if s.kind == "buffer"]
    assert sum(s.bytes or 0 for s in buffers) == 17_870_202
    assert sum(s.count for s in buffers) == 18


def test_frames_of_jax_are_passed_over_for_the_line_that_called_it() -> None:
    frames = [
        ("_device_put", "/venv/lib/python3.12/site-packages/jax/_src/api.py"),
        ("update", "/venv/lib/python3.12/site-packages/optax/_src/transform.py"),
        ("train_step", "/home/me/train.py"),
        ("main", "/home/me/train.py"),
    ]
    (site,) = sites(profile([(1, 64, {"kind": "buffer", "device": "TPU_0"})], frames))
    assert (site.function, site.file, site.line) == ("train_step", "/home/me/train.py", 30)


def test_a_stack_with_nothing_but_jax_is_charged_to_its_innermost_frame() -> None:
    (site,) = sites(profile([(1, 64, {"kind": "buffer"})], [("jit", "/x/jax/_src/api.py")]))
    assert site.function == "jit"


def test_a_comprehension_is_called_by_the_function_around_it() -> None:
    frames = [("<listcomp>", "/me.py"), ("init_params", "/me.py"), ("main", "/me.py")]
    (site,) = sites(profile([(1, 64, {"kind": "buffer"})], frames))
    assert (site.function, site.file, site.line) == ("init_params", "/me.py", 10)


@pytest.mark.parametrize("file", ["<ipython-input-3-f00>", "<string>", "/tmp/ipykernel_7/12.py"])
def test_a_notebook_cell_is_the_users_own_line(file: str) -> None:
    frames = [("_device_put", "/x/jax/_src/api.py"), ("<module>", file)]
    assert sites(profile([(1, 64, {"kind": "buffer"})], frames))[0].file == file


def test_an_executable_whose_size_is_minus_one_has_no_known_size() -> None:
    data = profile([(3, -1, {"kind": "executable"})] * 2, [("f", "/me.py")])
    (site,) = sites(data)
    assert (site.bytes, site.count) == (None, 6)
    assert totals(data).executables == 6


def test_buffers_are_summed_per_device_and_one_without_a_device_is_kept_apart() -> None:
    data = profile(
        [
            (1, 10, {"kind": "buffer", "device": "TPU_4(process=1,(2,0,0,0))"}),
            (2, 30, {"kind": "buffer", "device": "TPU_4(process=1,(2,0,0,0))"}),
            (1, 5, {"kind": "buffer", "device": "TPU_12(process=1,(2,1,0,0))"}),
            (1, 7, {}),
        ],
        [("f", "/me.py")],
    )
    assert totals(data).devices == {4: (40, 3), 12: (5, 1), None: (7, 1)}


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("TPU_4(process=1,(2,0,0,0))", 4),
        ("cuda:0", 0),
        ("gpu:7", 7),
        ("cpu:3", 3),
        ("TFRT_CPU_12", 12),
        ("0", 0),
        ("TPU v5", 5),
        ("none", None),
        ("", None),
        ("(9)", None),
    ],
)
def test_a_device_label_gives_its_global_id_in_every_spelling(
    label: str, expected: int | None
) -> None:
    assert device_id(label) == expected


SPREAD = profile(
    [
        (2, 100, {"kind": "buffer", "device": "TPU_4(process=1,(2,0,0,0))"}),
        (1, 300, {"kind": "buffer", "device": "TPU_12(process=1,(2,1,0,0))"}),
        (1, 50, {"kind": "buffer", "device": "TPU_4(process=1,(2,0,0,0))"}),
        (3, -3, {"kind": "executable"}),
    ],
    [("f", "/me.py")],
)


def test_a_line_is_told_apart_by_device_with_the_largest_first() -> None:
    assert held_memory(SPREAD, by_device=True).allocations == (
        Allocation("f", "/me.py", 10, "buffer", 12, 300, 1),
        Allocation("f", "/me.py", 10, "buffer", 4, 150, 3),
        Allocation("f", "/me.py", 10, "executable", None, None, 3),
    )
    assert held_memory(SPREAD).allocations == ()
    assert held_memory(SPREAD).sites == held_memory(SPREAD, by_device=True).sites


@pytest.mark.parametrize("name", ["ajax", "microjax", "ledgetter", "exploration"])
def test_the_allocations_of_a_real_profile_add_up_to_its_totals_and_to_its_sites(name: str) -> None:
    data = (DATA / f"{name}.prof").read_bytes()
    found = held_memory(data, by_device=True)
    assert sum(a.count for a in found.allocations) == sum(s.count for s in found.sites)
    buffers = [a for a in found.allocations if a.kind == "buffer"]
    assert {a.device for a in buffers} == {0}
    assert sum(a.bytes or 0 for a in buffers) == totals(data).devices[0].bytes


def test_what_the_list_of_allocations_has_no_room_for_is_summed_up() -> None:
    many = ALLOCATIONS_MOST + 500
    samples = [(2, 10 + i, {"kind": "buffer", "device": f"cpu:{i}"}) for i in range(many)]
    found = held_memory(profile(samples, [("f", "/me.py")]), by_device=True)
    assert [a.bytes for a in found.allocations] == [*range(many + 9, many + 9 - 2000, -1)]
    assert (found.left_out_bytes, found.left_out_count) == (sum(range(10, 510)), 1000)


def test_a_profile_too_large_for_its_place_tells_its_devices_too() -> None:
    assert unpacked_sites(packed_sites(SPREAD), by_device=True) == held_memory(
        SPREAD, by_device=True
    )
    data = (DATA / "ledgetter.prof").read_bytes()
    some, every = unpacked_sites(packed_sites(data, 5), True), held_memory(data, by_device=True)
    assert len(some.allocations) == 5
    assert some.left_out_count == sum(a.count for a in every.allocations[5:])
    assert (some.left_out_bytes or 0) + sum(a.bytes or 0 for a in some.allocations) == sum(
        a.bytes or 0 for a in every.allocations
    )


def test_readers_of_format_1_1_find_the_sites_alone_in_the_first_member() -> None:
    unpacker = zlib.decompressobj(wbits=31)
    rows = json.loads(unpacker.decompress(packed_sites(SPREAD)))
    assert unpacker.eof
    assert [tuple(row) for row in rows] == [tuple(s)[:6] for s in sites(SPREAD)]


def test_sites_of_format_1_1_have_no_device_and_may_have_left_something_out() -> None:
    (site,) = sites(profile([(1, 64, {"kind": "buffer", "device": "TPU_3"})], [("f", "/me.py")]))
    found = unpacked_sites(gzip.compress(json.dumps([site[:6]]).encode()), by_device=True)
    assert found.allocations == (Allocation("f", "/me.py", 10, "buffer", None, 64, 1),)
    assert (found.left_out_bytes, found.left_out_count) == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "7",
            "{}",
            "[[0, 0]]",
            "[[0], []]",
            "[[0, 0], 7]",
            '[[0, 0], {"a": 1}]',
            '[[0, 0], "ab"]',
        ),
        *("[[0, 0], [[1, 0, 5, 1]]]", "[[0, 0], [[-1, 0, 5, 1]]]", "[[0, 0], [[0, -1, 5, 1]]]"),
        *("[[0, 0], [[0, 0, 1e30, 1]]]", "[[0, 0], [[0, 0, 5]]]", "[[0, 1e400], []]"),
        *("[[NaN, 0], []]", '[["many", 0], []]', "["),
    ],
)
def test_devices_of_sites_that_make_no_sense_give_a_reason(text: str) -> None:
    first = gzip.compress(b'[["f","/me.py",1,"buffer",5,1]]')
    packed = first + gzip.compress(text.encode())
    with pytest.raises(ProfileError):
        unpacked_sites(packed, by_device=True)
    assert len(unpacked_sites(packed).sites) == 1


def test_a_profile_too_large_for_its_place_travels_as_its_sites() -> None:
    data = (DATA / "ledgetter.prof").read_bytes()
    packed = packed_sites(data, most=20)
    assert unpacked_sites(packed).sites == sites(data)[:20]
    assert len(packed) < len(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a gzip'ed"),
        (b"\x1f\x8b\x08\x00junkjunkjunk", "cannot be unpacked"),
        (gzip.compress(b"\x12\xff\xff\x01"), "longer than its message"),
        (gzip.compress(b"\x12"), "ends inside a number"),
        (gzip.compress(b"\x17\x00"), "unknown wire type"),
        (gzip.compress(b"\0" * 80_000_000, 1), "cut short or too large"),
    ],
    ids=["empty", "not deflate", "long field", "cut tag", "wire type", "bomb"],
)
def test_bytes_that_are_no_profile_give_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ProfileError, match=reason):
        totals(data)


def test_sites_that_are_no_sites_give_a_reason() -> None:
    for text in (b"{", b"[[1]]", b"7", b'[["f","x",1,"buffer",null,"many"]]', b"[" * 100_000):
        with pytest.raises(ProfileError):
            unpacked_sites(gzip.compress(text))


LIBRARY = b"/jax/" + b"x" * 5_000_000 + b"/functools.py"


def built(samples: bytes, lines: int, file: bytes = LIBRARY, function: bytes = b"") -> bytes:
    """A profile with one location of so many lines, one function, one string."""
    location = field(1, 1) + field(4, field(1, 1) + field(2, 1)) * lines
    whole = field(1, 1) + field(4, 1) + function
    strings = b"".join(field(6, s) for s in (b"", file, b"device"))
    return gzip.compress(samples + field(4, location) + field(5, whole) + strings, 9)


def stack(*locations: int, labels: bytes = b"") -> bytes:
    packed = b"".join(map(varint, locations))
    return field(2, field(1, packed) + field(2, varint(1) * 2) + labels)


HOSTILE = {
    "a long name in many lines": lambda: built(stack(1), 20_000),
    "a long name in some lines": lambda: built(stack(1), 60),
    "many stacks of long locations": lambda: built(
        b"".join(stack(*[1] * 20, 9 + i) for i in range(3000)), 60
    ),
    "a long label in many samples": lambda: built(
        b"".join(
            stack(1, labels=field(3, field(1, 2) + field(2, 1) + field(9, i))) for i in range(3000)
        ),
        1,
    ),
    "a long function in many lines": lambda: built(stack(1), 60, function=field(7, 1) * 40_000),
    "fields of no use": lambda: gzip.compress(field(15, 0) * 4_000_000),
    "rows of nothing": lambda: gzip.compress(
        field(2, b"") * 49_000 + field(4, b"") * 20_000 + field(6, b"") * 20_000
    ),
    "values without end": lambda: gzip.compress(field(2, field(2, varint(1) * 4_000_000))),
    "a stack without end": lambda: gzip.compress(stack(*[1] * 4_000_000)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_few_kilobytes_take_neither_long_nor_much_memory(name: str) -> None:
    data = HOSTILE[name]()
    assert len(data) < 20_000
    with takes_at_most(1.0):  # 0.1 s on a machine that has time
        for decode in (totals, lambda d: held_memory(d, by_device=True)):
            try:
                decode(data)
            except ProfileError:
                pass
    tracemalloc.start()
    try:
        held_memory(data, by_device=True)
    except ProfileError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 40_000_000


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (built(stack(1), 65), "more than 64 lines"),
        (built(stack(*[1] * 400, 2) + stack(*[1] * 400, 3) * 9, 60), None),
        (gzip.compress(field(15, 0) * 200_000), "more in it than its size allows"),
        (gzip.compress(field(2, field(2, varint(-1) + varint(1)))), "impossible size"),
        (gzip.compress(field(2, field(2, varint(1) + varint(2**45)))), "impossible size"),
    ],
)
def test_what_is_over_a_bound_is_refused_and_never_a_wrong_number(
    data: bytes, reason: str | None
) -> None:
    if reason is None:
        assert sum(site.count for site in sites(data)) == 10
    else:
        with pytest.raises(ProfileError, match=reason):
            held_memory(data)


def test_a_name_is_cut_and_its_bytes_still_count() -> None:
    (site,) = sites(built(stack(1) * 3, 1))
    assert (len(site.file), site.count, site.bytes) == (4096, 3, 3)


@pytest.mark.parametrize(
    "text",
    [
        "[" + "[]," * 300_000 + "[]]",
        json.dumps([["f", "f.py", 1, "buffer", 5, 1]] * 1001),
        json.dumps([["f", "f.py", 1, "buffer", -5, 1]]),
        json.dumps([["f", "f.py", 1, "buffer", 5, -1]]),
        json.dumps([["f", ["f"] * 100_000, 1, "buffer", 5, 1]]),
        json.dumps([["f", "f.py", "9" * 100_000, "buffer", 5, 1]]),
        json.dumps([["x" * 2_000_000, "f.py", 1, "buffer", 5, 1]]),
    ],
    ids=["many", "too many", "negative bytes", "negative count", "no text", "digits", "large"],
)
def test_sites_that_are_over_a_bound_are_refused(text: str) -> None:
    packed = gzip.compress(text.encode())
    with takes_at_most(1.0), pytest.raises(ProfileError):
        unpacked_sites(packed, by_device=True)


def test_allocations_that_are_too_many_are_refused_and_not_left_out_in_silence() -> None:
    first = gzip.compress(b'[["f","/me.py",1,"buffer",5,1]]')
    apart = [[0, i, 5, 1] for i in range(ALLOCATIONS_MOST + 1)]
    with pytest.raises(ProfileError):
        unpacked_sites(first + gzip.compress(json.dumps([[0, 0], apart]).encode()), by_device=True)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_mutated_profile_never_raises_anything_else(data: st.DataObject) -> None:
    plain = bytearray(gzip.decompress((DATA / "microjax.prof").read_bytes()))
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(plain) - 1))
        plain[at : at + 1] = data.draw(st.binary(max_size=4))
    mutated = gzip.compress(bytes(plain), 1)
    try:
        totals(mutated)
        held_memory(mutated, by_device=True)
    except ProfileError:
        pass
