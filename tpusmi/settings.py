"""The dashboard's settings, in a small TOML file."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from tpusmi import toml_lines
from tpusmi.setting_checks import CHECKS, LISTS, WrongValueError, unknown
from tpusmi.text import clean

LARGEST_BYTES = 64 * 1024
"""The size limit of the file; all settings with their comments take a tenth of it."""


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
    hidden: tuple[str, ...] = ()
    """Panels of the main page that are not shown."""
    columns: Mapping[str, tuple[str, ...]] = {}
    """Titles of the columns to show, by table: `devices`, `processes`. Without a table: all."""
    sort: str = ""
    """Title of the column that processes are sorted by; empty for the default."""
    reverse: bool = False
    window: int = 0
    """Minutes that graphs show; 0 for as long as there is data."""


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
        text = text_of(path)
        return Settings() if text is None else _settings(parsed(text), text)
    except ValueError as error:
        raise SettingsError(f"{where}: {error}") from None
    except OSError as error:
        raise SettingsError(f"{where}: {error.strerror or 'cannot be read'}") from None


def checked(name: str, value: object) -> Any:
    """The value of a top-level key, in the type of its field. Raises ValueError."""
    return CHECKS[name](value)


def text_of(path: str) -> str | None:
    """The text of the file; None if there is none. Raises OSError, or ValueError if it has none."""

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


def parsed(text: str) -> dict[str, Any]:
    """The table that the TOML describes. Raises ValueError with what is wrong."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        if hint := toml_lines.unquoted(text, str(error)):
            raise ValueError(hint) from None
        # Deep arrays exhaust the parser's stack, and Python refuses very long numbers.
        raise ValueError(f"not valid TOML: {clean(str(error), 200) or 'nested too deep'}") from None
    return table


def _settings(table: dict[str, Any], text: str) -> Settings:
    settings: dict[str, Any] = {}
    for name, value in table.items():
        try:
            if name not in CHECKS:
                raise ValueError(f"{unknown(name, 'setting', CHECKS)}; {LISTS}")
            field = "interval_s" if name == "interval" else name
            settings[field] = checked(name, value)
        except ValueError as error:
            way = (name, error.key) if isinstance(error, WrongValueError) else (name,)
            prefix = f"{name}: " if name in CHECKS and len(way) == 1 else ""
            raise ValueError(f"{toml_lines.place(text, way)}{prefix}{error}") from None
    return Settings(**settings)
