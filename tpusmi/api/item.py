"""What all objects of a snapshot share: attributes by the JSON's names, and help for wrong ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from tpusmi.api.kinds import Attribute, ObjectKind
from tpusmi.model.jsonobject import JsonObject
from tpusmi.model.metrics import METRICS
from tpusmi.nearest import nearest

TITLES = {m.title.lower(): m.name for m in METRICS}
"""Names of metrics by what the screens call them: `mxu`."""
OTHER_WORDS = {
    "memory": "hbm_used_bytes", "memory_used": "hbm_used_bytes", "used_memory": "hbm_used_bytes",
    "used": "hbm_used_bytes", "memory_total": "hbm_limit_bytes", "total": "hbm_limit_bytes",
    "hbm_total": "hbm_limit_bytes", "memory_limit": "hbm_limit_bytes",
    "memory_peak": "hbm_peak_bytes", "utilization": "tensorcore_utilization_percent",
    "gpu_utilization": "duty_cycle_percent", "duty_cycle": "duty_cycle_percent",
    "bandwidth": "hbm_bandwidth_utilization_percent", "owner": "process", "owners": "processes",
    "holder": "process", "holders": "processes", "job": "process", "jobs": "processes",
    "cmdline": "command", "cmd": "command", "username": "user", "step": "steps",
    "started": "age_s", "create_time": "age_s", "start_time": "age_s", "runtime": "age_s",
    "elapsed": "age_s", "rate": "steps_per_s", "step_rate": "steps_per_s",
    "utilization_gpu": "duty_cycle_percent", "hostname": "host",
    "notices": "warnings", "profile": "memory_profile", "pd": "to_pandas",
    "dataframe": "to_pandas", "to_df": "to_pandas", "json": "to_dict", "to_json": "to_dict",
    "asdict": "to_dict", "df": "to_pandas", "sum": "total", "average": "mean", "name": "command",
    "gpus": "devices", "tpus": "devices",
}  # fmt: skip
"""What nvidia-smi, psutil and pandas call an attribute or a method here."""
SHOWN_MOST = 4
"""How many values the repr of an object has that has no words of its own."""
TEXT_MOST = 60
LISTED_MOST = 20


class Item:
    """An object of a snapshot. It does not change; a new snapshot has new ones."""

    __slots__ = ("_plain", "_values")
    _keys: ClassVar[JsonObject]
    """Its keys in JSON."""
    _attributes: ClassVar[dict[str, Attribute]] = {}
    _classes: ClassVar[dict[str, type[Item]]] = {}

    def __init__(self, plain: dict[str, Any]) -> None:
        self._plain = plain
        """Its object in JSON."""
        self._values: dict[str, Any] = {}
        """Its attributes, as far as they were used."""

    def to_dict(self) -> dict[str, Any]:
        """Its object in `tpusmi --json`: plain numbers, strings, lists, dicts and None.

        >>> s.devices[0].to_dict()["name"]
        'tpu:0'
        """
        copied: dict[str, Any] = _copy(self._plain)
        return copied

    def _value(self, name: str) -> Any:
        """The value of an attribute, made at its first use."""
        try:
            return self._values[name]
        except KeyError:
            attribute = self._attributes[name]
            made = self._classes[attribute.of] if attribute.of else None
            value = _wrapped(self._plain[name], made, attribute.levels)
            return self._values.setdefault(name, value)

    def _at(self, path: str) -> Any:
        """The value of an attribute or of one of its parts; None where the part is of None.
        Raises AttributeError, as for an attribute that is not there.
        """
        value: Any = self
        kind: type[Item] | None = type(self)
        for name in path.split("."):
            if value is not None and not isinstance(value, Item):
                raise AttributeError(f"{path!r}: {name!r} would be a part of {_article(value)}")
            if kind is not None and name not in kind._attributes:
                raise AttributeError(_no_attribute(kind, name))
            of = "" if kind is None else kind._attributes[name].of
            value = None if value is None else value._value(name)
            kind = type(value) if isinstance(value, Item) else self._classes.get(of)
        return value

    def __repr__(self) -> str:
        facts = [_fact(name, value) for name, value in self._plain.items() if _is_short(value)]
        return f"<{type(self).__name__} {', '.join(facts[:SHOWN_MOST]) or 'unknown'}>"

    if not TYPE_CHECKING:  # a type checker would believe that every name is there

        def __getattr__(self, name: str) -> NoReturn:
            """Raises AttributeError with the nearest name."""
            # Python would add a guess of its own, from the names of `obj`.
            raise AttributeError(_no_attribute(type(self), name), name=name, obj=None)


def _no_attribute(kind: type[Item], name: str) -> str:
    """That there is none of that name, and which one may be meant."""
    is_internal = name.startswith("_")  # looked for by copy, IPython, NumPy, ...
    methods = [method for method in dir(kind) if not method.startswith("_")]
    hint = "" if is_internal else _as_part(kind, name) or meant(name, kind._attributes, methods)
    return f"{kind.__name__} has no attribute {name[:TEXT_MOST]!r}{hint}"


def _as_part(kind: type[Item], name: str) -> str:
    """`; did you mean 'process.user'?` where one of its objects has that name; else empty."""
    for word, attribute in kind._attributes.items():
        part = kind._classes.get(attribute.annotation.removesuffix(" | None"))
        if part is not None and name in part._attributes and name not in OTHER_WORDS:
            return f"; did you mean {f'{word}.{name}'!r}?"
    return ""


def _article(value: object) -> str:
    """`a tuple`, `an int`."""
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def object_class(name: str, kind: ObjectKind, base: type[Item], module: str) -> type[Item]:
    """The class of one kind of object; each attribute is a property that cannot be set."""
    properties = {word: _property(word, has.help) for word, has in kind.attributes.items()}
    facts = {"_attributes": kind.attributes, "_keys": kind.keys, "__doc__": kind.doc}
    return type(name, (base,), {**properties, **facts, "__slots__": (), "__module__": module})


def _property(name: str, help: str) -> property:
    def read(self: Item) -> Any:
        return self._value(name)

    return property(read, doc=help)


def meant(name: str, names: Collection[str], methods: Collection[str] = ()) -> str:
    """`; did you mean 'hbm_used_bytes'?`, or what there is where no name is near."""
    word = name[:TEXT_MOST].lower()
    others = {**OTHER_WORDS, **TITLES}
    meaning = {other: n for other, n in others.items() if n in names or n in methods}
    meaning |= {n: n for n in names}
    likely = [n for n in meaning if len(n) > len(word) / 2]  # `id` is not meant by `uuid`
    near = meaning.get(nearest(word, likely), "")
    near = near or next((n for n in names if len(name) > 1 and word in n), "")
    if near:
        return f"; did you mean {near!r}?"
    return f"; there are {', '.join(names)}" if len(names) <= LISTED_MOST else "; dir() lists them"


def _wrapped(value: Any, made: type[Item] | None, levels: int = 0) -> Any:
    """Lists as tuples, and objects as objects of that class."""
    if isinstance(value, list):
        return tuple(_wrapped(one, made) for one in value)
    if levels:
        return {name: _wrapped(one, made, levels - 1) for name, one in value.items()}
    return value if made is None or value is None else made(value)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(one) for name, one in value.items()}
    return [_copy(one) for one in value] if isinstance(value, list) else value


def _is_short(value: Any) -> bool:
    return value not in (None, "") and not isinstance(value, dict | list)


def _fact(name: str, value: Any) -> str:
    text = repr(value)
    return f"{name}={text if len(text) <= TEXT_MOST else text[: TEXT_MOST - 1] + '…'}"
