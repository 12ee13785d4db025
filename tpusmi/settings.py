"""The dashboard's settings, in a small TOML file."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tpusmi.text import clean

INTERVAL_LEAST_S, INTERVAL_MOST_S = 0.1, 86400.0
LARGEST_BYTES = 64 * 1024
"""The size limit of the file; all settings with their comments take a tenth of it."""
QUOTED_MOST = 60
"""Characters of a wrong word that an error message repeats."""
LISTED_MOST = 8
"""The most names that an error message lists."""


class SettingsError(ValueError):
    """One sentence: which file, which key, and what is wrong."""


class Settings(NamedTuple):
    """All settings. The defaults apply if there is no file."""

    theme: str = "ansi"
    interval_s: float = 1.0
    view: str = "auto"
    ascii: bool = False
    only_user: str = ""
    """Empty: all users."""
    keys: Mapping[str, str] = {}
    """The keys that differ from the default bindings, as Textual spells them."""
    colors: Mapping[str, str] = {}


def settings_path() -> str:
    """The path of the file, whether or not it exists."""
    own = os.environ.get("TPUSMI_CONFIG")
    if own:
        return own
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):  # the XDG base directory specification says to ignore these
        from tpusmi.sources.users import home

        base = os.path.join(home(), ".config")
    return os.path.join(base, "tpusmi", "config.toml")


def load(path: str) -> Settings:
    """The settings in that file; the defaults if there is none. Raises SettingsError."""
    where = clean(path)
    try:
        text = _text(path)
        return Settings() if text is None else _settings(_parsed(text))
    except ValueError as error:
        raise SettingsError(f"{where}: {error}") from None
    except OSError as error:
        raise SettingsError(f"{where}: {error.strerror or 'cannot be read'}") from None


def checked(name: str, value: object) -> Any:
    """The value of a top-level key, in the type of its field. Raises ValueError."""
    return _CHECKS[name](value)


def _text(path: str) -> str | None:
    def opened(path: str, flags: int) -> int:
        # So as not to wait for a writer if the file is a pipe.
        return os.open(path, flags | os.O_NONBLOCK)

    try:
        with open(path, "rb", opener=opened) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) and path != os.devnull:
                raise ValueError("not a regular file")
            content = file.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(content) > LARGEST_BYTES:
        raise ValueError(f"larger than {LARGEST_BYTES // 1024} KiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(f"line {line} is not UTF-8") from None


def _parsed(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Deep arrays exhaust the parser's stack, and Python refuses very long numbers.
        raise ValueError(f"not valid TOML: {clean(str(error), 200) or 'nested too deep'}") from None
    return table


def _settings(table: dict[str, Any]) -> Settings:
    settings: dict[str, Any] = {}
    for name, value in table.items():
        if name not in _CHECKS:
            raise ValueError(_unknown(name, "setting", _CHECKS))
        try:
            field = "interval_s" if name == "interval" else name
            settings[field] = checked(name, value)
        except ValueError as error:
            prefix = "" if isinstance(value, dict) else f"{name}: "
            raise ValueError(f"{prefix}{error}") from None
    return Settings(**settings)


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


def _ascii(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_kind(value)}")
    return value


def _user(value: object) -> str:
    if not _string(value).isprintable():
        raise ValueError(f"{_quoted(value)} is not a user name")
    return _string(value)


def _keys(value: object) -> dict[str, str]:
    from tpusmi.tui import keymap
    from tpusmi.tui.pages import every_key, keys_by_page

    defaults = {b.id: b.key for b in every_key() if b.id}
    keys: dict[str, str] = {}
    for id, text in _table(value, "keys").items():
        if id not in defaults:
            raise ValueError(f"[keys] {_unknown(id, 'key', defaults)}")
        try:
            keys[id] = keymap.spelled(_string(text))
        except keymap.KeyNameError as error:
            raise ValueError(f"[keys] {id}: {_quoted(text)}: {error}") from None
        except ValueError as error:
            raise ValueError(f"[keys] {id}: {error}") from None
    keys = {id: names for id, names in keys.items() if names != defaults[id]}
    for page in keys_by_page().values():
        if both := keymap.clash(page, keys):
            key, id, other = both
            raise ValueError(f"[keys] {id}: {key} is already the key of {other}")
    return keys


def _colors(value: object) -> dict[str, str]:
    from tpusmi.tui.draw import themes

    names = themes.THEMES[themes.DEFAULT].styles
    colors: dict[str, str] = {}
    for name, text in _table(value, "colors").items():
        if name not in names:
            raise ValueError(f"[colors] {_unknown(name, 'style', names)}")
        try:
            colors[name] = _style(_string(text))
        except ValueError as error:
            raise ValueError(f"[colors] {name}: {error}") from None
    return colors


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


_CHECKS: dict[str, Callable[[object], Any]] = {
    "theme": _theme,
    "interval": _interval_s,
    "view": _view,
    "ascii": _ascii,
    "only_user": _user,
    "keys": _keys,
    "colors": _colors,
}
"""The check of each setting, by its name in the file."""


def _one_of(value: object, what: str, choices: Iterable[str]) -> str:
    names = [*choices]
    text = _string(value)
    if text not in names:
        hint = _hint(text, names) or f"; choose one of {', '.join(names)}"
        raise ValueError(f"{_quoted(text)} is not a {what}{hint}")
    return text


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f'must be text in "quotes", not {_kind(value)}')
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


def _unknown(name: str, what: str, names: Iterable[str]) -> str:
    listed = [*names]
    few = f"; {what}s are {', '.join(listed)}" if len(listed) <= LISTED_MOST else ""
    return f"unknown {what} {clean(name, QUOTED_MOST)}{_hint(name, listed) or few}"


def _hint(name: str, names: Iterable[str]) -> str:
    """`; did you mean "kill"?`; empty if no name is similar."""
    from difflib import get_close_matches

    similar = get_close_matches(name[:QUOTED_MOST].lower(), [*names], 1)
    return f'; did you mean "{similar[0]}"?' if similar else ""


def _quoted(value: object) -> str:
    return f'"{clean(str(value), QUOTED_MOST)}"'
