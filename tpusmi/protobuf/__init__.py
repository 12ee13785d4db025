"""Messages of protobuf's third version, from a schema in words, in plain Python.

The protobuf package is not used: a job's environment may have one that is too old, too new or
broken, its C core can crash the process, and whoever pins it decides for the job. A message has
the methods of that package that are needed here, under their names there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tpusmi.protobuf.decoding import DEPTH_MOST, DecodeError, Decoder
from tpusmi.protobuf.fields import SCALARS, Field, encoded, is_zero

__all__ = ["DecodeError", "Message", "classes"]


class Message:
    """A message. Fields that are present are its attributes; the others have their default."""

    FIELDS: dict[str, Field]
    NUMBERS: dict[int, Field]

    def __init__(self, **values: Any) -> None:
        self.__dict__["_into"] = None
        for name, value in values.items():
            if self.FIELDS[name].is_repeated:
                getattr(self, name).extend(value)
            else:
                setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        field = self.FIELDS.get(name)
        if field is None:
            raise AttributeError(name)
        if field.is_repeated:
            return _Repeated(self, field)
        if field.message is None:
            return SCALARS[field.kind].default
        child = field.message()
        child.__dict__["_into"] = self, field
        return child

    def __setattr__(self, name: str, value: Any) -> None:
        field = self.FIELDS[name]
        if field.is_repeated or field.message is not None:
            raise AttributeError(f"{name} is changed in its place")
        self._put(field, SCALARS[field.kind].checked(value))
        if not field.has_presence and is_zero(value):
            del self.__dict__[name]

    def HasField(self, name: str) -> bool:  # noqa: N802
        """True when it is present."""
        return name in self.__dict__

    def WhichOneof(self, oneof: str) -> str | None:  # noqa: N802
        """The field of that oneof which is present."""
        fields = self.FIELDS
        for name in self.__dict__:
            if name != "_into" and fields[name].oneof == oneof:
                return name
        return None

    def SetInParent(self) -> None:  # noqa: N802
        """Be present in the message that it was got from."""
        into, self.__dict__["_into"] = self._into, None
        if into is not None:
            into[0]._put(into[1], self)

    def CopyFrom(self, other: Message) -> None:  # noqa: N802
        """Be as that one is."""
        raw = other.SerializeToString()
        for name in [*self.__dict__]:
            if name != "_into":
                del self.__dict__[name]
        self.MergeFromString(raw)

    def MergeFromString(self, raw: bytes) -> None:  # noqa: N802
        """Take over what the bytes tell. Raises DecodeError."""
        self.SetInParent()
        Decoder(raw).into(self, 0, len(raw), DEPTH_MOST)

    @classmethod
    def FromString(cls, raw: bytes) -> Any:  # noqa: N802
        """The message of those bytes. Raises DecodeError."""
        message = cls()
        message.MergeFromString(raw)
        return message

    def SerializeToString(self, deterministic: bool = True) -> bytes:  # noqa: N802
        """Its bytes: the fields in the order of their numbers."""
        return b"".join(self._parts())

    def _parts(self) -> Iterator[bytes]:
        for number, field in self.NUMBERS.items():
            value = self.__dict__.get(field.name)
            if value is not None and not (field.is_repeated and not value):
                yield encoded(number, field, value)

    def _put(self, field: Field, value: Any) -> None:
        """The value is present, and no other of its oneof."""
        self.SetInParent()
        if field.oneof is not None and (before := self.WhichOneof(field.oneof)):
            del self.__dict__[before]
        self.__dict__[field.name] = value


class _Repeated(list[Any]):
    """The values of a repeated field, which is in its message once there is one."""

    def __init__(self, of: Message, field: Field) -> None:
        super().__init__()
        self._of: Message | None = of
        self._field = field

    def add(self, **values: Any) -> Any:
        """A new message at the end."""
        assert self._field.message is not None
        made = self._field.message(**values)
        self._be_there()
        super().append(made)
        return made

    def append(self, value: Any) -> None:
        self.extend((value,))

    def extend(self, values: Iterable[Any]) -> None:
        checked = SCALARS[self._field.kind].checked
        super().extend([checked(value) for value in values])
        self._be_there()

    def _be_there(self) -> None:
        of, self._of = self._of, None
        if of is not None:
            of._put(self._field, self)


def classes(schema: str) -> dict[str, type[Message]]:
    """A class for each paragraph of a schema, `Name: field number type, …`: `*` before a type is
    repeated, `?` has presence, `|x` behind it is in oneof x.
    """
    paragraphs = [p.partition(": ") for p in schema.replace("\n  ", " ").strip().splitlines()]
    made: dict[str, type[Message]] = {name: type(name, (Message,), {}) for name, _, _ in paragraphs}
    for name, _, fields in paragraphs:
        found = [_field(text, made) for text in fields.split(", ")]
        made[name].FIELDS = {field.name: field for field in found}
        made[name].NUMBERS = {f.number: f for f in sorted(found, key=lambda f: f.number)}
    return made


def _field(text: str, made: dict[str, type[Message]]) -> Field:
    name, number, kind = text.split(" ")
    kind, _, oneof = kind.partition("|")
    plain = kind.lstrip("*?")
    has_presence = bool(oneof) or kind.startswith("?")
    message = made.get(plain)
    return Field(name, int(number), plain, kind[0] == "*", has_presence, oneof or None, message)
