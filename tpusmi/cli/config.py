"""The dashboard's settings: the file, overridden by the command line; and `--print-config`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping

from tpusmi.cli.exits import Exit, talk
from tpusmi.cli.options import hidden_by
from tpusmi.settings import Settings, SettingsError, load, settings_path
from tpusmi.text import clean
from tpusmi.toml_lines import Value, toml_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.settings_file import Way


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
        hidden=tuple(dict.fromkeys((*settings.hidden, *hidden_by(options)))),
    )


def saved(path: str, values: Mapping[Way, Value]) -> str:
    """Save what the dashboard shows in that file; returns a sentence about it."""
    from tpusmi.settings_file import save

    where = clean(path)
    try:
        is_new = save(path, values, _defaults())
    except SettingsError as error:
        return f"Not saved: {error}"
    if is_new:
        return f"Saved in {where}"
    if not os.path.exists(path):
        return f"Nothing to save: these are the defaults, and {where} is not there"
    return f"Nothing to save: {where} has these settings"


def _defaults() -> dict[Way, Value]:
    """Settings that are not written to a file that does not have them."""
    from tpusmi.report.column_choices import CHOICES
    from tpusmi.tui.main.process_table import DEFAULT_SORT

    usual = Settings()
    return {
        ("theme",): usual.theme,
        ("view",): usual.view,
        ("sort",): DEFAULT_SORT,
        ("reverse",): usual.reverse,
        ("window",): usual.window,
        ("hidden",): [*usual.hidden],
        **{("columns", table): [*titles] for table, titles in CHOICES.items()},
    }


def print_config(options: argparse.Namespace) -> Exit:
    """Print the current settings as a TOML file."""
    text = config_text(settings_of(options))
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # TOML's encoding
    sys.stdout.write(text)
    return Exit.ANSWERED


def config_text(settings: Settings) -> str:
    """A TOML file with every setting and its meaning. Defaults are commented out."""
    parts = (_head(), _plain(settings), _columns(settings), _keys(settings), _colors(settings))
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _head() -> Iterator[str]:
    path = settings_path()
    is_there = os.path.lexists(path)
    what = "The dashboard of tpusmi reads" if is_there else "To change a setting, save"
    yield f"# {what} this {'from' if is_there else 'as'} {clean(path)}"
    yield "# A line with # is a default. To change it, remove the # and edit the value."
    yield "# F12 in the dashboard writes what you have chosen on the screen."


def _plain(settings: Settings) -> Iterator[str]:
    from tpusmi.report.column_choices import SORTED_BY
    from tpusmi.tui.draw.themes import THEMES
    from tpusmi.tui.feed import PANELS, DeviceView

    meanings = {
        "theme": f"{', '.join(THEMES)}; ansi is the terminal's own colors",
        "interval": "seconds between refreshes",
        "view": ", ".join(view.value for view in DeviceView),
        "ascii": "true if the terminal cannot show other characters",
        "only_user": "show only this user's processes; empty: all",
        "hidden": f"panels that are not shown: {', '.join(PANELS)}",
        "sort": f"the column that processes are sorted by: {', '.join(SORTED_BY)}",
        "reverse": "true to reverse that order",
        "window": "minutes that graphs show: 1, 2, 5, 10; 0: as long as there is data",
    }
    for name, meaning in meanings.items():
        field = "interval_s" if name == "interval" else name
        value, default = getattr(settings, field), getattr(Settings(), field)
        yield _line(name, value, default, meaning)


def _columns(settings: Settings) -> Iterator[str]:
    from tpusmi.report.column_choices import CHOICES

    yield "# the columns to show, where there is room and something to show in them"
    yield "[columns]"
    for table, titles in CHOICES.items():
        yield _line(table, settings.columns.get(table, titles), titles)


def _keys(settings: Settings) -> Iterator[str]:
    from tpusmi.tui.help_text import group_of
    from tpusmi.tui.keymap import in_settings
    from tpusmi.tui.pages import settable_keys

    yield "[keys]  # comma-separated: letters, or names such as ?, Esc, PgUp, Ctrl-X, comma"
    printed: set[str | None] = set()
    for page, bindings in settable_keys().items():
        new = [b for b in bindings if b.id not in printed]
        for group in dict.fromkeys(map(group_of, new)):
            yield (
                f"# -- {page} page: {group.lower()}" if page != "main" else f"# -- {group.lower()}"
            )
            for b in (b for b in new if b.id and group_of(b) == group):
                own = settings.keys.get(b.id or "", b.key)
                yield _line(b.id or "", in_settings(own), in_settings(b.key), b.tooltip)
        printed |= {b.id for b in new}


def _colors(settings: Settings) -> Iterator[str]:
    from tpusmi.tui.draw.themes import THEMES

    yield '[colors]  # on top of the theme: "bold #ff8700", "white on blue", "underline"'
    for name, style in THEMES[settings.theme].styles.items():
        own = settings.colors.get(name)
        yield f"#{name} = {toml_value(str(style))}" if own is None else _line(name, own)


def _line(name: str, value: Value, default: Value | None = None, meaning: str = "") -> str:
    line = f"{'#' if value == default else ''}{name} = {toml_value(value)}"
    return line + (f"  # {meaning}" if meaning else "")
