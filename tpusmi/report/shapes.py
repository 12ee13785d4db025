"""The pieces that a JSON Schema is put together of."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TRUTH: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}


def an_object(properties: Schema) -> Schema:
    """An object that has every one of these."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def a_list(items: Schema, help: str) -> Schema:
    """Any number of such items."""
    return {"type": "array", "description": help, "items": items}


def said(kind: Schema, help: str) -> Schema:
    """The same, explained."""
    return {**kind, "description": help}


def or_null(kind: Schema) -> Schema:
    """The same, or null for what is unknown."""
    return {**kind, "type": [kind["type"], "null"]}
