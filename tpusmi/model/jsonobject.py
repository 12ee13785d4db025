"""How a table of keys becomes an object of `tpusmi --json`; `schema.py` makes its schema of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tpusmi.model.metrics import Metric
from tpusmi.model.nouns import Number, Subject
from tpusmi.model.states import Word

if TYPE_CHECKING:
    from tpusmi.model.snapshot import Snapshot

Schema = dict[str, Any]
"""A JSON Schema of plain values, in which a JsonObject means the schema of its objects."""
Getter = Callable[[Any, Any], Any]
"""From a snapshot and the item that an object describes: the value of one key."""


# Plain classes: a named tuple takes four times as long to make, at the start of each `--json`.
class JsonKey:
    """One key of an object."""

    def __init__(self, name: str, kind: Schema | JsonObject, help: str, read: Getter) -> None:
        self.name, self.kind, self.help = name, kind, help
        self.read = read
        """Returns the value that is printed."""
        self.is_list = False
        self.is_nullable = False
        """True where null takes the place of a whole object."""


class JsonObject:
    """A kind of object: its keys in their order, and the metrics that are measured of it."""

    def __init__(self, *keys: JsonKey, metrics: tuple[Metric, ...] = ()) -> None:
        self.keys, self.metrics = keys, metrics
        self._readers = [(k.name, k.read) for k in keys]

    def value(self, s: Snapshot, item: Any) -> dict[str, Any]:
        """The object: plain numbers, strings, lists, dicts and None."""
        fields = {name: read(s, item) for name, read in self._readers}
        if self.metrics:
            _add_measured(fields, s, self.metrics, item.key)
        return fields


def key(name: str, kind: Schema | JsonObject, help: str = "", get: Getter | None = None) -> JsonKey:
    """A key whose value is the item's attribute of that name, or what `get` returns."""
    read = get or (lambda s, item: getattr(item, name))
    if isinstance(kind, JsonObject):
        return JsonKey(name, kind, help, lambda s, item: kind.value(s, read(s, item)))
    if "enum" in kind:
        return JsonKey(name, kind, help, lambda s, item: _plain(read(s, item)))
    return JsonKey(name, kind, help, read)


def keys(name: str, kind: Schema | JsonObject, help: str, get: Getter | None = None) -> JsonKey:
    """A key whose value is a list: of plain values, or of objects."""
    read = get or (lambda s, item: getattr(item, name))
    if isinstance(kind, JsonObject):
        of_each = kind.value
        listed = JsonKey(name, kind, help, lambda s, x: [of_each(s, y) for y in read(s, x)])
    else:
        listed = JsonKey(name, kind, help, lambda s, item: list(read(s, item)))
    listed.is_list = True
    return listed


def nullable(name: str, kind: JsonObject, get: Getter) -> JsonKey:
    """A key whose value is an object, or null where `get` returns None."""

    def read(s: Snapshot, item: Any) -> dict[str, Any] | None:
        whole = get(s, item)
        return None if whole is None else kind.value(s, whole)

    made = JsonKey(name, kind, "", read)
    made.is_nullable = True
    return made


def _plain(value: Any) -> Any:
    """The text of a word of a fixed set; anything else as it is."""
    return str(value) if isinstance(value, Word) else value


def or_null(kind: Schema) -> Schema:
    """The same type, or null for an unknown value."""
    return {**kind, "type": [kind["type"], "null"]}


TEXT: Schema = {"type": "string"}
TRUTH: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TEXT_OR_NULL, WHOLE_OR_NULL, NUMBER_OR_NULL = or_null(TEXT), or_null(WHOLE), or_null(NUMBER)


@lru_cache(1024, typed=True)  # most values of one source are equally old
def rounded(value: Number | None) -> Number | None:
    """Nine significant digits are beyond any source's precision and keep the JSON short."""
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _add_measured(
    fields: dict[str, Any], s: Snapshot, metrics: tuple[Metric, ...], subject: Subject
) -> None:
    """Add every metric of a scope, None where unknown, and the provenance of the known."""
    provenance: dict[str, Any] = {}
    for m in metrics:
        full_name = m.name
        measured = s.values.get((subject, full_name))
        value = None if measured is None else rounded(measured.value)
        name, _, part = full_name.partition(".")
        if part:
            fields.setdefault(name, {})[part] = value
        else:
            fields[name] = value
        if measured is not None:
            provenance[name] = {
                "source": measured.source,
                "age_s": rounded(measured.age_s),
                "stale": measured.stale,
            }
    fields["provenance"] = provenance
