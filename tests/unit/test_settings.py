"""The settings file: where it is, what it says, and one sentence when it says something wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from support.users import as_another_user

from tpusmi.cli.config import config_text
from tpusmi.setting_checks import INTERVAL_LEAST_S, INTERVAL_MOST_S
from tpusmi.settings import (
    LARGEST_BYTES,
    Settings,
    SettingsError,
    load,
    settings_path,
)
from tpusmi.sources.users import home
from tpusmi.tui.draw.themes import THEMES
from tpusmi.tui.feed import PANELS, DeviceView
from tpusmi.tui.keymap import clash, in_settings, spelled
from tpusmi.tui.pages import every_key, keys_by_page

WHOLE = """
theme = "dark"
interval = 2
view = "heat"
ascii = true
only_user = "ann"
hidden = ["graphs", "header"]
sort = "RSS"
reverse = true
window = 5
[columns]
devices = ["MXU", "MEMORY"]
processes = []
[keys]
kill = "z, F8"
help = "?"
back = "Esc"
[colors]
graph = "#ff8700"
selected = "bold white on blue"
"""


def of(directory: Path, text: str) -> Settings:
    path = directory / "config.toml"
    path.write_text(text, encoding="utf-8")
    return load(str(path))


def test_a_file_says_what_the_dashboard_is_like(tmp_path: Path) -> None:
    assert of(tmp_path, WHOLE) == Settings(
        theme="dark",
        interval_s=2.0,
        view="heat",
        ascii=True,
        only_user="ann",
        hidden=("graphs", "header"),
        sort="RSS",
        reverse=True,
        window=5,
        columns={"devices": ("MEMORY", "MXU"), "processes": ()},
        keys={"kill": "z,f8", "help": "question_mark"},
        colors={"graph": "#ff8700", "selected": "bold white on blue"},
    )


def test_keys_that_only_a_fleet_has_can_be_remapped(tmp_path: Path) -> None:
    found = of(tmp_path, '[keys]\ngroup = "z"\nfleet-next-slice = "F7"\ncopy-ssh = "F8"')
    assert found.keys == {"group": "z", "fleet-next-slice": "f7", "copy-ssh": "f8"}


def test_a_key_of_a_host_may_be_one_that_only_a_fleet_has_by_default(tmp_path: Path) -> None:
    found = of(tmp_path, '[keys]\npause = "k"\nkill = "p"\nsort = "G"')
    assert found.keys == {"pause": "k", "kill": "p", "sort": "G"}


def test_a_missing_or_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    assert load(str(tmp_path / "none.toml")) == Settings()
    assert load(str(tmp_path / "none" / "none.toml")) == Settings()
    assert load(os.devnull) == Settings()
    assert of(tmp_path, "\ufeff# nothing\n") == Settings()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("theme", "not valid TOML: Expected '=' after a key"),
        ("\n\ntheme = dark", 'config.toml: line 3: text needs quotes: theme = "dark"'),
        ("[keys]\nquit = Esc # back", 'line 2: text needs quotes: quit = "Esc"'),
        ("[keys]\nquit = ?", 'line 2: text needs quotes: quit = "?"'),
        ('\n# x\n[keys]\nhelp = "?"\nkill = "q"', "line 5: [keys] kill: q is already"),
        ('\n theme = "drak"', "line 2: theme: "),
        ("[keys]\nkil = 'x'", "tpusmi --print-config lists all of them"),
        ("[colorz]", 'line 1: unknown setting colorz; did you mean "colors"?'),
        ("hidden = 'graphs'", 'hidden: must be a list, such as ["a", "b"], not text'),
        ("hidden = ['graph']", 'hidden: "graph" is not a panel; did you mean "graphs"?'),
        ("sort = 'memory'", 'sort: "memory" is not a column; did you mean "MEMORY"?'),
        ("sort = 'no such'", "tpusmi --print-config lists all of them"),
        ("window = 3", "window: must be one of 0, 1, 2, 5, 10 minutes"),
        ("window = true", "window: must be one of 0, 1, 2, 5, 10 minutes"),
        ("[columns]\ndevice = []", 'unknown table device; did you mean "devices"?'),
        ("[columns]\ndevices = ['MXV']", 'devices: "MXV" is not a column; did you mean "MXU"?'),
        ("[columns]\ndevices = 3", "line 2: [columns] devices: must be a list"),
        ("a = " + "[" * 9000, "not valid TOML"),
        ("interval = " + "9" * 5000, "not valid TOML"),
        ('theme = "dark"\x1b[2J', "not valid TOML"),
        ('thme = "dark"', 'unknown setting thme; did you mean "theme"?'),
        ("[key]\nkill = 'x'", 'unknown setting key; did you mean "keys"?'),
        ('theme = "drak"', 'theme: "drak" is not a theme; did you mean "dark"?'),
        ('theme = "#"', "choose one of dark, light, colorblind, ansi, mono"),
        ("theme = 3", 'theme: must be text in "quotes", not a number'),
        ('view = "heet"', 'view: "heet" is not a view; did you mean "heat"?'),
        ('ascii = "yes"', "ascii: must be true or false, not text"),
        ("ascii = 1979-05-27", "ascii: must be true or false, not a date or a time"),
        ("interval = true", "interval: must be a number of seconds, not true or false"),
        ("interval = nan", "interval: not between 0.1 and 86400 seconds"),
        ("interval = 0.01", "interval: not between 0.1 and 86400 seconds"),
        ("interval = " + "9" * 400, "interval: not between"),
        ('only_user = "\\u202Eann"', "only_user"),
        ("keys = 3", "keys: must be a table, [keys], not a number"),
        ('[keys]\nkil = "x"', '[keys] unknown key kil; did you mean "kill"?'),
        ('[keys]\nkill = "bogus"', '[keys] kill: no key has the name "bogus"'),
        ("[keys]\nkill = 3", '[keys] kill: must be text in "quotes", not a number'),
        ('[keys]\nkill = ""', "[keys] kill"),
        ('[keys]\nkill = "x,,y"', "the comma's is comma"),
        ('[keys]\nkill = "q"', "[keys] kill: q is already the key of quit"),
        ('[keys]\nkill = "?"', "[keys] kill: ? is already the key of help"),
        ('[keys]\nkill = "x"\nquit = "x"', "x is already the key of"),
        ('[keys]\ngroup = "q"', "[keys] group: q is already the key of quit"),
        ('[keys]\nfleet-down = "x"', "[keys] unknown key fleet-down"),
        ("[colors.graph]\nx = 1", '[colors] graph: must be text in "quotes", not a table'),
        (
            '[colors]\ngrpah = "red"',
            '[colors] unknown style grpah; did you mean "graph"?',
        ),
        ('[colors]\ngraph = "#zz"', '[colors] graph: "#zz" is not a valid Rich style'),
        ('[colors]\ngraph = "yelow"', 'did you mean "yellow"?'),
        ('[colors]\ngraph = "red on"', '"red on" is not a valid Rich style'),
        ('[colors]\ngraph = "link http://x"', "has more than colors"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_with_file_and_key(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        of(tmp_path, text)
    assert sentence in str(caught.value)
    assert str(tmp_path / "config.toml") in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        '"\\u001b[2J" = 3',
        'theme = "\\u001b[2J"',
        '[keys]\n"\\u001b]0;x" = "x"',
        '[keys]\nkill = "\\u001b"',
        '[colors]\n"\\u009b2J" = "red"',
        '[colors]\ngraph = "\\u001b[31m"',
        '[colors]\ngraph = "link \\u001b]8;;"',
        '"a\\nb" = 1',
    ],
)
def test_control_characters_are_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        of(tmp_path, text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_two_bindings_can_change_places(tmp_path: Path) -> None:
    assert of(tmp_path, '[keys]\npause = "q"\nquit = "p"').keys == {"pause": "q", "quit": "p"}


def test_what_is_no_readable_file_is_said(tmp_path: Path) -> None:
    fifo, huge, latin = (tmp_path / name for name in ("fifo", "huge", "latin"))
    os.mkfifo(fifo)
    huge.write_bytes(b"#" * (LARGEST_BYTES + 1))
    latin.write_bytes(b'# ok\nonly_user = "j\xf6rg"\n')
    for path, sentence in (
        (str(tmp_path), "Is a directory"),
        (str(fifo), "not a regular file"),
        ("/dev/zero", "not a regular file"),
        (str(huge), "larger than 64 KiB"),
        (str(latin), "line 2 is not UTF-8"),
        ("a\0b", "embedded null"),
    ):
        with pytest.raises(SettingsError, match=sentence):
            load(path)


def test_a_file_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.touch(0o000)
    with (
        as_another_user(tmp_path),
        pytest.raises(SettingsError, match="Permission denied"),
    ):
        load(str(path))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TPUSMI_CONFIG": "mine.toml", "XDG_CONFIG_HOME": "/x"}, "mine.toml"),
        ({"TPUSMI_CONFIG": "", "XDG_CONFIG_HOME": "/x"}, "/x/tpusmi/config.toml"),
        ({"XDG_CONFIG_HOME": "relative"}, "/home/ann/.config/tpusmi/config.toml"),
        ({"XDG_CONFIG_HOME": ""}, "/home/ann/.config/tpusmi/config.toml"),
        ({}, "/home/ann/.config/tpusmi/config.toml"),
    ],
)
def test_it_is_in_the_xdg_place(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
) -> None:
    for name in ("TPUSMI_CONFIG", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ann")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    home.cache_clear()
    assert settings_path() == expected
    home.cache_clear()


LETTERS = st.sampled_from("aäbdefgijlmnstuvwxyzABCDEFGHJLMNOPQSUVWXY0123456789;:!@#$%^&*~`'\"\\|{}")
NAMED = st.sampled_from(["F2", "f12", "Ctrl-X", "ctrl+alt+k", "Del", "space", "tab", "S-Tab"])
STYLES = st.builds(
    " ".join,
    st.tuples(
        st.sampled_from(["bold", "not bold", "underline", "dim", "reverse"]),
        st.one_of(
            st.sampled_from(["red", "bright_blue", "color(42)", "default"]),
            st.integers(0, 0xFFFFFF).map("#{:06x}".format),
        ),
        st.sampled_from(["", "on black", "on #ff8700"]),
    ),
)


@st.composite
def key_maps(draw: st.DrawFn) -> dict[str, str]:
    ids = draw(st.lists(st.sampled_from([b.id for b in every_key() if b.id]), unique=True))
    texts = st.lists(st.one_of(LETTERS, NAMED), min_size=1, max_size=3)
    found = {id: spelled(",".join(draw(texts))) for id in ids}
    pages = [*keys_by_page().values()]
    # What is taken out has its usual key again, which may clash on a page that was clean.
    while both := next(filter(None, (clash(page, found) for page in pages)), None):
        found.pop(both[1], None)
        found.pop(both[2], None)
    usual = {b.id: b.key for b in every_key()}
    return {id: keys for id, keys in found.items() if spelled(keys) != usual[id]}


ANY = st.builds(
    Settings,
    theme=st.sampled_from([*THEMES]),
    interval_s=st.floats(INTERVAL_LEAST_S, INTERVAL_MOST_S),
    view=st.sampled_from([view.value for view in DeviceView]),
    ascii=st.booleans(),
    hidden=st.lists(st.sampled_from(PANELS), unique=True).map(tuple),
    sort=st.sampled_from(["", "MEMORY", "STEPS/s", "TIME"]),
    reverse=st.booleans(),
    window=st.sampled_from([0, 1, 2, 5, 10]),
    columns=st.sampled_from(
        [{}, {"devices": ()}, {"devices": ("PID", "5 MIN"), "processes": ("STEPS/s",)}]
    ),
    only_user=st.text(st.characters(exclude_categories=["C", "Z"])),
    keys=key_maps(),
    colors=st.dictionaries(st.sampled_from([*THEMES["dark"].styles]), STYLES),
)


@given(ANY)
@examples(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_printed_reads_back_to_the_same_settings(
    tmp_path_factory: pytest.TempPathFactory, settings: Settings
) -> None:
    path = tmp_path_factory.getbasetemp() / "printed.toml"
    path.write_text(config_text(settings), encoding="utf-8")
    assert load(str(path)) == settings


def test_defaults_are_printed_commented_out_and_keys_as_on_a_keyboard() -> None:
    lines = config_text(Settings()).splitlines()
    for binding in every_key():
        assert any(f'#{binding.id} = "{in_settings(binding.key)}"' in line for line in lines)
    for name, style in THEMES["ansi"].styles.items():
        assert f'#{name} = "{style}"' in lines
    for name in ("theme", "interval", "view", "ascii", "only_user", "hidden", "sort", "window"):
        assert any(line.startswith(f"#{name} = ") for line in lines)
    assert [line for line in lines if line and not line.startswith("#")] == [
        "[columns]",
        "[keys]  # comma-separated: letters, or names such as ?, Esc, PgUp, Ctrl-X, comma",
        '[colors]  # on top of the theme: "bold #ff8700", "white on blue", "underline"',
    ]
    assert max(map(len, lines)) <= 200


def test_each_printed_line_can_be_uncommented_alone(tmp_path: Path) -> None:
    lines = config_text(Settings()).splitlines()
    settings = [n for n, line in enumerate(lines) if re.match(r"#[\w-]+ = ", line)]
    assert len(settings) > 100
    theme = THEMES[Settings().theme].styles
    for n in settings:
        found = of(tmp_path, "\n".join([*lines[:n], lines[n][1:], *lines[n + 1 :]]))
        assert found._replace(colors={}) == Settings()
        assert all(str(theme[name]) == style for name, style in found.colors.items())
    bare = "\n".join(line[1:] if n in settings else line for n, line in enumerate(lines))
    assert of(tmp_path, bare)._replace(colors={}) == Settings()


def test_a_setting_that_differs_is_printed_without_a_comment(tmp_path: Path) -> None:
    lines = config_text(Settings(theme="dark", keys={"kill": "z,f8"})).splitlines()
    assert any(line.startswith('theme = "dark"') for line in lines)
    assert any(line.startswith('kill = "z, F8"') for line in lines)
