"""A profile as JSON objects and back: each field under its own name. Trusts none of what it reads.

Members that a reader does not know are skipped, and those that are missing are None, so that files
of other versions can be compared.
"""

import json
import types
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.limits import FLOAT_MOST

Record = TypeVar("Record")
SCHEMA = 1
TEXT_MOST = 4096
"""Characters of a text that is read back."""
ITEMS_MOST = 100_000
WHOLE_MOST = 2**63
"""Larger numbers are nonsense, and would break the arithmetic or the columns that show them."""
PERCENT_LEAST, PERCENT_MOST = -1.0, 1e9
"""Rounding may give a little less than 0, and a wrong cost estimate far more than 100."""


NOT_JSON = "it is not JSON"
CONTAINERS_MOST = 2_000_000
"""Lists and objects in one text: millions of empty ones take minutes to decode."""


def json_in(data: bytes) -> Any:
    """The value in the bytes of a JSON text. Raises ValueError with the reason, as the rest of a
    sentence.
    """
    if data.count(b"[") + data.count(b"{") > CONTAINERS_MOST:
        raise ValueError(f"it has more than {CONTAINERS_MOST:,} lists and objects")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError(NOT_JSON) from None


def to_object(profile: TraceProfile) -> dict[str, Any]:
    """The profile as an object for `json.dumps`, with the number of its schema."""
    return {"schema": SCHEMA, **_plain(profile)}


def from_object(value: object) -> TraceProfile:
    """The profile of such an object. Raises ValueError with the name of what is wrong in it."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError("it is not a profile of tpusmi, or of a newer version")
    return _record(TraceProfile, value, "profile")


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(member) for name, member in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value


def _record(kind: type[Record], value: object, path: str) -> Record:
    if not isinstance(value, dict):
        raise ValueError(f"{path} is not an object")
    hints, defaults = get_type_hints(kind), getattr(kind, "_field_defaults", {})
    members = {}
    for name, hint in hints.items():
        default = defaults.get(name)
        members[name] = _member(hint, value.get(name, _plain(default)), f"{path}.{name}")
    return kind(**members)


def _member(hint: Any, value: object, path: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _member(next(a for a in arguments if a is not type(None)), value, path)
    if origin is tuple:
        if not isinstance(value, list) or len(value) > ITEMS_MOST:
            raise ValueError(f"{path} is not a list")
        return tuple(_member(arguments[0], item, f"{path}[{i}]") for i, item in enumerate(value))
    if origin is not None:
        return _names(value, path)
    if isinstance(hint, type) and issubclass(hint, tuple):
        return _record(cast(type[NamedTuple], hint), value, path)
    return _scalar(hint, value, path)


def _names(value: object, path: str) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > ITEMS_MOST:
        raise ValueError(f"{path} is not an object")
    return {str(k)[:TEXT_MOST]: str(v)[:TEXT_MOST] for k, v in value.items()}


def _scalar(hint: Any, value: object, path: str) -> Any:
    is_flag = isinstance(value, bool)
    if hint is bool and is_flag:
        return value
    if hint is str and isinstance(value, str):
        return value[:TEXT_MOST]
    if hint is int and isinstance(value, int) and not is_flag and abs(value) <= WHOLE_MOST:
        return value
    if hint is float and isinstance(value, (int, float)) and not is_flag:
        return _finite(value, path)
    raise ValueError(f"{path} is not {_WORDS.get(hint, hint)}")


def _finite(value: float, path: str) -> float:
    if value != value or abs(value) > FLOAT_MOST:
        raise ValueError(f"{path} is not a finite number")
    if path.endswith("_percent") and not PERCENT_LEAST <= value <= PERCENT_MOST:
        raise ValueError(f"{path} is not a percentage")
    return float(value)


_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
