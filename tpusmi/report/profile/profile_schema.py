"""The JSON Schema of `tpusmi profile --json`, made from the types of a profile and their docs.

`python -m tpusmi.report.profile.profile_schema` prints it; `assets/tpusmi.profile.schema.json` is
what it printed.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from tpusmi.model.jsonobject import Schema, or_null
from tpusmi.trace import figures
from tpusmi.trace.plain_objects import SCHEMA
from tpusmi.trace.troubles import Trouble

SCALARS = {bool: "boolean", int: "integer", float: "number", str: "string"}


NUMBER = {"const": SCHEMA, "description": "The version of this form."}


def json_schema() -> Schema:
    """The schema of all that it prints: one host, several, or a comparison.

    Every key of a profile is always there; unknown values are null. A later version may add keys,
    so others are allowed.
    """
    profile = _of_record(figures.TraceProfile, _field_docs())
    host: Schema = {"anyOf": [_ref("profile"), _ref("failure")]}
    hosts = _an_object("Several hosts.", {"hosts": {"type": "array", "items": host}})
    either: Schema = {"anyOf": [*host["anyOf"], _ref("hosts")]}
    both = {"old": either, "new": either}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tpusmi profile",
        "description": "What `tpusmi profile --json` prints: one object, or one per line.",
        "anyOf": [*either["anyOf"], _ref("comparison")],
        "$defs": {
            "profile": _an_object(profile["description"], profile["properties"]),
            "failure": _an_object("A host without a profile.", _failure()),
            "hosts": hosts,
            "comparison": _an_object("With --compare, both captures.", both),
        },
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _an_object(description: str, properties: Schema) -> Schema:
    """An object with the number of its form, that has every one of these keys."""
    keys = {"schema": NUMBER, **properties}
    return {
        "type": "object",
        "description": description,
        "properties": keys,
        "required": [*keys],
    }


def _failure() -> Schema:
    kinds = [trouble.value for trouble in Trouble]
    error = {"trouble": {"enum": kinds}, "message": {"type": "string"}}
    return {
        "target": {"type": "string"},
        "error": {"type": "object", "properties": error, "required": [*error]},
    }


Docs = Mapping[tuple[str, str], str]


def _field_docs() -> Docs:
    """The docstring under each field, by class and field."""
    docs = {}
    for node in ast.parse(inspect.getsource(figures)).body:
        if isinstance(node, ast.ClassDef):
            for field, doc in zip(node.body, node.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    docs[node.name, field.target.id] = _text(doc)
    return docs


def _text(node: ast.stmt) -> str:
    """The text of a docstring on one line, in the words of JSON; empty for any other node."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return ""
    return _summary(str(node.value.value))


def _summary(doc: str) -> str:
    """Its first paragraph on one line, in the words of JSON."""
    return " ".join(doc.partition("\n\n")[0].split()).replace("None ", "null ")


def _of_record(kind: type, docs: Docs) -> Schema:
    fields = {}
    for name, hint in get_type_hints(kind).items():
        schema = _of(hint, docs)
        doc = docs.get((kind.__name__, name))
        fields[name] = {**schema, "description": doc} if doc else schema
    return {
        "type": "object",
        "description": _summary(inspect.cleandoc(kind.__doc__ or "")),
        "properties": fields,
        "required": list(fields),
    }


def _of(hint: Any, docs: Docs) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return or_null(_of(next(a for a in arguments if a is not type(None)), docs))
    if origin is tuple:
        return {"type": "array", "items": _of(arguments[0], docs)}
    if origin is not None:
        return {"type": "object", "additionalProperties": _of(arguments[1], docs)}
    return {"type": SCALARS[hint]} if hint in SCALARS else _of_record(hint, docs)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
