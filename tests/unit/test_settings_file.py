"""Settings saved from the screen: everything else in the file stays."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.users import as_another_user

from tpusmi.cli.config import config_text
from tpusmi.settings import Settings, SettingsError, load, parsed
from tpusmi.settings_file import edited, replace_file, save

MINE = """# my settings
theme = 'dark' # easy on the eyes

hidden = [
  "graphs", # too small
]
[keys]
kill = "z" # not k

[colors]
graph = "red"
"""


def test_a_value_is_replaced_and_comments_and_other_settings_stay() -> None:
    assert edited(MINE, {("theme",): "light"}) == MINE.replace("'dark'", '"light"')
    found = edited(MINE, {("hidden",): ["header"], ("view",): "heat"})
    assert "# my settings\ntheme = 'dark' # easy on the eyes\n\nhidden = [\"header\"]\n" in found
    assert '\nview = "heat"\n[keys]\nkill = "z" # not k\n\n[colors]\n' in found


def test_a_table_is_added_or_continued() -> None:
    found = edited(MINE, {("columns", "devices"): ["MXU"]})
    assert found == MINE + '\n[columns]\ndevices = ["MXU"]\n'
    again = edited(found, {("columns", "processes"): [], ("columns", "devices"): ["BW"]})
    assert again == MINE + '\n[columns]\ndevices = ["BW"]\nprocesses = []\n'


def test_what_print_config_wrote_gets_the_value_below_its_comment() -> None:
    text = config_text(Settings())
    found = edited(text, {("sort",): "RSS", ("columns", "devices"): ["MXU"]}).split("\n")
    assert found[found.index('sort = "RSS"') - 1].startswith('#sort = ""')
    assert found[found.index('devices = ["MXU"]') - 1].startswith("#devices = [")
    assert len(found) == len(text.split("\n")) + 2


def test_a_file_that_has_the_values_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(MINE)
    before = path.stat()
    assert not save(str(path), {("theme",): "dark"})
    assert path.stat().st_ino == before.st_ino


def test_a_file_whose_lines_mislead_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    text = 'only_user = """\n[columns]\ntheme = 1\n"""\n'
    path.write_text(text)
    with pytest.raises(SettingsError, match="cannot edit this file"):
        save(str(path), {("theme",): "light"})
    assert path.read_text() == text
    path.write_text("theme = dark\n")
    with pytest.raises(SettingsError, match="line 1: text needs quotes"):
        save(str(path), {("theme",): "light"})


def test_a_new_file_is_made_with_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "config.toml"
    assert save(str(path), {("theme",): "dark", ("columns", "devices"): ["MXU"]})
    assert load(str(path)) == Settings(theme="dark", columns={"devices": ("MXU",)})
    assert os.listdir(path.parent) == ["config.toml"]


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    real.write_text(MINE)
    real.chmod(0o600)
    link.symlink_to(real)
    assert save(str(link), {("theme",): "light"})
    assert link.is_symlink()
    assert load(str(real)).theme == "light"
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["config.toml", "dotfiles.toml"]


def test_a_place_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(MINE)
    tmp_path.chmod(0o555)
    with as_another_user(tmp_path), pytest.raises(SettingsError, match="Permission denied"):
        save(str(path), {("theme",): "light"})
    tmp_path.chmod(0o755)
    assert path.read_text() == MINE
    with pytest.raises(SettingsError, match="/proc/tpusmi"):
        save("/proc/tpusmi/config.toml", {("theme",): "light"})


def test_a_file_that_its_owner_made_read_only_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(MINE)
    path.chmod(0o444)
    tmp_path.chmod(0o777)
    with as_another_user(tmp_path), pytest.raises(SettingsError, match="Permission denied"):
        save(str(path), {("theme",): "light"})
    assert path.read_text() == MINE
    assert os.listdir(tmp_path) == ["config.toml"]


def test_lines_keep_the_ends_that_windows_gave_them(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(MINE.replace("\n", "\r\n").encode())
    assert save(str(path), {("theme",): "light", ("view",): "heat"})
    lines = path.read_bytes().split(b"\r\n")
    assert b'theme = "light" # easy on the eyes' in lines
    assert b'view = "heat"' in lines
    assert not any(b"\n" in line or b"\r" in line for line in lines)


def test_a_value_keeps_its_indent() -> None:
    assert edited("\t theme = 'x'\t# c\n", {("theme",): "light"}) == '\t theme = "light"\t# c\n'


@pytest.mark.parametrize("text", ["columns.devices = []\n", "columns = {devices = []}\n"])
def test_no_line_is_named_that_the_file_does_not_have(text: str) -> None:
    with pytest.raises(ValueError, match=r"^tpusmi cannot edit this file; see"):
        edited(text, {("columns", "devices"): ["MXU"]})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_leaves_a_file_to_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(MINE)
    os.chown(path, 12345, 12346)
    assert save(str(path), {("theme",): "light"})
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)


def test_a_device_is_never_replaced(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(ValueError, match="not a regular file"):
        replace_file(str(fifo), "x")
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert os.listdir(tmp_path) == ["fifo"]
    with pytest.raises(SettingsError, match="not a regular file"):
        save(os.devnull, {("theme",): "dark"})
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


_LINES = st.sampled_from(
    ["# note", "", "theme = 'dark'", 'view="full"  # x', "[keys]", "[colors]", "hidden = [", ']',
     "kill = 'z'", "'''", 'only_user = """', '"graphs",', "[columns]", "sort = '#'"]
)  # fmt: skip


@given(st.lists(_LINES, max_size=12).map("\n".join))
def test_whatever_the_file_has_only_the_values_change(text: str) -> None:
    values = {("theme",): "light", ("columns", "devices"): ["MXU"], ("sort",): "RSS"}
    try:
        before = parsed(text)
        after = parsed(edited(text, values))  # type: ignore[arg-type]
    except ValueError:
        return
    assert after.pop("theme") == "light"
    assert after.pop("sort") == "RSS"
    assert after.pop("columns") == {**before.pop("columns", {}), "devices": ["MXU"]}
    assert after == {k: v for k, v in before.items() if k not in ("theme", "sort")}
