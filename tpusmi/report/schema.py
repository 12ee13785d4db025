"""The JSON Schema of `tpusmi --json`, made from the table of its keys and the metrics.

`python -m tpusmi.report.schema` prints it; `assets/tpusmi.schema.json` is what it printed.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tpusmi.model import Metric
from tpusmi.model.jsonkeys import SNAPSHOT
from tpusmi.model.jsonobject import NUMBER, TEXT, TRUTH, WHOLE, JsonKey, JsonObject, Schema, or_null


def json_schema() -> Schema:
    """The schema of one snapshot. Every key is always there; unknown values are null.

    A later version may add keys, so others are allowed.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tpusmi snapshot",
        "description": "What `tpusmi --json` prints: one object, with --loop one per line.",
        **of_object(SNAPSHOT),
    }


def of_object(of: JsonObject) -> Schema:
    """The schema of such an object."""
    return _an_object({k.name: _of_key(k) for k in of.keys} | _measured(of.metrics))


def _an_object(properties: Schema) -> Schema:
    """An object that has every one of these keys."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def _of_key(key: JsonKey) -> Schema:
    schema = _whole(key.kind)
    if key.is_list:
        return {"type": "array", "description": key.help, "items": schema}
    if key.is_nullable:
        schema = or_null(schema)
    return {**schema, "description": key.help} if key.help else schema


def _whole(kind: Any) -> Any:
    """The schema with those of objects in their places."""
    if isinstance(kind, JsonObject):
        return of_object(kind)
    return {k: _whole(v) for k, v in kind.items()} if isinstance(kind, dict) else kind


def _measured(metrics: tuple[Metric, ...]) -> Schema:
    """Every metric of a scope, and where the known ones come from."""
    fields: Schema = {}
    for m in metrics:
        kind = or_null(WHOLE if m.is_integer else NUMBER)
        schema = {**kind, "description": f"{m.help} Unit: {m.unit}."}
        name, _, part = m.name.partition(".")
        if part:
            parts = fields.setdefault(name, _an_object({}))
            parts["properties"][part] = schema
            parts["required"].append(part)
        else:
            fields[name] = schema
    if metrics:
        fields["provenance"] = {
            "type": "object",
            "description": "The source of every known value, and how long ago it was measured.",
            "additionalProperties": _an_object({"source": TEXT, "age_s": NUMBER, "stale": TRUTH}),
        }
    return fields


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
