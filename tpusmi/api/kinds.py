"""The classes of the Python API: their names, and their attributes from the table of JSON keys."""

from __future__ import annotations

from typing import Any, NamedTuple

from tpusmi.api.attribute_docs import ATTRIBUTE_DOCS
from tpusmi.api.class_docs import CLASS_DOCS, HELD_AS, RELATIONS
from tpusmi.model.jsonkeys import SNAPSHOT
from tpusmi.model.jsonobject import (
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    TRUTH,
    WHOLE_OR_NULL,
    JsonKey,
    JsonObject,
    Schema,
    key,
)

PLAIN = {"string": "str", "boolean": "bool", "integer": "int", "number": "float", "null": "None"}
"""The types of Python by those of the JSON."""
_WITNESS = JsonObject(
    key("source", TEXT, "The source that measured it: `agent`, `libtpu`, …"),
    key("age_s", NUMBER, "How long ago it was measured."),
    key("stale", TRUTH, "True when it is too old to be believed as current."),
)


class Attribute(NamedTuple):
    """An attribute of a class, as the table has it."""

    annotation: str
    help: str
    of: str = ""
    """The class of the object, or of the objects, that it holds; empty for plain values."""
    levels: int = 0
    """How many dictionaries are around each of these objects."""


class ObjectKind(NamedTuple):
    """A class of the API."""

    doc: str
    keys: JsonObject
    """Its keys in JSON."""
    attributes: dict[str, Attribute]


def object_kinds() -> dict[str, ObjectKind]:
    """Every class by its name, the snapshot first."""
    made: dict[str, ObjectKind] = {}
    _add(made, "Snapshot", SNAPSHOT)
    return made


def _add(made: dict[str, ObjectKind], name: str, of: JsonObject) -> str:
    """Add a class, and those of the objects that it holds. Returns its name."""
    if name not in made:
        attributes: dict[str, Attribute] = {}
        made[name] = ObjectKind(CLASS_DOCS[name], of, attributes)
        attributes.update((k.name, _attribute(made, name, k)) for k in of.keys)
        for attribute, help in ATTRIBUTE_DOCS.get(name, {}).items():
            attributes[attribute] = attributes[attribute]._replace(help=help)
        attributes.update(_measured(made, of))
        for relation, (annotation, help) in RELATIONS.get(name, {}).items():
            attributes[relation] = Attribute(annotation, help)
    return name


def _attribute(made: dict[str, ObjectKind], name: str, k: JsonKey) -> Attribute:
    held = HELD_AS.get(f"{name}.{k.name}") or HELD_AS.get(k.name, "")
    if not isinstance(k.kind, JsonObject):
        levels, inner = _inner(k.kind)
        if isinstance(inner, JsonObject):
            of = _add(made, held, inner)
            annotation = "dict[str, " * levels + of + "]" * levels
            return Attribute(annotation, _help(k), of, levels)
        plain = annotated(k.kind)
        return Attribute(f"tuple[{plain}, ...]" if k.is_list else plain, _help(k))
    of = _add(made, held, k.kind)
    annotation = f"tuple[{of}, ...]" if k.is_list else of
    return Attribute(f"{annotation} | None" if k.is_nullable else annotation, _help(k), of)


def _help(k: JsonKey) -> str:
    described = "" if isinstance(k.kind, JsonObject) else k.kind.get("description", "")
    return k.help or described


def _inner(kind: Any) -> tuple[int, Any]:
    """How many dictionaries a value is, one in the other, and the type of the innermost values."""
    levels = 0
    while isinstance(kind, dict) and isinstance(
        kind.get("additionalProperties"), dict | JsonObject
    ):
        levels, kind = levels + 1, kind["additionalProperties"]
    return levels, kind


def _measured(made: dict[str, ObjectKind], of: JsonObject) -> dict[str, Attribute]:
    """The metrics of a class, those with parts as one object, and where the values come from."""
    attributes: dict[str, Attribute] = {}
    parts: dict[str, list[JsonKey]] = {}
    for m in of.metrics:
        name, _, part = m.name.partition(".")
        help = f"{m.help} Unit: {m.unit}."
        if part:
            parts.setdefault(name, []).append(
                key(part, WHOLE_OR_NULL if m.is_integer else NUMBER_OR_NULL, help)
            )
            attributes[name] = Attribute(
                HELD_AS[name], CLASS_DOCS[HELD_AS[name]].partition("\n")[0]
            )
        else:
            attributes[name] = Attribute("int | None" if m.is_integer else "float | None", help)
    for name, keys in parts.items():
        attributes[name] = attributes[name]._replace(
            of=_add(made, HELD_AS[name], JsonObject(*keys))
        )
    if of.metrics:
        help = "The source and the age of each known value, by the name of its attribute."
        witness = _add(made, HELD_AS["provenance"], _WITNESS)
        attributes["provenance"] = Attribute(f"dict[str, {witness}]", help, witness, levels=1)
    return attributes


def annotated(kind: Schema) -> str:
    """The type of Python of plain values of that schema."""
    if "const" in kind:
        return type(kind["const"]).__name__
    if "enum" in kind:
        return _one_of(kind["enum"])
    names = kind["type"] if isinstance(kind["type"], list) else [kind["type"]]
    return " | ".join(_plain(kind, name) for name in names)


def _one_of(words: list[Any]) -> str:
    texts = ", ".join(f'"{word}"' for word in words if word is not None)
    return f"Literal[{texts}]{' | None' if None in words else ''}"


def _plain(kind: Schema, name: str) -> str:
    if name == "array":
        return f"tuple[{annotated(kind['items'])}, ...]"
    if name == "object":
        return f"dict[str, {annotated(kind['additionalProperties'])}]"
    return PLAIN[name]
