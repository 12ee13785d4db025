"""Our reading and writing of messages is that of the protobuf package, and bounded."""

from __future__ import annotations

import time
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError as TheirError
from hypothesis import given, settings
from hypothesis import strategies as st

from tpusmi import metricproto
from tpusmi.protobuf import DecodeError
from tpusmi.protobuf.decoding import VALUES_MOST
from tpusmi.protobuf.fields import Field

_TYPES = {
    **{"double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5},
    **{"bool": 8, "string": 9, "bytes": 12},
}
OURS = metricproto.messages()


def _described(name: str) -> Any:
    """That message for the protobuf package."""
    found = descriptor_pb2.DescriptorProto(name=name)
    for field in OURS[name].FIELDS.values():
        _add(found, field)
    return found


def _add(found: Any, field: Field) -> None:
    made = found.field.add(
        name=field.name, number=field.number, label=3 if field.is_repeated else 1
    )
    if field.message is not None:
        made.type, made.type_name = 11, f".{metricproto.PACKAGE}.{field.kind}"
    else:
        made.type = _TYPES[field.kind]
    optional = field.has_presence and field.oneof is None
    oneof = f"_{field.name}" if optional else field.oneof
    made.proto3_optional = optional
    if oneof:
        known = [o.name for o in found.oneof_decl]
        if oneof not in known:
            found.oneof_decl.add(name=oneof)
            known.append(oneof)
        made.oneof_index = known.index(oneof)


def _theirs() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="test/tpu.proto", package=metricproto.PACKAGE, syntax="proto3"
    )
    file.message_type.extend(_described(name) for name in OURS)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    path = metricproto.PACKAGE
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{path}.{name}"))
        for name in OURS
    }


THEIRS = _theirs()


def assert_read_alike(name: str, raw: bytes) -> None:
    """Both refuse the bytes, or both write what they have read in the same way."""
    try:
        theirs = THEIRS[name].FromString(raw)
    except TheirError:
        with pytest.raises(DecodeError):
            OURS[name].FromString(raw)
        return
    theirs.DiscardUnknownFields()
    ours = OURS[name].FromString(raw)
    assert ours.SerializeToString() == theirs.SerializeToString(deterministic=True)


NUMBERS = st.one_of(
    st.sampled_from([0, 1, -1, 127, 128, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]),
    st.integers(-(2**63), 2**63 - 1),
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "double": st.floats(),
    "float": st.floats(width=32),
    "int64": NUMBERS,
    "uint64": st.integers(0, 2**64 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "bool": st.booleans(),
    "string": st.text(max_size=8),
    "bytes": st.binary(max_size=8),
}


def fill(data: st.DataObject, ours: Any, theirs: Any, depth: int) -> None:
    """Put the same into both."""
    for field in data.draw(st.lists(st.sampled_from([*ours.FIELDS.values()]), max_size=4)):
        of_ours, of_theirs = getattr(ours, field.name), getattr(theirs, field.name)
        if field.message is not None and not depth:
            continue
        if field.message is not None and field.is_repeated:
            fill(data, of_ours.add(), of_theirs.add(), depth - 1)
        elif field.message is not None:
            of_ours.SetInParent()
            of_theirs.SetInParent()
            fill(data, of_ours, of_theirs, depth - 1)
        elif field.is_repeated:
            values = data.draw(st.lists(VALUES[field.kind], max_size=4))
            of_ours.extend(values)
            of_theirs.extend(values)
        else:
            value = data.draw(VALUES[field.kind])
            setattr(ours, field.name, value)
            setattr(theirs, field.name, value)


@given(st.sampled_from(sorted(OURS)), st.data())
@settings(max_examples=400, deadline=None)
def test_what_is_put_into_a_message_is_written_as_the_package_writes_it(
    name: str, data: st.DataObject
) -> None:
    ours, theirs = OURS[name](), THEIRS[name]()
    fill(data, ours, theirs, 4)
    raw = theirs.SerializeToString(deterministic=True)
    assert ours.SerializeToString() == raw
    assert_read_alike(name, raw)
    for field in ours.FIELDS.values():
        if field.has_presence or (field.message is not None and not field.is_repeated):
            assert ours.HasField(field.name) == theirs.HasField(field.name)
        if field.oneof:
            assert ours.WhichOneof(field.oneof) == theirs.WhichOneof(field.oneof)


@given(st.sampled_from(sorted(OURS)), st.data())
@settings(max_examples=800, deadline=None)
def test_bytes_that_were_tampered_with_are_read_or_refused_as_the_package_does(
    name: str, data: st.DataObject
) -> None:
    ours, theirs = OURS[name](), THEIRS[name]()
    fill(data, ours, theirs, 4)
    raw = bytearray(theirs.SerializeToString())
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    assert_read_alike(name, bytes(raw))


@given(st.sampled_from(sorted(OURS)), st.binary(max_size=40))
@settings(max_examples=800, deadline=None)
def test_any_bytes_are_read_or_refused_as_the_package_does(name: str, raw: bytes) -> None:
    assert_read_alike(name, raw)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [("count", 2**63, ValueError), ("count", 1.5, TypeError), ("mean", "x", Exception)],
)
def test_a_value_that_does_not_fit_is_refused(
    field: str, value: object, error: type[Exception]
) -> None:
    made = OURS["Distribution"]()
    with pytest.raises(error):
        setattr(made, field, value)
    assert made.SerializeToString() == b""


@pytest.mark.parametrize(
    "raw",
    [
        b"\x1a\x00" * VALUES_MOST + b"\x1a\x00",
        b"\x0b" * 5000,
        b"\x80" * 500_000,
        b"\x1a" + b"\xff" * 9 + b"\x01",
    ],
    ids=["too many", "groups without end", "a number without end", "a length beyond all"],
)
def test_hostile_bytes_are_refused_in_a_moment(raw: bytes) -> None:
    began_s = time.monotonic()
    with pytest.raises(DecodeError):
        OURS["TPUMetric"].FromString(raw)
    assert time.monotonic() - began_s < 10


def test_messages_within_messages_without_end_are_refused() -> None:
    with pytest.raises(DecodeError):
        OURS["KeyValueList"].FromString(_in_lists(200))
    assert OURS["KeyValueList"].FromString(_in_lists(20)).attributes


def _in_lists(levels: int) -> bytes:
    """A list with a list as its value, and so on."""
    raw = b""
    for _ in range(levels):
        raw = _sized(1, _sized(2, _sized(6, raw)))
    return raw


def _sized(number: int, raw: bytes) -> bytes:
    size, length = bytearray(), len(raw)
    while length > 0x7F:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes((number << 3 | 2, *size, length)) + raw
