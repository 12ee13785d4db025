"""The JSON Schema of `tpusmi --json` as this version prints it: no key that it does not name."""

from __future__ import annotations

from typing import Any

from tpusmi.report.schema import json_schema


def strict_schema() -> dict[str, Any]:
    """The published one lets later versions add keys."""
    return _strict(json_schema())


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    inner = {k: _strict(v) if isinstance(v, dict) else v for k, v in schema.items()}
    if "properties" in schema and schema.get("type") in ("object", ["object", "null"]):
        inner.setdefault("additionalProperties", False)
    return inner
