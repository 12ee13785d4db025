"""What a person wants the dashboard to be like, kept in a small TOML file."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tpusmi.text import clean

INTERVAL_LEAST_S, INTERVAL_MOST_S = 0.1, 86400.0
LARGEST_BYTES = 64 * 1024
"""Of a file; every setting there is, with its comment, takes a tenth of it."""
QUOTED_MOST = 60
"""Characters of a wrong word that are repeated to whoever wrote it."""


class SettingsError(ValueError):
    """One sentence: which file, which key, and what is wrong there."""


class Settings(NamedTuple):
    """What can be kept. The defaults are those of a missing file."""

    theme: str = "ansi"
    interval_s: float = 1.0
    view: str = "auto"
    ascii: bool = False
    only_user: str = ""
    """Empty is everybody."""
    keys: Mapping[str, str] = {}
    """Only those that differ from the bindings' own, as Textual spells them."""
    colors: Mapping[str, str] = {}


def settings_path() -> str:
    """Where the file is, whether or not it is there."""
    own = os.environ.get("TPUSMI_CONFIG")
    if own:
        return own
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):  # to be ignored, says the XDG base directory specification
        from tpusmi.sources.users import home

        base = os.path.join(home(), ".config")
    return os.path.join(base, "tpusmi", "config.toml")


def load(path: str) -> Settings:
    """The settings of that file; the defaults where none is. Raises SettingsError."""
    where = clean(path)
    try:
        text = _text(path)
        return Settings() if text is None else _settings(_parsed(text))
    except ValueError as error:
        raise SettingsError(f"{where}: {error}") from None
    except OSError as error:
        raise SettingsError(f"{where}: {error.strerror or 'cannot be read'}") from None


def checked(name: str, value: object) -> Any:
    """The value of a top-level key of the file, in the type of its field. Raises ValueError."""
    return _CHECKS[name](value)


def _text(path: str) -> str | None:
    def opened(path: str, flags: int) -> int:
        # Not to wait for whoever writes into a pipe, if ever.
        return os.open(path, flags | os.O_NONBLOCK)

    try:
        with open(path, "rb", opener=opened) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) and path != os.devnull:
                raise ValueError("is not a file")
            found = file.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(found) > LARGEST_BYTES:
        raise ValueError(f"is larger than {LARGEST_BYTES // 1024} KiB")
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = found[: error.start].count(b"\n") + 1
        raise ValueError(f"line {line} is not UTF-8") from None


def _parsed(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        found: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Deep arrays exhaust the parser's stack, and long digits the interpreter's patience.
        raise ValueError(f"is not TOML: {clean(str(error), 200) or 'nested too deep'}") from None
    return found


def _settings(table: dict[str, Any]) -> Settings:
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name not in _CHECKS:
            raise ValueError(_unknown(name, "setting", _CHECKS))
        try:
            field = "interval_s" if name == "interval" else name
            found[field] = checked(name, value)
        except ValueError as error:
            prefix = "" if isinstance(value, dict) else f"{name}: "
            raise ValueError(f"{prefix}{error}") from None
    return Settings(**found)


def _theme(value: object) -> str:
    from tpusmi.tui.draw.themes import THEMES

    return _one_of(value, "theme", THEMES)


def _view(value: object) -> str:
    from tpusmi.tui.feed import View

    return _one_of(value, "view", [view.value for view in View])


def _interval_s(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a number of seconds, not {_kind(value)}")
    if not INTERVAL_LEAST_S <= value <= INTERVAL_MOST_S:
        raise ValueError(f"not between {INTERVAL_LEAST_S} and {INTERVAL_MOST_S:.0f} seconds")
    return float(value)


def _ascii(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"true or false, not {_kind(value)}")
    return value


def _user(value: object) -> str:
    if not _string(value).isprintable():
        raise ValueError(f"{_quoted(value)} is not a user name")
    return _string(value)


def _keys(value: object) -> dict[str, str]:
    from tpusmi.tui import keymap
    from tpusmi.tui.pages import every_key, keys_by_page

    usual = {b.id: b.key for b in every_key() if b.id}
    found: dict[str, str] = {}
    for id, text in _table(value, "keys").items():
        if id not in usual:
            raise ValueError(f"[keys] {_unknown(id, 'key', usual)}")
        try:
            found[id] = keymap.spelled(_string(text))
        except keymap.KeyNameError as error:
            raise ValueError(f"[keys] {id}: {_quoted(text)}: {error}") from None
        except ValueError as error:
            raise ValueError(f"[keys] {id}: {error}") from None
    found = {id: keys for id, keys in found.items() if keys != usual[id]}
    for page in keys_by_page().values():
        if both := keymap.clash(page, found):
            key, id, other = both
            raise ValueError(f"[keys] {id}: {key} is the key of {other}, too")
    return found


def _colors(value: object) -> dict[str, str]:
    from tpusmi.tui.draw import themes

    names = themes.THEMES[themes.DEFAULT].styles
    found: dict[str, str] = {}
    for name, text in _table(value, "colors").items():
        if name not in names:
            raise ValueError(f"[colors] {_unknown(name, 'style', names)}")
        try:
            found[name] = _style(_string(text))
        except ValueError as error:
            raise ValueError(f"[colors] {name}: {error}") from None
    return found


def _style(text: str) -> str:
    """The definition of a Rich style, checked."""
    from rich.color import ANSI_COLOR_NAMES
    from rich.errors import StyleSyntaxError
    from rich.style import Style

    try:
        style = Style.parse(text)
    except StyleSyntaxError:
        known = {*ANSI_COLOR_NAMES, *Style.STYLE_ATTRIBUTES, "on", "not", "none"}
        wrong = [word for word in text.lower().split() if word not in known]
        near = _nearest(wrong[0], known) if wrong else ""
        raise ValueError(f"{_quoted(text)} is not a style of Rich{near}") from None
    # A link takes any text along to the terminal.
    if style.link is not None or not text.isprintable():
        raise ValueError(f"{_quoted(text)} is more than colours, bold and the like")
    return text


_CHECKS: dict[str, Callable[[object], Any]] = {
    "theme": _theme,
    "interval": _interval_s,
    "view": _view,
    "ascii": _ascii,
    "only_user": _user,
    "keys": _keys,
    "colors": _colors,
}
"""By the name in the file."""


def _one_of(value: object, what: str, known: Iterable[str]) -> str:
    names = [*known]
    text = _string(value)
    if text not in names:
        near = _nearest(text, names) or f"; choose one of {', '.join(names)}"
        raise ValueError(f"{_quoted(text)} is not a {what}{near}")
    return text


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f'text in "quotes", not {_kind(value)}')
    return value


def _table(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"a table, [{name}], not {_kind(value)}")
    return value


def _kind(value: object) -> str:
    """What TOML calls it."""
    names = {bool: "true or false", str: "text", list: "an array", dict: "a table"}
    number = "a number" if isinstance(value, int | float) else "a date or a time"
    return names.get(type(value), number)


def _unknown(name: str, what: str, known: Iterable[str]) -> str:
    return f"{clean(name, QUOTED_MOST)}: no {what} has that name{_nearest(name, known)}"


def _nearest(name: str, known: Iterable[str]) -> str:
    """`; is kill meant?`, or nothing where nothing is like it."""
    from difflib import get_close_matches

    found = get_close_matches(name[:QUOTED_MOST].lower(), [*known], 1)
    return f"; is {found[0]} meant?" if found else ""


def _quoted(value: object) -> str:
    return f'"{clean(str(value), QUOTED_MOST)}"'
