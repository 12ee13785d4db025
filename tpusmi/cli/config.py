"""The dashboard's settings: the file, overridden by the command line; and `--print-config`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator

from tpusmi.cli.exits import Exit, talk
from tpusmi.settings import Settings, SettingsError, load, settings_path
from tpusmi.text import clean


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings for this command. Ends it with a sentence if the file has an error."""
    try:
        path = options.config
        if path is not None and not os.path.lexists(path):
            # The default file may be missing, but not one that the user names.
            raise SettingsError(f"{clean(path)}: there is no such file")
        settings = load(settings_path() if path is None else path)
    except SettingsError as error:
        talk(str(error))
        raise SystemExit(Exit.USAGE) from None
    return settings._replace(
        theme=options.theme or settings.theme,
        interval_s=options.interval or settings.interval_s,
        view=options.view or settings.view,
        ascii=options.ascii or settings.ascii,
    )


def print_config(options: argparse.Namespace) -> Exit:
    """Print the current settings as a TOML file."""
    text = config_text(settings_of(options))
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # TOML's encoding
    sys.stdout.write(text)
    return Exit.ANSWERED


def config_text(settings: Settings) -> str:
    """A TOML file with every setting and its meaning."""
    return "\n".join((*_plain(settings), "", *_keys(settings), "", *_colors(settings), ""))


def _plain(settings: Settings) -> Iterator[str]:
    from tpusmi.tui.draw.themes import THEMES
    from tpusmi.tui.feed import DeviceView

    path = settings_path()
    is_there = os.path.lexists(path)
    what = "The dashboard of tpusmi reads" if is_there else "To change a setting, save"
    yield f"# {what} this {'from' if is_there else 'as'} {clean(path)}"
    yield ""
    yield _line("theme", settings.theme, f"{', '.join(THEMES)}; ansi is the terminal's own colors")
    yield _line("interval", settings.interval_s, "seconds between refreshes")
    yield _line("view", settings.view, ", ".join(view.value for view in DeviceView))
    yield _line("ascii", settings.ascii, "true if the terminal cannot show other characters")
    yield _line("only_user", settings.only_user, "show only this user's processes; empty: all")


def _keys(settings: Settings) -> Iterator[str]:
    from tpusmi.tui.keymap import remapped
    from tpusmi.tui.pages import every_key

    yield "[keys] # comma-separated: letters, or names such as ?, Esc, PgUp, Ctrl-X, comma"
    for binding in remapped(every_key(), settings.keys):
        if binding.id:
            yield _line(binding.id, binding.key, binding.tooltip)


def _colors(settings: Settings) -> Iterator[str]:
    from tpusmi.tui.draw.themes import THEMES

    yield '[colors] # on top of the theme: "bold #ff8700", "white on blue", "underline"'
    for name, style in THEMES[settings.theme].styles.items():
        own = settings.colors.get(name)
        yield f"# {_line(name, str(style))}" if own is None else _line(name, own)


def _line(name: str, value: str | float, meaning: str = "") -> str:
    # JSON's text, numbers, true and false are also TOML's if only quotes need escaping: settings
    # contain only printable characters.
    text = json.dumps(value, ensure_ascii=False)
    return f"{name} = {text}" + (f"  # {meaning}" if meaning else "")
