"""The check of each setting: its value in the type that the dashboard takes, or what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tpusmi.nearest import nearest
from tpusmi.text import clean

INTERVAL_LEAST_S, INTERVAL_MOST_S = 0.1, 86400.0
QUOTED_MOST = 60
"""Characters of a wrong word that an error message repeats."""
LISTED_MOST = 8
"""The most names that an error message lists."""
LISTS = "tpusmi --print-config lists all of them"


class WrongValueError(ValueError):
    """What is wrong with one setting: its message, and its key below that of its table."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


def _theme(value: object) -> str:
    from tpusmi.tui.draw.themes import THEMES

    return _one_of(value, "theme", THEMES)


def _view(value: object) -> str:
    from tpusmi.tui.feed import DeviceView

    return _one_of(value, "view", [view.value for view in DeviceView])


def _interval_s(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number of seconds, not {_kind(value)}")
    if not INTERVAL_LEAST_S <= value <= INTERVAL_MOST_S:
        raise ValueError(f"not between {INTERVAL_LEAST_S} and {INTERVAL_MOST_S:.0f} seconds")
    return float(value)


def _true_or_false(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_kind(value)}")
    return value


def _user(value: object) -> str:
    if not _string(value).isprintable():
        raise ValueError(f"{_quoted(value)} is not a user name")
    return _string(value)


def _keys(value: object) -> dict[str, str]:
    from tpusmi.tui import keymap
    from tpusmi.tui.pages import settable_keys

    defaults = {b.id: b.key for page in settable_keys().values() for b in page if b.id}
    keys: dict[str, str] = {}
    for id, text in _table(value, "keys").items():
        with _named("keys", id):
            if id not in defaults:
                raise ValueError(f"{unknown(id, 'key', defaults)}; {LISTS}")
            keys[id] = keymap.spelled(_string(text))
    keys = {id: names for id, names in keys.items() if names != defaults[id]}
    if both := _clash(keys):
        key, id, other = both
        with _named("keys", id):
            raise ValueError(f"{keymap.printed(key)} is already the key of {other}")
    return keys


def _clash(keys: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Two bindings of a page with the same key. A key for the dashboard of a host may be one that
    only a fleet has: there it takes that key's place.
    """
    from tpusmi.tui.keymap import clash
    from tpusmi.tui.pages import every_key, keys_by_fleet_page, keys_by_page

    only_there = {*keys} - {b.id for b in every_key()}
    of_host = (clash(page, keys) for page in keys_by_page().values())
    of_fleet = (clash(page, keys, only_there) for page in keys_by_fleet_page().values())
    return next(filter(None, (*of_host, *of_fleet)), None)


def _colors(value: object) -> dict[str, str]:
    from tpusmi.tui.draw import themes

    names = themes.THEMES[themes.DEFAULT].styles
    colors: dict[str, str] = {}
    for name, text in _table(value, "colors").items():
        with _named("colors", name):
            if name not in names:
                raise ValueError(f"{unknown(name, 'style', names)}; {LISTS}")
            colors[name] = _style(_string(text))
    return colors


@contextmanager
def _named(table: str, key: str) -> Iterator[None]:
    """Errors inside begin with the table and its key, and carry the key."""
    try:
        yield
    except ValueError as error:
        name = "" if str(error).startswith("unknown ") else f"{clean(key, QUOTED_MOST)}: "
        raise WrongValueError(f"[{table}] {name}{error}", key) from None


def _style(text: str) -> str:
    """The definition of a Rich style, checked."""
    from rich.color import ANSI_COLOR_NAMES
    from rich.errors import StyleSyntaxError
    from rich.style import Style

    try:
        style = Style.parse(text)
    except StyleSyntaxError:
        valid = {*ANSI_COLOR_NAMES, *Style.STYLE_ATTRIBUTES, "on", "not", "none"}
        wrong = [word for word in text.lower().split() if word not in valid]
        hint = _hint(wrong[0], valid) if wrong else ""
        raise ValueError(f"{_quoted(text)} is not a valid Rich style{hint}") from None
    # A link could send any text to the terminal.
    if style.link is not None or not text.isprintable():
        raise ValueError(f"{_quoted(text)} has more than colors and attributes such as bold")
    return text


def _hidden(value: object) -> tuple[str, ...]:
    from tpusmi.tui.feed import PANELS

    return tuple(_one_of(name, "panel", PANELS) for name in _list(value))


def _columns(value: object) -> dict[str, tuple[str, ...]]:
    from tpusmi.report.column_choices import CHOICES

    columns: dict[str, tuple[str, ...]] = {}
    for table, titles in _table(value, "columns").items():
        with _named("columns", table):
            if table not in CHOICES:
                raise ValueError(unknown(table, "table", CHOICES))
            chosen = {_one_of(t, "column", CHOICES[table], LISTS) for t in _list(titles)}
            if len(chosen) < len(CHOICES[table]):
                columns[table] = tuple(title for title in CHOICES[table] if title in chosen)
    return columns


def _sort(value: object) -> str:
    from tpusmi.report.column_choices import SORTED_BY

    return _one_of(value, "column", ("", *SORTED_BY), LISTS)


def _window(value: object) -> int:
    from tpusmi.tui.page import SPANS_S

    minutes = (0, *(span_s // 60 for span_s in SPANS_S))
    if type(value) is not int or value not in minutes:
        raise ValueError(f"must be one of {', '.join(map(str, minutes))} minutes")
    return value


CHECKS: dict[str, Callable[[object], Any]] = {
    "theme": _theme,
    "interval": _interval_s,
    "view": _view,
    "ascii": _true_or_false,
    "only_user": _user,
    "hidden": _hidden,
    "sort": _sort,
    "reverse": _true_or_false,
    "window": _window,
    "columns": _columns,
    "keys": _keys,
    "colors": _colors,
}
"""The check of each setting, by its name in the file."""


def _one_of(value: object, what: str, choices: Iterable[str], where: str = "") -> str:
    """One of the names. `where` is a sentence about what lists them, for many."""
    names = [*choices]
    text = _string(value)
    if text not in names:
        all_of_them = where or f"choose one of {', '.join(names)}"
        hint = _hint(text, names) or f"; {all_of_them}"
        raise ValueError(f"{_quoted(text)} is not a {what}{hint}")
    return text


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f'must be text in "quotes", not {_kind(value)}')
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f'must be a list, such as ["a", "b"], not {_kind(value)}')
    return value


def _table(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"must be a table, [{name}], not {_kind(value)}")
    return value


def _kind(value: object) -> str:
    """The type's name in TOML."""
    names = {bool: "true or false", str: "text", list: "an array", dict: "a table"}
    number = "a number" if isinstance(value, int | float) else "a date or a time"
    return names.get(type(value), number)


def unknown(name: str, what: str, names: Iterable[str]) -> str:
    """`unknown setting them; did you mean "theme"?`, or all of the names where they are few."""
    listed = [*names]
    few = f"; {what}s are {', '.join(listed)}" if len(listed) <= LISTED_MOST else ""
    return f"unknown {what} {clean(name, QUOTED_MOST)}{_hint(name, listed) or few}"


def _hint(name: str, names: Iterable[str]) -> str:
    """`; did you mean "kill"?`; empty if no name is similar."""
    similar = nearest(name, names)
    return f'; did you mean "{similar}"?' if similar else ""


def _quoted(value: object) -> str:
    return f'"{clean(str(value), QUOTED_MOST)}"'
